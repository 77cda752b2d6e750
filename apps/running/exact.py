"""Exact results to compare with the estimates of a replay.

They are computed from the same messages, decoded and windowed like the stream, but only with counts: of every
different value, in every window and group. This needs memory for each value, which sketches avoid. So it
relies on decoding and windows, which other tests verify, but not on sketches.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ...operators.definition.aggregate import Aggregate
from ...operators.definition.aggregates import count
from ...operators.definition.sources import KafkaSource
from ...operators.definition.stream import Stream
from ...operators.formats.messages import Messages
from ...operators.table.merge import Accumulator
from ...operators.table.query import query
from ...operators.table.schema import END, START, aggregates_of, keys_of, table_schema
from ...operators.table.window_groups import WindowGroups
from ...operators.table.windows import edges
from ...operators.testing import StreamTester
from ..app import Message

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALUE = "exact_value"
_AT_A_TIME = 20_000
_CHECKED = ("distinct", "distinct_set", "top_k", "quantiles", "kll_quantiles")
_STD_DEVS = 3
"""Bounds of `distinct` hold in 99.7 % of all windows, so that few of many windows fail by chance."""

Counts = Mapping[tuple[Any, ...], Mapping[Any, int]]
"""How often each value occurred, by window and keys."""


def with_exact(stream: Stream, table: pa.Table, messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return a table's answers, each estimate with its bounds, the `exact` result and whether it is `inside`.

    Samples, and all estimates of sessions and sliding windows, have no exact result and are unchanged.
    """
    return compared(table, exact_counts(stream, table, messages))


def exact_counts(stream: Stream, table: pa.Table, messages: Iterable[Message]) -> dict[str, Counts]:
    """Return, for each estimate of a table that can be checked, how often each value occurred."""
    return exact_counts_together({"": stream}, {"": table}, messages)[""]


def exact_counts_together(
    streams: Mapping[str, Stream], tables: Mapping[str, pa.Table], messages: Iterable[Message]
) -> dict[str, dict[str, Counts]]:
    """Compute `exact_counts` for each of the tables, by name, whose streams read one topic.

    A message is decoded once for all streams with the same decoder.
    """
    groups = {name: WindowGroups.of_table(table).answers([]) for name, table in tables.items()}
    testers = {
        (name, column): _counting(streams[name], aggregate)
        for name, table in tables.items()
        if (window := streams[name].window) is None or not window.by_group
        for column, aggregate in aggregates_of(table.schema).items()
        if aggregate.name in _CHECKED
    }
    if testers:
        feed_testers(list(testers.values()), messages)
    counts: dict[str, dict[str, Counts]] = {name: {} for name in tables}
    for (name, column), tester in testers.items():
        counts[name][column] = _counts(tester, groups[name])
    return counts


def compared(table: pa.Table, counts: Mapping[str, Counts]) -> list[dict[str, Any]]:
    """Return the answers of a table beside the exact results."""
    frame, aggregates = query(table), aggregates_of(table.schema)
    if "distinct" in {one.name for one in aggregates.values()}:
        frame = frame.with_columns(
            _wider(one, name, table) for name, one in aggregates.items() if one.name == "distinct"
        )
    by = [START, END, *keys_of(table.schema)]
    rows = frame.sort(by, nulls_last=True).to_dicts()
    for row in rows:
        where = tuple(row[name] for name in by)
        for name, of_windows in counts.items():
            row[name] = _compared(aggregates[name], row[name], of_windows.get(where, {}))
    return rows


def in_all(table: pa.Table, counts: Mapping[str, Counts]) -> tuple[pa.Table, dict[str, Counts]]:
    """Merge all windows of a table, which are adjacent, into one, and their counts as well."""
    if not table.num_rows:
        return table, {}
    starts, ends = edges(table)
    types = {key: table.schema.field(key).type for key in keys_of(table.schema)}
    whole = Accumulator(table_schema(types, aggregates_of(table.schema), None))
    first, length = starts.min(), ends.max() - starts.min()
    whole.merge_as(table, np.full(len(starts), first), np.full(len(starts), length))
    span = tuple(_EPOCH + timedelta(microseconds=int(edge)) for edge in (first, ends.max()))
    totals: dict[str, Counts] = {}
    for name, of_windows in counts.items():
        sums: dict[tuple[Any, ...], Counter[Any]] = {}
        for (_, _, *keys), values in of_windows.items():
            sums.setdefault((*span, *keys), Counter()).update(values)
        totals[name] = sums
    return whole.table(), totals


def all_inside(compared_: Any) -> bool:
    """Whether every estimate in answers lies inside its bounds."""
    if isinstance(compared_, dict):
        return compared_.get("inside_bounds", True) and all(map(all_inside, compared_.values()))
    return all(map(all_inside, compared_)) if isinstance(compared_, list) else True


def _wider(aggregate: Aggregate, name: str, table: pa.Table) -> pl.Series:
    groups, column = aggregate.groups(table.num_rows), table.column(name).combine_chunks()
    groups.merge(pl.int_range(table.num_rows, eager=True).to_numpy(), column)
    lower, upper = groups.bounds(_STD_DEVS)  # type: ignore[attr-defined]
    estimates = groups.estimates()  # type: ignore[attr-defined]
    parts = pl.DataFrame({"estimate": estimates, "lower": lower, "upper": upper})
    return parts.to_struct(name)


def _counting(stream: Stream, aggregate: Aggregate) -> StreamTester:
    """Return a tester that counts each value of an aggregate of a stream."""
    assert aggregate.column is not None
    rows = replace(stream, window=None, keys=(), aggregates={})
    rows = rows.with_columns(**{_VALUE: pl.col(aggregate.column)})
    if isinstance(rows.columns[_VALUE], pl.List):
        rows = rows.explode(_VALUE)
    windowed = replace(
        rows,
        window=stream.window,
        delay_us=stream.delay_us,
        max_ahead_us=stream.max_ahead_us,
        keys=(*stream.keys, _VALUE),
    )
    return StreamTester(windowed.agg(n=count()), start=datetime.now(UTC))


def feed_testers(testers: Sequence[StreamTester], messages: Iterable[Message]) -> None:
    """Feed messages of a topic to testers."""
    sources: dict[str, KafkaSource] = {}
    readers: dict[str, list[StreamTester]] = {}
    for tester in testers:
        source = tester.stream.reading.kafka_source
        definition = json.dumps(source.definition(), sort_keys=True)
        sources.setdefault(definition, source)
        readers.setdefault(definition, []).append(tester)
    remaining, offset = iter(messages), 0
    while some := list(islice(remaining, _AT_A_TIME)):
        now = int(time.time() * 1000)
        batch = Messages.of(
            [message.value for message in some],
            [message.key for message in some],
            topic=testers[0].stream.reading.kafka_source.topic,
            first_offset=offset,
            timestamps=[now if message.sent_ms is None else message.sent_ms for message in some],
        )
        offset += len(some)
        for definition, source in sources.items():
            for part, decoded in source.decoded(batch):
                for tester in readers[definition]:
                    tester.feed_decoded(part, decoded)


def _counts(tester: StreamTester, groups: pl.DataFrame) -> Counts:
    """Return how often a tester saw each value in these windows and groups."""
    counts: dict[tuple[Any, ...], dict[Any, int]] = {}
    # If a table only shows the largest groups, the others would be most of the work.
    shown = tester.finish().windows().join(groups, on=groups.columns, how="semi", nulls_equal=True)
    for start, end, *keys, value, n in shown.iter_rows():
        if value is not None and not (isinstance(value, float) and math.isnan(value)):
            counts.setdefault((start, end, *keys), {})[value] = n
    return counts


def _compared(aggregate: Aggregate, answer: Any, counts: Mapping[Any, int]) -> Any:
    if aggregate.name == "top_k":
        return [_inside(item, counts.get(item["item"], 0)) for item in answer or ()]
    if aggregate.name in ("distinct", "distinct_set"):
        return _inside(answer, sum(value != "" for value in counts))
    ordered = sorted(counts.items())
    total = sum(counts.values())
    quantiles = [
        _inside(one, _at_rank(ordered, _rank(aggregate.name, one["q"], total)))
        for one in answer["quantiles"] or ()
    ]
    return {**answer, "quantiles": quantiles}


def _rank(name: str, q: float, total: int) -> int:
    """Return which of `total` values, from 0, a family defines as the quantile at q."""
    return math.ceil(q * total) - 1 if name == "kll_quantiles" else math.floor(q * (total - 1))


def _at_rank(ordered: list[tuple[Any, int]], rank: int) -> float | None:
    for value, n in ordered:
        rank -= n
        if rank < 0:
            return value
    return None


def _inside(answer: dict[str, Any], exact: float | None) -> dict[str, Any]:
    if exact is None:
        return {**answer, "exact": None, "inside_bounds": False}
    # Floating-point rounding of an edge is not an error of the estimate.
    slack = 1e-9 * abs(exact)
    inside = answer["lower"] - slack <= exact <= answer["upper"] + slack
    return {**answer, "exact": exact, "inside_bounds": bool(inside)}
