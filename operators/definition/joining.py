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
from .merged import MergedSource, Part
from .sources import KafkaSource
from .steps import RowStep
from .tables import TableJoin
from .topic_patterns import is_pattern

Between = Literal["inner", "left", "outer"]
"""Which rows are given: pairs; those, and rows of the left without a partner; or of either side without."""

MOST_ROWS = 5_000_000
"""Rows that one partition of one side may hold at a time."""


class TooManyRows(StreamgaugeError, RuntimeError):
    """A partition has more rows within reach than a join of two streams may hold."""


@dataclass(frozen=True, eq=False)
class JoinedSource(MergedSource):
    """Two sources, left and right, whose rows are paired once each part's own steps are done.

    `schema` is that of the pairs, `sides` those of the rows before. Rows pair if their values in the columns
    `on` are equal and their event times at most `within_us` apart.
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
    def beside(self) -> dict[str, str]:
        """The columns of the right that a pair has, and how they are called there."""
        return _beside(*self.sides, self.on, self.suffix)

    def gives_alone(self, side: int) -> bool:
        """Whether rows of a side are given that find no partner."""
        return self.how == "outer" or (self.how == "left" and side == 0)

    def paired(self, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
        """Rows of both sides, one beside the other."""
        return left.hstack(right.select(pl.col(name).alias(new) for name, new in self.beside.items()))

    def alone(self, rows: pl.DataFrame, side: int) -> pl.DataFrame:
        """Rows of one side without a partner: the other's columns are null."""
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


@dataclass(frozen=True, eq=False)
class StreamJoin:
    """The place among one side's steps at which its rows are paired with those of the other.

    By itself it says which columns the pairs have. What they are is known only where both sides are
    (`joins.join_state`).
    """

    source: JoinedSource
    side: int
    verb = "join"
    drops_rows = True

    def check(self, schema: Mapping[str, Any]) -> None:
        """Everything was checked when the source was made."""

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """A frame of pairs, for their columns: this side alone has none."""
        given = frame.collect_schema()
        schema = {**self.source.schema, **{name: given[name] for name in carried}}
        return pl.LazyFrame(schema=schema)

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, the columns, how, the stretch."""
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
    """The source of two streams' pairs.

    Raises `TypeError` and `ValueError` for streams that can't be joined, or not this way.
    """
    left, right = sides
    if how not in get_args(Between):
        raise ValueError(f'join: with a stream how must be "inner", "left" or "outer", got {how!r}')
    if not isinstance(suffix, str):
        raise TypeError(f"join: suffix must be text that is put behind a column's name, got {suffix!r}")
    if type(limit) is not int or limit < 1:
        raise ValueError(f"join: limit must be an integer ≥ 1, got {limit!r}")
    _check_keys(left, right, on)
    for part in parts:
        _check_part(part)
    one, two = (part.source for part in parts)
    assert isinstance(one, KafkaSource)
    assert isinstance(two, KafkaSource)
    if one.topic == two.topic:
        raise ValueError(
            f"join: both streams read the topic {one.topic!r}; a stream can't be joined with itself. Write "
            "the rows of one to a topic of their own"
        )
    if one.settings != two.settings or one.corrupt != two.corrupt:
        raise ValueError(
            f"join: {one.topic} and {two.topic} are read from other brokers or with other settings; one run "
            "reads with one: give both the same bootstrap_servers, config and corrupt"
        )
    beside = _beside(left, right, on, suffix)
    if len({*left, *beside.values()}) < len(left) + len(beside):
        raise ValueError(
            "join: a column's name is in use on both sides, with the suffix too; choose another suffix="
        )
    schema = pl.Schema({**left, **{new: right[name] for name, new in beside.items()}})
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
    """Raise for a stream whose rows are not those of one topic, each by itself."""
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
                f"join: the stream of {part.source.topic} has {step.verb}(), which can't stand in a stream "
                "that is joined with another; do that where the topic is written"
            )
