"""A query as a stream, the same as its Python would build, and what is read from its windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ....operators.definition.sources import FrameSource
from ....operators.definition.stream import Stream
from ....operators.windows.all_time import WholeInput
from ....operators.windows.durations import duration_text
from ..scalars.scalars import sql_type
from .aggregates import AggregateCall
from .selection import AnswerSelection


@dataclass(frozen=True)
class LogicalPlan:
    """A query: its stream, what it reads from windows (None for queries of rows), and the Python for both.

    `columns` are the columns of its rows with their types, `keys` those of the groups. `push` is ``final``,
    ``changes``, or empty for a query that ends. `calls` are its aggregates by their nodes' ids, each with its
    column; `sinks` are further destinations of a run's windows, besides the query's rows. `time` is the
    column of rows with their event time, in `time_format` if it is text, and `lost_time` its name in their
    source, if none has it. `partition` are the columns of PARTITION BY, the key of the messages that the
    query writes.
    """

    stream: Stream
    selection: AnswerSelection | None
    columns: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    push: str
    limit: int | None
    source: str
    time: str = ""
    time_format: str = ""
    lost_time: str = ""
    calls: Mapping[int, tuple[str, AggregateCall]] = field(default_factory=dict)
    sinks: tuple[Any, ...] = ()
    partition: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it aggregates all rows of topics that exist now, without a window."""
        files = isinstance(self.stream.source, FrameSource)
        return self.selection is not None and not files and isinstance(self.stream.window, WholeInput)


def plan_text(plan: LogicalPlan, topic: str) -> str:
    """A description of a plan as comments after its Python: what it reads, stores, answers and writes."""
    stream = plan.stream
    if isinstance(stream.source, FrameSource):
        topics = [str(stream.source.data)]
    else:
        topics = list(
            dict.fromkeys(name for source in stream.reading.kafka_sources for name in source.topics)
        )
    lines = [f"reads {', '.join(topics)}"]
    if stream.reading.tables:
        lines.append(
            f"keeps the tables {', '.join(table.topic for table in stream.reading.tables)} in each worker"
        )
    if stream.window is not None:
        kept = ", ".join(f"{name}: {one.name}({one.column or ''})" for name, one in stream.aggregates.items())
        groups = f" for each {', '.join(stream.keys)}" if stream.keys else ""
        lines.append(f"keeps{groups} in each window {kept}; delay {duration_text(stream.delay_us)}")
        lines.append(f"state of the fingerprint {stream.fingerprint()}")
    columns = ", ".join(f"{name} {sql_type(kind)}" for name, kind in plan.columns.items())
    lines.append(f"answers {columns}")
    if topic:
        lines.append(f"writes to {topic}")
    return "\n".join(["# Plan:", *(f"# - {one}" for one in lines)])
