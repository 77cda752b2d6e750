"""A table of sketches keeps its definitions in every file and message, and is recognised by them."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.operators.definition.aggregates import sum
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import from_ipc, read_parquet, to_ipc, write_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.table.spark_footer import FOOTER
from streamgauge.sketches.core.protocol import SketchError

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
