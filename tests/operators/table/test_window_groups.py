"""Closed windows as they live and as bytes: one answer, for every family, whatever is requested first."""

from __future__ import annotations

import copy
from datetime import datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.merge.pane import PanePart, groups_of_parts
from streamgauge.operators.definition.aggregate import aggregate
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.families import FAMILIES, MOMENT
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.merge import Accumulator, RowAccumulator
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import START, schema_of
from streamgauge.operators.table.window_groups import WindowGroups, as_few
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

from ...cases import each

ROWS = 600
KINDS = {"int": pl.Int64, "double": pl.Float64, "text": pl.String}


def frame(seed: int, kind: str) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    minutes = np.sort(random.integers(0, 3, ROWS))
    x = pl.Series(random.zipf(1.5, ROWS) % 500).cast(KINDS[kind])
    return pl.DataFrame(
        {
            "at": pl.Series([datetime(2026, 1, 1, 0, minute) for minute in minutes.tolist()]),
            "k": pl.Series(random.integers(0, 4, ROWS)).cast(pl.String),
            "x": x.set(pl.Series(random.random(ROWS) < 0.05), None),
            "weight": random.random(ROWS) + 0.5,
        }
    )


def parts(name: str, kind: str) -> tuple[Stream, list[pa.Table]]:
    """A stream with this aggregate, and the tables of two deltas; skips what the family doesn't take."""
    inputs = {one: "weight" if one in ("weight", "value") else "k" for one in FAMILIES[name].inputs}
    inputs = {one: column for one, column in inputs.items() if one not in MOMENT}
    rows = [frame(seed, kind) for seed in (1, 2)]
    try:
        column = None if name == "count" else "x"
        windows = Stream.from_schema(rows[0].schema, time="at").group_by("k").tumbling("1m")
        stream = windows.agg(answer=aggregate(name, column, **inputs), rows=aggregate("count", None))
    except TypeError:
        pytest.skip(f"{name} takes no {kind}")
    tables = []
    for salt, part in enumerate(rows):
        sketcher = Sketcher(stream, salt=salt)
        sketcher.add(part, PartitionTime())
        tables.append(sketcher.drain())
    return stream, tables


def merged(stream: Stream, tables: list[pa.Table]) -> Accumulator:
    accumulator = Accumulator(schema_of(stream))
    for table in tables:
        accumulator.merge(table)
    return accumulator


@pytest.mark.slow
@each("kind", KINDS)
@each("name", FAMILIES)
def test_answers_alive_are_those_of_the_bytes_and_change_none(name: str, kind: str) -> None:
    stream, tables = parts(name, kind)
    alive = merged(stream, tables).groups()
    written = alive.alone().table
    answers = alive.answers()
    assert answers.equals(query(written)) and answers.schema == query(written).schema
    assert alive.table.equals(written, check_metadata=True)
    assert alive.alone().answers().equals(answers)
    half = len(alive) // 2
    some = alive.slice(half, len(alive)).answers(["answer"])
    assert some["answer"].to_list() == query(written[half:])["answer"].to_list()
    # Some families draw by the clock, so that another merger of the same tables has other bytes.
    other = merged(stream, tables).groups()
    assert other.answers().equals(query(other.table))


@each("name", FAMILIES)
def test_windows_that_are_merged_together_have_the_bytes_that_each_has_alone(name: str) -> None:
    stream, (table, _) = parts(name, "double")
    schema = schema_of(stream)
    starts = table.column(START).cast(pa.int64()).to_numpy()
    windows = {int(start): table.filter(pa.array(starts == start)) for start in np.unique(starts)}

    def filled() -> dict[int, PanePart]:
        made = {start: PanePart(schema) for start in windows}
        for start, part in made.items():
            part.merge(windows[start])
        return made

    together = {start: make() for start, make in groups_of_parts(schema, filled()).items()}
    assert len(together) == 3
    for start, part in filled().items():
        assert together[start].table.equals(part.table())
        assert together[start].answers().equals(query(part.table()))
    whole = as_few(together.values())
    assert len(whole) == 1 and whole[0].table.equals(pa.concat_tables(g.table for g in together.values()))


@each("name", FAMILIES)
def test_rows_alone_keep_their_bytes_and_few_others_are_merged(name: str) -> None:
    stream, (table, other) = parts(name, "double")
    stored, wanted = RowAccumulator(schema_of(stream)), merged(stream, [table, other[:3]])
    stored.merge(table)
    assert stored.groups().table.equals(table)
    stored.merge(other[:3])
    result = stored.groups().table
    assert result.select(["k", "rows"]).equals(wanted.table().select(["k", "rows"]))
    assert result.slice(3).equals(table.slice(3)) and len(query(result)) == len(table)
    stored.merge(other)  # now most groups have several rows
    assert stored.groups().alive and stored.groups().answers()["rows"].sum() == 2 * ROWS + sum(
        other[:3].column("rows").to_pylist()
    )


def test_what_a_pane_gets_later_is_not_in_what_was_copied_before() -> None:
    stream, tables = parts("distinct", "int")
    one = {START: int(tables[0].column(START).cast(pa.int64())[0].as_py())}
    made = groups_of_parts(schema_of(stream), {one[START]: PanePart(schema_of(stream))})
    assert len(made[one[START]]()) == 0
    before = merged(stream, tables[:1]).groups()
    other = copy.deepcopy(before)
    assert other.table.equals(before.table)


def test_final_is_said_of_the_groups_and_of_the_table() -> None:
    stream, tables = parts("count", "int")
    groups = merged(stream, tables).groups()
    assert groups.final is None
    for final in (True, False):
        said = groups.with_final(final)
        assert said.final is final and WindowGroups.of_table(said.table).final is final
