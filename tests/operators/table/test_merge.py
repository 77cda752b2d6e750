"""Tables merge to the whole in any order, into coarser windows and fewer keys."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import distinct, top_k
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import read_parquet, write_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.sketches.core.protocol import SketchError

from .posts import REQUESTED, SOURCE, frame, table


def registers(result: pa.Table) -> list[float]:
    return [round(cell["estimate"], 6) for cell in query(result)["users"]]


def test_parts_merge_to_the_whole_in_any_order() -> None:
    rows = frame(1)
    whole = merge(table(rows))
    parts = [table(rows[low : low + 1_000]) for low in range(0, 4_000, 1_000)]
    for order in itertools.islice(itertools.permutations(parts), 0, 24, 5):
        result = merge(order)
        assert (
            result.to_arrow()
            .select(["window_start", "lang", "place", "posts", "end"])
            .equals(whole.to_arrow().select(["window_start", "lang", "place", "posts", "end"]))
        )
        assert registers(result) == registers(whole)
    pairs = merge([merge(parts[:2]), merge(parts[2:])])
    assert pairs.column("posts").equals(whole.column("posts")) and registers(pairs) == registers(whole)


def test_rolling_up_gives_what_a_coarser_stream_gives() -> None:
    rows = frame(2)
    coarse = SOURCE.group_by("lang").tumbling("1m", delay="1h").agg(**REQUESTED)
    result, wanted = merge(table(rows), by=["lang"], every="1m"), merge(table(rows, coarse))
    assert result.schema.equals(wanted.schema, check_metadata=True)
    assert (
        result.to_arrow()
        .select(["window_start", "window_end", "lang", "posts", "end"])
        .equals(wanted.to_arrow().select(["window_start", "window_end", "lang", "posts", "end"]))
    )
    assert registers(result) == registers(wanted)
    assert merge(result, by=[], every="1h").column("posts").to_pylist() == [4_000]


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SketchError, match="10s don't fit into windows of 15s"):
        merge(table(frame(1)), every="15s")
    with pytest.raises(ValueError, match="not a key"):
        merge(table(frame(1)), by=["user"])


def test_tables_of_other_definitions_are_refused() -> None:
    other = (
        SOURCE.group_by("lang", "place")
        .tumbling("10s")
        .agg(**{**REQUESTED, "users": distinct("user", lg_k=10)})
    )
    reported = r'definitions; .* "users" changed from distinct\("user", lg_k=12\) of long items to distinct'
    with pytest.raises(SketchError, match=reported):
        merge([table(frame(1)), table(frame(1), other)])
    fewer = SOURCE.group_by("lang").tumbling("10s").agg(**REQUESTED)
    with pytest.raises(SketchError, match='the grouping changed from "lang", "place" to "lang"'):
        merge([table(frame(1)), table(frame(1), fewer)])
    with pytest.raises(ValueError, match="no tables"):
        merge([])


def test_tables_that_are_asked_other_questions_merge_and_keep_the_first_ones(tmp_path: Path) -> None:
    rows = frame(3)
    tables = [
        table(rows[low : low + 2_000], SOURCE.tumbling("1h", delay="1h").agg(users=top_k("user", k=k)))
        for low, k in ((0, 5), (2_000, 10))
    ]
    write_parquet(tables[1], tmp_path / "stored.parquet")
    stored = read_parquet(tmp_path / "stored.parquet")
    counts = rows["user"].value_counts(sort=True)["count"].to_list()
    for order, k in (([tables[0], stored], 5), ([stored, tables[0]], 10)):
        (answer,) = query(merge(order))["users"]
        assert [item["estimate"] for item in answer] == counts[:k]


def test_an_empty_table_merges_and_answers() -> None:
    nothing = table(frame(1)[:0])
    assert merge([nothing, nothing]).num_rows == 0
    assert query(nothing).height == 0
    assert merge([nothing, table(frame(1))]).num_rows == table(frame(1)).num_rows
