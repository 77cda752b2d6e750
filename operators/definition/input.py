"""What a stream reads and what is done with its rows, as engines ask for it; `row_stream` has the verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from ...sketches.core.lazy import pa, pl
from .deduplication import Deduplicate
from .filling import FillForward
from .joining import JoinedSource, StreamJoin
from .merged import MergedSource, Part
from .sources import FrameSource, KafkaSource
from .steps import RowStep
from .tables import LookupTable, TableJoin
from .topic_patterns import is_pattern, matches


@dataclass(frozen=True, eq=False)
class StreamInput:
    """Where rows come from, which of their columns is the event time, and what is done with each of them."""

    source: KafkaSource | FrameSource | MergedSource
    time: pl.Expr | None = None
    steps: tuple[RowStep, ...] = ()

    def of_topic(self, topic: str) -> Self:
        """What is done with the rows of one topic: of merged streams that of the part which reads it."""
        if not isinstance(self.source, MergedSource):
            return self
        part = self.source.part_of(topic)
        steps = (*part.steps, *self.source.between(part), *self.steps)
        return replace(self, source=part.source, time=part.time, steps=steps)

    def with_steps(self, change: Callable[[RowStep], RowStep]) -> Self:
        """The same with other steps, those of merged streams included."""
        steps, source = tuple(map(change, self.steps)), self.source
        if isinstance(source, MergedSource):
            parts = (replace(part, steps=tuple(map(change, part.steps))) for part in source.parts)
            source = replace(source, parts=tuple(parts))
        return replace(self, source=source, steps=steps)

    def over_archive(self, place: str) -> Self:
        """The same stream, which reads its topics from an archive in place of brokers.

        `place` is the folder or URL that `streamgauge archive --to` was given. `run` then gives what a run
        with ``until="latest"`` would have given of the topics as they are archived, by the clock of the
        recording, and ``on_spark(spark, streaming=False)`` does so on Spark; no broker takes part. The
        definition stays the same, so that tables of both can be merged and compared.

        Raises `TypeError` for a stream of frames.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> posts = sg.Stream.from_kafka("posts", value=sg.json({"user": pl.String})).tumbling("1m")
        >>> live = posts.agg(users=sg.distinct("user"))
        >>> live.over_archive("archive").fingerprint() == live.fingerprint()
        True
        """
        if not isinstance(self.source, MergedSource):
            return replace(self, source=replace(self.kafka_source, archive=place))
        parts = (
            replace(part, source=replace(part.source, archive=place))
            for part in self.source.parts
            if isinstance(part.source, KafkaSource)
        )
        return replace(self, source=replace(self.source, parts=tuple(parts)))

    @property
    def reads_archive(self) -> bool:
        """Whether it reads an archive in place of brokers."""
        parts = self.source.parts if isinstance(self.source, MergedSource) else [self]
        return any(isinstance(one.source, KafkaSource) and one.source.archive is not None for one in parts)

    def check_on_brokers(self) -> None:
        """Raise `TypeError` for a stream that reads an archive in place of brokers."""
        if self.reads_archive:
            raise TypeError(
                "this stream reads an archive, which ends: write .run(...), or .on_spark(spark, "
                "streaming=False), for each such stream"
            )

    def reads_topic(self, topic: str) -> bool:
        """Whether it reads a topic, by its name or by a pattern."""
        return any(matches(part.topics, topic) for part in self.parts())

    @property
    def kafka_sources(self) -> tuple[KafkaSource, ...]:
        """All that it reads. Raises `TypeError` if its rows come from frames, which no engine reads."""
        if isinstance(self.source, MergedSource):
            return tuple(part.source for part in self.source.parts if isinstance(part.source, KafkaSource))
        return (self.kafka_source,)

    @property
    def kafka_source(self) -> KafkaSource:
        """The only source it reads.

        Raises `TypeError` for merged streams of several, and if its rows come from frames, which no engine
        reads.
        """
        if isinstance(self.source, MergedSource):
            raise TypeError(f"this stream merges those of {self.reads()}; here one alone can be read")
        if not isinstance(self.source, KafkaSource):
            raise TypeError("this stream's rows come from frames; only Stream.from_kafka(...) can be run")
        return self.source

    @cached_property
    def columns(self) -> pl.Schema:
        """The columns of a row after all steps."""
        return self.transform(pl.LazyFrame(schema=self.source.schema)).collect_schema()

    def arrow_types(self) -> dict[str, Any]:
        """The Arrow types of `columns`. Raises `TypeError`, naming the column, for those that Arrow lacks."""
        return {name: _arrow_type(name, kind) for name, kind in self.columns.items()}

    def transform(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """Apply all steps to a frame; `carried` names columns that selections must not drop."""
        for step in self.steps:
            frame = step.apply(frame, carried)
        return frame

    @property
    def reads_several(self) -> bool:
        """Whether it may read several topics."""
        topics = [topic for part in self.parts() for topic in part.topics]
        return len(topics) > 1 or any(map(is_pattern, topics))

    @property
    def looks_back(self) -> bool:
        """Whether who goes on somewhere must know rows that came before, of any of its topics."""
        return self.looking_back is not None

    @property
    def looking_back(self) -> str | None:
        """The verb of the step that looks at rows before; None if each row is looked at by itself."""
        looking = (Deduplicate, FillForward, StreamJoin)
        steps = (step for part in self.parts() for step in part.steps)
        return next((step.verb for step in steps if isinstance(step, looking)), None)

    @property
    def joined(self) -> JoinedSource | None:
        """What it reads if that is two streams, joined row by row."""
        return self.source if isinstance(self.source, JoinedSource) else None

    @property
    def tables(self) -> list[LookupTable]:
        """The tables that its rows are joined with, each once."""
        steps = [step for part in self.parts() for step in part.steps]
        joined = [step.table for step in steps if isinstance(step, TableJoin)]
        return list({id(table): table for table in joined}.values())

    def parts(self) -> tuple[Part, ...]:
        """What it reads, each with all that is done with its rows."""
        if isinstance(self.source, MergedSource):
            between = self.source.between
            parts = self.source.parts
            return tuple(Part(p.source, p.time, (*p.steps, *between(p), *self.steps)) for p in parts)
        return (Part(self.source, self.time, self.steps),)

    def reads(self, otherwise: str = "") -> str:
        """What it reads, in words; `otherwise` for rows from frames."""
        topics = [p.source.topic for p in self.parts() if isinstance(p.source, KafkaSource)]
        return " and ".join(topics) or otherwise


def _arrow_type(name: str, kind: pl.DataType) -> pa.DataType:
    """The Arrow type of a column. Of Python objects Polars would give Arrow the addresses."""
    try:
        if kind != pl.Object:
            return pl.Series(name, [], kind).to_arrow().type
    except pa.ArrowInvalid:
        pass
    raise TypeError(f"column {name!r} is {kind}, for which Arrow has no type; cast it to Int64 or String")
