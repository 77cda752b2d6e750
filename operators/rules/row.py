"""The input of rules: the answers of one key in one window, or of one reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A key's answers from `start_us` to `at_us` (event time, microseconds since 1970).

    For a window these are its start and end; for a reading, both are the reading's own time. `key` has the
    columns that identify the key, and `answers` the aggregates' columns, as `operators.table.query` returns
    them. Both contain only JSON values.
    """

    key: Mapping[str, Any]
    start_us: int
    at_us: int
    answers: Mapping[str, Any]
