"""What rules look at: the answers of one key in one window, or of one reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A key's answers from `start_us` to `at_us` (event time, microseconds since 1970).

    Of a window these are its ends; of a reading, both are the reading's own time. `key` holds the columns
    that tell keys apart, `answers` those of the aggregates, as `operators.table.query` gives them; both hold
    what JSON has.
    """

    key: Mapping[str, Any]
    start_us: int
    at_us: int
    answers: Mapping[str, Any]
