"""Merging streams: of several sources, each with its own event time and steps, or of one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...sketches.core.lazy import pl
from .expression_text import expression_text
from .functions import FunctionStep
from .sources import FrameSource, KafkaSource
from .steps import RowStep, Step
from .topic_patterns import is_pattern, matches


@dataclass(frozen=True, eq=False)
class Part:
    """What one of several merged streams reads, and its steps until all streams have the same columns."""

    source: KafkaSource | FrameSource
    time: pl.Expr | None
    steps: tuple[RowStep, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """The names and patterns of its topics."""
        return self.source.topics if isinstance(self.source, KafkaSource) else ()

    def definition(self) -> dict[str, Any]:
        """Everything that determines its rows, as plain JSON."""
        return {
            "source": self.source.definition(),
            "time": None if self.time is None else expression_text(self.time.meta.undo_aliases()),
            "steps": [step.definition() for step in self.steps],
        }

    def rows_like(self, other: Part) -> bool:
        """Whether both start from the same rows with the same event times, so one decoding serves both."""
        if self.source is not other.source and not isinstance(self.source, KafkaSource):
            return False
        one, two = self.definition(), other.definition()
        return (one["source"], one["time"]) == (two["source"], two["time"])


@dataclass(frozen=True, eq=False)
class MergedSource:
    """Several sources of one cluster; after each part's own steps, all rows have the same columns."""

    parts: tuple[Part, ...]
    schema: pl.Schema

    def part_of(self, topic: str) -> Part:
        """The part that reads a topic; a part that names it takes precedence over patterns."""
        reading = [part for part in self.parts if topic in part.topics]
        reading += [part for part in self.parts if matches(part.topics, topic)]
        return reading[0]

    def between(self, part: Part) -> tuple[RowStep, ...]:
        """The steps between a part's own steps and those that all rows go through."""
        return ()

    def definition(self) -> dict[str, Any]:
        """What it reads, as plain JSON; `Part.definition` has the transformation of its rows."""
        return {"merged": [part.source.definition() for part in self.parts]}


@dataclass(frozen=True, eq=False)
class MergeStep:
    """Apply each of several lists of steps to each row, and concatenate the results."""

    ways: tuple[tuple[RowStep, ...], ...]
    verb: str = "merge"
    drops_rows: bool = True

    def check(self, schema: Mapping[str, Any]) -> None:
        """Do nothing: its steps were checked when the merged streams were built."""

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """`frame` transformed; `carried` names columns that selections must not drop."""
        frames = []
        for steps in self.ways:
            way = frame
            for step in steps:
                way = step.apply(way, carried)
            frames.append(way)
        columns = frames[0].collect_schema().names()
        merged = pl.concat([way.select(columns) for way in frames])
        return merged.sort(*carried, maintain_order=True) if carried else merged

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, and each list of steps in words."""
        return [self.verb, *map(words_of, self.ways)]


def merged(parts: Sequence[Part], schema: pl.Schema) -> Part | MergedSource:
    """Return a single part if all parts read the same rows, otherwise a source of several.

    Raises `ValueError` for parts that no run could read together, and `TypeError` if only some have rows from
    frames.
    """
    alike: list[list[Part]] = []
    for part in parts:
        known = next((same for same in alike if same[0].rows_like(part)), None)
        if known is None:
            alike.append([part])
        else:
            known.append(part)
    distinct = [_one_of(same) for same in alike]
    if len(distinct) == 1:
        return distinct[0]
    sources = [part.source for part in distinct if isinstance(part.source, KafkaSource)]
    if len(sources) < len(distinct):
        raise TypeError("merge: a stream's rows come from frames; only streams of topics can be merged")
    _check_together(sources)
    distinct.sort(key=lambda part: part.topics)
    return MergedSource(tuple(distinct), schema)


def differing_columns(first: Mapping[str, Any], other: Mapping[str, Any], name: str) -> list[str]:
    """The columns in which the stream called `name` differs from the first one, in words.

    >>> differing_columns({"user": pl.Int64(), "at": pl.Int64()}, {"user": pl.String(), "id": pl.Int8()}, "b")
    ['"user" is Int64, and String in b', 'b has no "at"', 'only b has "id"']
    """
    types = [(column, first[column], other[column]) for column in first if column in other]
    differences = [f'"{column}" is {one}, and {two} in {name}' for column, one, two in types if one != two]
    differences += [f'{name} has no "{column}"' for column in first if column not in other]
    return differences + [f'only {name} has "{column}"' for column in other if column not in first]


def _one_of(same: list[Part]) -> Part:
    """Combine parts that read the same rows."""
    if len(same) == 1:
        return same[0]
    ways = [part.steps for part in same]
    shared = 0
    while all(len(way) > shared and way[shared] is ways[0][shared] for way in ways):
        shared += 1
    for step in (step for way in ways for step in way[shared:]):
        if not isinstance(step, (Step, FunctionStep, MergeStep)):
            raise ValueError(
                f"merge: two of the streams read the same rows, and one has {step.verb}, which looks at more "
                f"than one row; write .{step.verb}(...) before branch or after merge"
            )
    step = MergeStep(tuple(way[shared:] for way in ways))
    return Part(same[0].source, same[0].time, (*ways[0][:shared], step))


def _check_together(sources: Sequence[KafkaSource]) -> None:
    named: set[str] = set()
    for source in sources:
        names = {topic for topic in source.topics if not is_pattern(topic)}
        if both := names & named:
            raise ValueError(
                f"merge: two of the streams read the topic {min(both)!r} with different decoders or event "
                "times; a message can be read in one way only"
            )
        named |= names
        if source.settings != sources[0].settings or source.corrupt != sources[0].corrupt:
            raise ValueError(
                f"merge: {sources[0].topic} and {source.topic} are read from different brokers or with "
                "different settings, but a run has one reader: give both the same bootstrap_servers, config "
                "and corrupt"
            )


def words_of(steps: Sequence[RowStep]) -> str:
    """Steps as one line of text."""
    definitions = [step.definition() for step in steps]
    return " → ".join(f"{verb}({', '.join(map(str, rest))})" for verb, *rest in definitions) or "as it is"
