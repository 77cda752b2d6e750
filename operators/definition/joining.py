"""Two streams joined row by row: pairs of rows with equal keys whose event times lie close together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.lazy import pl
from ..windows.durations import duration_text
from .deduplication import Deduplicate
from .filling import FillForward
from .merged import MergedSource, Part, words_of
from .sources import KafkaSource
from .steps import RowStep
from .tables import TableJoin
from .topic_patterns import is_pattern

Between = Literal["inner", "left", "outer"]
"""Which rows are emitted: pairs only, also unmatched rows of the left side, or those of both sides."""

MOST_ROWS = 5_000_000
"""The number of rows that one partition of one side may buffer at a time."""


class TooManyRows(StreamgaugeError, RuntimeError):
    """A partition has more rows within reach than a join of two streams may buffer."""


@dataclass(frozen=True, eq=False)
class JoinedSource(MergedSource):
    """Two sources, left and right, whose rows are paired after each part's own steps.

    `schema` is the schema of the pairs, `sides` are those of the unpaired rows. Rows pair if they are equal
    in the columns `on` and their event times are at most `within_us` apart. A stream that is joined with
    itself has one part, with the rows of both sides (`BothSides`).
    """

    sides: tuple[pl.Schema, pl.Schema]
    on: tuple[str, ...]
    within_us: int
    how: Between
    suffix: str
    limit: int

    def between(self, part: Part) -> tuple[RowStep, ...]:
        """The step that pairs the rows of a part."""
        return (StreamJoin(self, 0 if part is self.parts[0] else 1),)

    @property
    def of_itself(self) -> bool:
        """Whether both sides are rows of one topic."""
        return len(self.parts) == 1

    @property
    def beside(self) -> dict[str, str]:
        """The right side's columns in a pair, and their names there."""
        return _beside(*self.sides, self.on, self.suffix)

    def gives_alone(self, side: int) -> bool:
        """Whether unmatched rows of a side are emitted."""
        return self.how == "outer" or (self.how == "left" and side == 0)

    def paired(self, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
        """Combine rows of both sides into pairs, one beside the other."""
        return left.hstack(right.select(pl.col(name).alias(new) for name, new in self.beside.items()))

    def alone(self, rows: pl.DataFrame, side: int) -> pl.DataFrame:
        """Unmatched rows of one side, with nulls in the other's columns."""
        known = {name: name for name in self.sides[0]} if side == 0 else self.beside
        if side == 1:
            known = {**{name: name for name in self.on}, **known}
        here = {new: name for name, new in known.items()}
        return rows.select(
            pl.col(here[name]).alias(name) if name in here else pl.lit(None, kind).alias(name)
            for name, kind in self.schema.items()
        )

    def definition(self) -> dict[str, Any]:
        """What it reads and how it is joined, as plain JSON."""
        return {
            "joined": [part.source.definition() for part in self.parts],
            "on": list(self.on),
            "within": duration_text(self.within_us),
            "how": self.how,
            "suffix": self.suffix,
        }


_RIGHT = "right"


@dataclass(frozen=True, eq=False)
class BothSides:
    """The rows of one topic on both sides of a join; each side has its own steps.

    `steps` are those of the left and the right side; `sides` are the resulting columns of each.
    """

    steps: tuple[tuple[RowStep, ...], tuple[RowStep, ...]]
    sides: tuple[pl.Schema, pl.Schema]
    verb = "join"
    drops_rows = True

    @property
    def columns(self) -> list[str]:
        """The columns of both sides' rows together."""
        return [_RIGHT, *(f"{side}.{name}" for side in (0, 1) for name in self.sides[side])]

    def check(self, schema: Mapping[str, Any]) -> None:
        """Do nothing: each side's steps were checked when its stream was built."""

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """The left side's rows, then the right side's rows of the same messages."""
        of_sides = []
        for side, schema in enumerate(self.sides):
            own = frame
            for step in self.steps[side]:
                own = step.apply(own, carried)
            named = (pl.col(name).alias(f"{side}.{name}") for name in schema)
            of_sides.append(own.select(*carried, pl.lit(bool(side)).alias(_RIGHT), *named))
        both = pl.concat(of_sides, how="diagonal")
        return both.sort(*carried, maintain_order=True) if carried else both

    def is_right(self, frame: pl.DataFrame) -> pl.Series:
        """A mask of the right side's rows."""
        return frame[_RIGHT]

    def rows_of(self, side: int, frame: pl.DataFrame) -> pl.DataFrame:
        """Rows of one side only, reduced to its columns."""
        return frame.select(pl.col(f"{side}.{name}").alias(name) for name in self.sides[side])

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, and the steps of each side in words."""
        return [self.verb, *map(words_of, self.steps)]


@dataclass(frozen=True, eq=False)
class StreamJoin:
    """The step among one side's steps that pairs its rows with the other side's.

    By itself it only knows the columns of the pairs. It needs the rows of both sides to form them
    (`steps.join_state`).
    """

    source: JoinedSource
    side: int
    verb = "join"
    drops_rows = True

    def check(self, schema: Mapping[str, Any]) -> None:
        """Do nothing: everything was checked when the source was built."""

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """An empty frame with the columns of the pairs: one side alone has no pairs."""
        given = frame.collect_schema()
        schema = {**self.source.schema, **{name: given[name] for name in carried}}
        return pl.LazyFrame(schema=schema)

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, the columns, how, the interval."""
        on, within = json.dumps(self.source.on), duration_text(self.source.within_us)
        return [self.verb, on, f'how="{self.source.how}"', f'within="{within}"']


def joined_source(
    parts: Sequence[Part],
    sides: tuple[pl.Schema, pl.Schema],
    on: Sequence[str],
    within_us: int,
    how: Between,
    suffix: str,
    limit: int,
) -> JoinedSource:
    """Return the source that pairs two streams' rows.

    Raises `TypeError` and `ValueError` for streams that can't be joined, or not this way.
    """
    left, right = sides
    if how not in get_args(Between):
        raise ValueError(f'join: with a stream how must be "inner", "left" or "outer", got {how!r}')
    if not isinstance(suffix, str):
        raise TypeError(f"join: suffix must be a string to append to column names, got {suffix!r}")
    if type(limit) is not int or limit < 1:
        raise ValueError(f"join: limit must be an integer ≥ 1, got {limit!r}")
    _check_keys(left, right, on)
    for part in parts:
        _check_part(part)
    one, two = (part.source for part in parts)
    assert isinstance(one, KafkaSource)
    assert isinstance(two, KafkaSource)
    if one.settings != two.settings or one.corrupt != two.corrupt:
        raise ValueError(
            f"join: {one.topic} and {two.topic} are read from different brokers or with different settings, "
            "but a run has one reader: give both the same bootstrap_servers, config and corrupt"
        )
    beside = _beside(left, right, on, suffix)
    if len({*left, *beside.values()}) < len(left) + len(beside):
        raise ValueError(
            "join: a column of the other stream has a name that is taken, even with the suffix; choose "
            "another suffix="
        )
    schema = pl.Schema({**left, **{new: right[name] for name, new in beside.items()}})
    if one.topic == two.topic:
        if not parts[0].rows_like(parts[1]):
            raise ValueError(
                f"join: both streams read the topic {one.topic!r}, with different decoders or event times; a "
                "message can be read in one way only: begin both with the same from_kafka(...)"
            )
        both = BothSides((parts[0].steps, parts[1].steps), sides)
        parts = [Part(one, parts[0].time, (both,))]
    return JoinedSource(tuple(parts), schema, (left, right), tuple(on), within_us, how, suffix, limit)


def _beside(
    left: Mapping[str, Any], right: Mapping[str, Any], on: Sequence[str], suffix: str
) -> dict[str, str]:
    return {name: name + suffix if name in left else name for name in right if name not in on}


def _check_keys(left: Mapping[str, Any], right: Mapping[str, Any], on: Sequence[str]) -> None:
    if not on:
        raise TypeError('join: name the column that both streams have, as in on="user"')
    for name in on:
        if not isinstance(name, str):
            raise TypeError(f'join: on must name a column of both streams, as in on="user", got {name!r}')
        for side, schema in (("left", left), ("right", right)):
            if name not in schema:
                raise ValueError(f"join: no column {name!r} in {', '.join(schema)} of the {side} stream")
        if left[name] != right[name]:
            raise TypeError(
                f"join: {name!r} is of type {left[name]} on the left and {right[name]} on the right; cast one"
            )
        if left[name].is_nested():
            raise TypeError(f"join: {name!r} is of type {left[name]}; name its parts one by one")


def _check_part(part: Part) -> None:
    """Raise for a stream that doesn't read one topic row by row."""
    if not isinstance(part.source, KafkaSource):
        raise TypeError("join: a stream's rows come from frames; only streams of topics can be joined")
    if len(part.source.topics) > 1 or is_pattern(part.source.topic):
        raise ValueError(
            f"join: a stream reads {part.source.topic}; each side of a join reads one topic by its name"
        )
    for step in part.steps:
        if isinstance(step, TableJoin):
            raise ValueError(
                f"join: the stream of {part.source.topic} is joined with the table {step.table.topic!r}, "
                "whose rows change; write .join(table, ...) after the two streams are joined"
            )
        if isinstance(step, Deduplicate | FillForward):
            raise ValueError(
                f"join: the stream of {part.source.topic} has {step.verb}(), which isn't allowed in a stream "
                "that is joined with another; do it where the topic is written"
            )
