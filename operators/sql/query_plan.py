"""A query as the stream that its Python would make, and as what is read off its windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ..definition.stream import Stream
from .aggregates import AggregateCall
from .selection import AnswerSelection


@dataclass(frozen=True)
class QueryPlan:
    """A query: its stream, what it reads off windows (None for rows one by one), and the Python of both.

    `columns` are the columns of its rows with their types, `keys` those that are the groups'. `push` is
    ``final``, ``changes``, or empty for a query that ends. `calls` are its aggregates by their nodes' ids,
    each with its column; `sinks` what a run writes its windows to, other than the query's rows.
    """

    stream: Stream
    selection: AnswerSelection | None
    columns: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    push: str
    limit: int | None
    source: str
    time: str = ""
    calls: Mapping[int, tuple[str, AggregateCall]] = field(default_factory=dict)
    sinks: tuple[Any, ...] = ()
