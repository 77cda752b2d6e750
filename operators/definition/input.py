"""What a stream reads and how its rows are transformed, for engines; `row_stream` has the methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Generic, Self, TypeVar

from ...sketches.core.lazy import pa, pl
from .deduplication import Deduplicate
from .filling import FillForward
from .joining import JoinedSource, StreamJoin
from .merged import MergedSource, Part
from .number_times import NumberLimits
from .sources import FrameSource, KafkaSource
from .steps import RowStep
from .tables import LookupTable, TableJoin
from .topic_patterns import is_pattern, matches

S = TypeVar("S", bound="StreamInput")


@dataclass(frozen=True, eq=False)
class StreamInput:
    """The source of rows, the column with the event time, and the steps that transform each row."""

    source: KafkaSource | FrameSource | MergedSource
    time: pl.Expr | None = None
    steps: tuple[RowStep, ...] = ()

    @cached_property
    def columns(self) -> pl.Schema:
        """The columns of a row after all steps."""
        return self.reading.transform(pl.LazyFrame(schema=self.source.schema)).collect_schema()

    @cached_property
    def time_limits(self) -> NumberLimits | None:
        """The numbers that its event time can be computed from, if it is computed from a number."""
        return None if self.time is None else NumberLimits.of(self.time, self.source.schema)

    @property
    def reading(self) -> StreamReading[Self]:
        """What an engine needs to know to read the stream."""
        return StreamReading(self)

    def over_archive(self, place: str) -> Self:
        """The same stream, reading its topics from an archive in place of brokers.

        `place` is the folder or URL passed to `streamgauge archive --output`. `run` then returns the result
        that a run with ``until="latest"`` would have had on the archived topics, by the clock of the
        recording; ``on_spark(spark, streaming=False)`` does the same on Spark. Neither needs a broker. The
        definition stays the same, so the tables of both can be merged and compared.

        Raises `TypeError` for a stream of frames.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> posts = sg.Stream.from_kafka("posts", value=sg.json({"user": pl.String})).tumbling("1m")
        >>> live = posts.agg(users=sg.distinct("user"))
        >>> live.over_archive("archive").fingerprint() == live.fingerprint()
        True
        """
        if not isinstance(self.source, MergedSource):
            return replace(self, source=replace(self.reading.kafka_source, archive=place))
        parts = (
            replace(part, source=replace(part.source, archive=place))
            for part in self.source.parts
            if isinstance(part.source, KafkaSource)
        )
        return replace(self, source=replace(self.source, parts=tuple(parts)))


class StreamReading(Generic[S]):
    """What an engine needs to know about a stream: its topics, and how their rows are transformed."""

    __slots__ = ("_stream",)

    def __init__(self, stream: S) -> None:
        self._stream = stream

    def of_topic(self, topic: str) -> S:
        """The steps for the rows of one topic; for merged streams, the steps of the part that reads it."""
        if not isinstance(self._stream.source, MergedSource):
            return self._stream
        part = self._stream.source.part_of(topic)
        steps = (*part.steps, *self._stream.source.between(part), *self._stream.steps)
        return replace(self._stream, source=part.source, time=part.time, steps=steps)

    def with_steps(self, change: Callable[[RowStep], RowStep]) -> S:
        """The same with other steps, including those of merged streams."""
        steps, source = tuple(map(change, self._stream.steps)), self._stream.source
        if isinstance(source, MergedSource):
            parts = (replace(part, steps=tuple(map(change, part.steps))) for part in source.parts)
            source = replace(source, parts=tuple(parts))
        return replace(self._stream, source=source, steps=steps)

    @property
    def reads_archive(self) -> bool:
        """Whether it reads an archive in place of brokers."""
        parts = self._stream.source.parts if isinstance(self._stream.source, MergedSource) else [self._stream]
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
        if isinstance(self._stream.source, MergedSource):
            return tuple(
                part.source for part in self._stream.source.parts if isinstance(part.source, KafkaSource)
            )
        return (self.kafka_source,)

    @property
    def kafka_source(self) -> KafkaSource:
        """The only source it reads.

        Raises `TypeError` for merged streams of several, and if its rows come from frames, which no engine
        reads.
        """
        if isinstance(self._stream.source, MergedSource):
            if len(self.kafka_sources) == 1:
                return self.kafka_sources[0]
            raise TypeError(
                f"this stream merges the streams of {self.in_words()}; only a single stream can be read here"
            )
        if not isinstance(self._stream.source, KafkaSource):
            raise TypeError("this stream's rows come from frames; only Stream.from_kafka(...) can be run")
        return self._stream.source

    def arrow_types(self) -> dict[str, Any]:
        """The Arrow types of `columns`. Raises `TypeError`, naming the column, for types that Arrow lacks."""
        return {name: _arrow_type(name, kind) for name, kind in self._stream.columns.items()}

    def transform(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """Apply all steps to a frame; `carried` names columns that selections must not drop."""
        for step in self._stream.steps:
            frame = step.apply(frame, carried)
        return frame

    @property
    def reads_several(self) -> bool:
        """Whether it may read several topics."""
        topics = [topic for part in self.parts() for topic in part.topics]
        return len(topics) > 1 or any(map(is_pattern, topics))

    @property
    def looks_back(self) -> bool:
        """Whether resuming at an offset requires earlier rows of any of its topics."""
        return self.looking_back is not None

    @property
    def looking_back(self) -> str | None:
        """The verb of the step that depends on earlier rows; None if each row is independent."""
        looking = (Deduplicate, FillForward, StreamJoin)
        steps = (step for part in self.parts() for step in part.steps)
        return next((step.verb for step in steps if isinstance(step, looking)), None)

    @property
    def joined(self) -> JoinedSource | None:
        """The join, if it reads two streams that are joined row by row."""
        return self._stream.source if isinstance(self._stream.source, JoinedSource) else None

    @property
    def tables(self) -> list[LookupTable]:
        """The tables that its rows are joined with, each once."""
        steps = [step for part in self.parts() for step in part.steps]
        joined = [step.table for step in steps if isinstance(step, TableJoin)]
        return list({id(table): table for table in joined}.values())

    def parts(self) -> tuple[Part, ...]:
        """The sources that it reads, each with all steps for its rows."""
        if isinstance(self._stream.source, MergedSource):
            between = self._stream.source.between
            parts = self._stream.source.parts
            return tuple(Part(p.source, p.time, (*p.steps, *between(p), *self._stream.steps)) for p in parts)
        return (Part(self._stream.source, self._stream.time, self._stream.steps),)

    def in_words(self, otherwise: str = "") -> str:
        """What it reads, in words; `otherwise` if its rows come from frames."""
        topics = [p.source.topic for p in self.parts() if isinstance(p.source, KafkaSource)]
        return " and ".join(topics) or otherwise


@lru_cache(1_000)
def _arrow_type(name: str, kind: pl.DataType) -> pa.DataType:
    """The Arrow type of a column. Refuses Python objects: Polars would pass their addresses to Arrow."""
    try:
        if kind != pl.Object:
            return pl.Series(name, [], kind).to_arrow().type
    except pa.ArrowInvalid:
        pass
    raise TypeError(f"column {name!r} is {kind}, for which Arrow has no type; cast it to Int64 or String")
