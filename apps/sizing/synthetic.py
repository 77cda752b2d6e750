"""A stream over synthetic rows, and its deltas, to measure the costs of aggregates' sketches."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...operators.families import FAMILIES, family

if TYPE_CHECKING:
    import polars as pl

    from ...operators.definition.aggregate import Aggregate
    from ...operators.definition.stream import Stream
    from ...operators.sketching.delta import Delta

BEGIN = 1_767_225_600
IDS, WORDS = 1_000_000, 100_000
_OF_WORDS = {"top_k", "frequency", "sample"}
_OF_IDS = {"distinct", "distinct_set", "membership", "sliding_distinct", "sliding_membership"}
_MORE = {"weight": "number", "key": "word"}
"""Columns for further required inputs."""


def aggregates_of(text: str) -> dict[str, Aggregate]:
    """Parse aggregates from names, with parameters that aren't the defaults; return them by column name.

    Raises `ValueError` for a name or parameter that doesn't exist.

    >>> [*aggregates_of("count,distinct:lg_k=14,distinct")]
    ['count', 'distinct', 'distinct_2']
    """
    result: dict[str, Aggregate] = {}
    times = Counter[str]()
    for entry in text.split(","):
        name, *given = (part.strip() for part in entry.split(":"))
        times[name] += 1
        column = name if times[name] == 1 else f"{name}_{times[name]}"
        result[column] = _aggregate(name, given)
    return result


def _aggregate(name: str, given: Sequence[str]) -> Aggregate:
    from ...operators.definition import aggregates

    if name not in FAMILIES or family(name).stored:
        known = ", ".join(own for own in FAMILIES if not family(own).stored)
        raise ValueError(f"no aggregate is called {name!r}; there are {known}")
    function = getattr(aggregates, name)
    parameters = [own for own in inspect.signature(function).parameters if own != "column"]
    arguments: dict[str, Any] = {own: _MORE[own] for own in family(name).inputs if own in _MORE}
    for pair in given:
        key, _, value = pair.partition("=")
        if key not in parameters or key in _MORE:
            allowed = ", ".join(own for own in parameters if own not in _MORE) or "no parameters"
            raise ValueError(f"{name} has no parameter {key!r}; it has {allowed}")
        try:
            arguments[key] = int(value) if value.lstrip("-").isdigit() else float(value)
        except ValueError:
            raise ValueError(f"{name}: {key} must be a number, got {value!r}") from None
    if name == "count":
        return function(**arguments)
    return function("word" if name in _OF_WORDS else "id" if name in _OF_IDS else "number", **arguments)


def schema() -> dict[str, Any]:
    """Return the columns of rows: a time, a key, one of a million names, a word by Zipf's law, a number."""
    import polars as pl

    return {"at": pl.Int64, "key": pl.Int64, "id": pl.String, "word": pl.String, "number": pl.Float64}


def stream_of(aggregates: dict[str, Aggregate]) -> Stream:
    """Return a stream of such rows in windows of a minute by key."""
    import polars as pl

    from ...operators.definition.stream import Stream

    rows = Stream.from_schema(schema(), time=pl.from_epoch("at"))
    return rows.group_by("key").tumbling("1m", delay="0s").agg(**aggregates)


def frame_of(rows: int, groups: int, seed: int = 1) -> pl.DataFrame:
    """Return this many rows of one minute, each in a random group."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng(seed)
    words = np.minimum(random.zipf(1.3, rows), WORDS)
    return pl.DataFrame(
        {
            "at": BEGIN + np.sort(random.integers(0, 60, rows)),
            "key": random.integers(0, groups, rows),
            "id": pl.select(pl.format("u{}", pl.Series(random.integers(0, IDS, rows)))).to_series(),
            "word": pl.select(pl.format("w{}", pl.Series(words))).to_series(),
            "number": np.round(random.lognormal(3, 1, rows), 2),
        }
    )


def delta_of(stream: Stream, frame: pl.DataFrame) -> Delta:
    """Return the delta of a partition's first rows."""
    import numpy as np

    from ...operators.sketching.partition_state import PartitionState

    state = PartitionState(stream, "input", 0, 0, clock=lambda: BEGIN + 1e9)
    state.add(frame, None, np.arange(frame.height), frame.height, lambda numbers, reason: None)
    return state.delta()


def delta_bytes(delta: Delta) -> tuple[float, float]:
    """Return the bytes of a delta on the table topic without its rows, and per row.

    Values and headers are counted, without the brokers' overhead.
    """
    from ...operators.consumer.log.messages import encode

    def size(one: Delta) -> int:
        return sum(
            len(message.value or b"") + sum(len(name) + len(value or b"") for name, value in message.headers)
            for message in encode(one, "table", 1)
        )

    empty = size(replace(delta, table=None))
    assert delta.table is not None
    return empty, (size(delta) - empty) / delta.table.num_rows


def state_bytes(stream: Stream, delta: Delta) -> float:
    """Return the memory in bytes that a merger needs per row of a delta, while its window is open."""
    assert delta.table is not None
    counts = stream_of(aggregates_of("count"))
    # Hash tables begin with room for hundreds of groups, which says nothing about a single group.
    beginning = _open_bytes(counts, delta_of(counts, frame_of(1, 1)))
    return max(_open_bytes(stream, delta) - beginning, 0) / delta.table.num_rows


def _open_bytes(stream: Stream, delta: Delta) -> int:
    from ...operators.consumer.merge.merger import Merger
    from ...operators.watermarks.position import Input

    merger = Merger(stream, [Input("input", 0)])
    merger.offer(delta, 0)
    return merger.state_bytes
