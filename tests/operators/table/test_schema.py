"""A table of sketches keeps its definitions in every file and message, and is recognised by them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import streamgauge as sg
from streamgauge.operators.definition.aggregates import sum
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.table import schema
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import (
    from_ipc,
    order_of,
    read_parquet,
    repeats_in_order,
    to_ipc,
    write_parquet,
)
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.table.spark_footer import FOOTER
from streamgauge.sketches.core.protocol import SketchError

from ...cases import each
from .posts import frame, table


def test_parquet_and_ipc_keep_everything(tmp_path) -> None:
    whole = table(frame(4))
    write_parquet(whole, tmp_path / "table.parquet")
    for again in (
        read_parquet(tmp_path / "table.parquet"),
        from_ipc(to_ipc(whole)),
        from_ipc(to_ipc(whole, None)),
    ):
        assert again.equals(whole)
        assert query(again).equals(query(whole))
        assert merge([again, whole]).column("posts").to_pylist() == [
            2 * n for n in merge(whole).column("posts").to_pylist()
        ]


def test_sums_that_are_whole_numbers_are_read_and_merged_with_decimals(tmp_path) -> None:
    new = table(frame(4))
    at, total = new.schema.get_field_index("total"), new.schema.field("total").with_type(pa.int64())
    old = new.set_column(at, total, new.column("total").cast(pa.int64()))
    write_parquet(old, tmp_path / "old.parquet")
    again = read_parquet(tmp_path / "old.parquet")
    assert query(again).equals(query(new))
    for tables in ([again, new], [new, again]):
        assert merge(tables).column("total").to_pylist() == merge([new, new]).column("total").to_pylist()


def test_decimals_are_keys_that_every_engine_reads(tmp_path) -> None:
    paid = pl.Series([Decimal("1.10"), Decimal("2.00"), Decimal("1.10"), None], dtype=pl.Decimal(20, 2))
    rows = pl.DataFrame({"at": [datetime(2026, 1, 1)] * 4, "paid": paid, "n": [1, 2, 3, 4]})
    stream = Stream.from_schema(rows.schema, time="at").group_by("paid").tumbling("1m").agg(n=sum("n"))
    write_parquet(table(rows, stream), tmp_path / "paid.parquet")
    answers = query(merge(read_parquet(tmp_path / "paid.parquet")))
    assert dict(answers.select("paid", "n").iter_rows()) == {Decimal("1.10"): 4, Decimal("2.00"): 2, None: 4}
    footer = json.loads(pq.read_metadata(tmp_path / "paid.parquet").metadata[FOOTER])
    assert [field["type"] for field in footer["fields"][2:-1]] == ["decimal(20,2)", "decimal(38,0)"]


def test_other_files_and_bytes_are_no_table_of_sketches(tmp_path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(SketchError, match="not a table of sketches"):
        read_parquet(tmp_path / "other.parquet")
    data = to_ipc(table(frame(1)))
    for broken in (b"", b"\x00" * 40, data[:100], data[: len(data) // 2]):
        with pytest.raises(SketchError, match="not a table of sketches"):
            from_ipc(broken)


MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@each(
    ("columns", "repeats"),
    [
        ({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}, []),
        ({"a": [1], "b": ["x"]}, []),
        ({"a": [1, 1, 2], "b": ["x", "y", "a"]}, [False, False]),
        ({"a": [1, 1, 2], "b": ["x", "x", "a"]}, [True, False]),
        ({"a": [1, 1, 2], "b": ["y", "x", "a"]}, None),
        ({"a": [2, 1], "b": ["x", "y"]}, None),
        ({"a": ["é", "z"]}, None),
        ({"a": [b"", b"\x00", b"\xff"]}, [False, False]),
        ({"a": [MOMENT, MOMENT, MOMENT.replace(year=2027)], "b": [-1, 1, -5]}, [False, False]),
        ({"a": [None, 1]}, None),
        ({"a": [1.0, 2.0]}, None),
        ({"a": pa.array([1, 2**63], pa.uint64())}, None),
    ],
)
def test_rows_in_order_are_known_without_a_sort(columns: dict, repeats: list | None) -> None:
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    result = repeats_in_order(table)
    assert result is repeats if repeats is None else result.tolist() == repeats
    if repeats is not None:
        order = pc.sort_indices(table, [(name, "ascending") for name in columns])
        assert order.to_pylist() == list(range(table.num_rows))
    assert order_of(table) is None or repeats is None


def test_many_rows_are_written_in_row_groups_and_sketches_without_a_dictionary(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_GROUP_ROWS", 2)
    rows = sg.Stream.from_schema({"at": pl.Int64, "tag": pl.String}, time=pl.from_epoch("at"))
    tester = sg.StreamTester(rows.group_by("tag").tumbling("1m").agg(n=sg.count(), users=sg.distinct("tag")))
    tester.feed([{"at": 1_767_225_600, "tag": tag} for tag in "abcde"])
    table = tester.finish().tables().to_arrow()
    write_parquet(table, tmp_path / "five.parquet")
    written = pq.ParquetFile(tmp_path / "five.parquet").metadata
    assert written.num_row_groups == 3
    columns = [written.row_group(0).column(at) for at in range(written.num_columns)]
    dictionaries = {one.path_in_schema: "RLE_DICTIONARY" in one.encodings for one in columns}
    assert not dictionaries["users"] and dictionaries["tag"] and dictionaries["n"]
    assert read_parquet(tmp_path / "five.parquet").equals(table)
