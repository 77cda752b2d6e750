from __future__ import annotations

import itertools
import json
from datetime import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.operators.definition.aggregates import count, distinct, last, mean, quantiles, sum, variance
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.lateness import PartitionTime
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.merge import merge
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import from_ipc, read_parquet, to_ipc, write_parquet
from streamgauge.operators.table.spark_footer import FOOTER
from streamgauge.sketches.core.protocol import SketchError

SOURCE = Stream.from_batches(
    {"at": pl.Datetime("us"), "lang": pl.String, "place": pl.Int64, "user": pl.Int64, "x": pl.Float64},
    time="at",
)
ASKED = {
    "posts": count(),
    "users": distinct("user"),
    "spread": quantiles("x"),
    "m": mean("x"),
    "total": sum("user"),
    "var": variance("x"),
    "end": last("user"),
}
STREAM = SOURCE.group_by("lang", "place").tumbling("10s", delay="1h").agg(**ASKED)


def frame(seed: int, n: int = 4_000) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "at": pl.Series(1_700_000_000_000_000 + random.integers(0, 180_000_000, n)).cast(
                pl.Datetime("us")
            ),
            "lang": pl.Series(random.choice(["en", "de", ""], n)).scatter([1, 2, 3], None),
            "place": random.integers(0, 3, n),
            "user": random.integers(0, 1_000, n),
            "x": random.normal(size=n),
        }
    )


def table(rows: pl.DataFrame, stream: Stream = STREAM) -> pa.Table:
    sketcher = Sketcher(stream)
    sketcher.add(rows, PartitionTime())
    return sketcher.take()


def registers(found: pa.Table) -> list[float]:
    return [round(cell["estimate"], 6) for cell in query(found)["users"]]


def test_parts_merge_to_the_whole_in_any_order() -> None:
    rows = frame(1)
    whole = merge(table(rows))
    parts = [table(rows[low : low + 1_000]) for low in range(0, 4_000, 1_000)]
    for order in itertools.islice(itertools.permutations(parts), 0, 24, 5):
        found = merge(order)
        assert found.select(["window_start", "lang", "place", "posts", "end"]).equals(
            whole.select(["window_start", "lang", "place", "posts", "end"])
        )
        assert registers(found) == registers(whole)
    pairs = merge([merge(parts[:2]), merge(parts[2:])])
    assert pairs.column("posts").equals(whole.column("posts")) and registers(pairs) == registers(whole)


def test_rolling_up_gives_what_a_coarser_stream_gives() -> None:
    rows = frame(2)
    coarse = SOURCE.group_by("lang").tumbling("1m", delay="1h").agg(**ASKED)
    found, wanted = merge(table(rows), by=["lang"], every="1m"), merge(table(rows, coarse))
    assert found.schema.equals(wanted.schema, check_metadata=True)
    assert found.select(["window_start", "window_end", "lang", "posts", "end"]).equals(
        wanted.select(["window_start", "window_end", "lang", "posts", "end"])
    )
    assert registers(found) == registers(wanted)
    assert merge(found, by=[], every="1h").column("posts").to_pylist() == [4_000]


def test_answers_lie_beside_the_exact_ones() -> None:
    rows = frame(3)
    answer = query(merge(table(rows), by=[], every="1h")).row(0, named=True)
    assert answer["posts"] == 4_000
    assert answer["m"] == pytest.approx(rows["x"].mean())
    assert answer["var"] == pytest.approx(rows["x"].var())
    assert answer["users"]["lower"] <= rows["user"].n_unique() <= answer["users"]["upper"]
    for quantile in answer["spread"]["quantiles"]:
        assert quantile["lower"] <= rows["x"].quantile(quantile["q"]) <= quantile["upper"]
    last_one = rows.filter(pl.col("at") == pl.col("at").max())["user"].max()
    assert answer["end"] == last_one


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SketchError, match="10s don't fit into windows of 15s"):
        merge(table(frame(1)), every="15s")
    with pytest.raises(ValueError, match="no key"):
        merge(table(frame(1)), by=["user"])


def test_tables_of_other_definitions_are_refused() -> None:
    other = (
        SOURCE.group_by("lang", "place").tumbling("10s").agg(**{**ASKED, "users": distinct("user", lg_k=10)})
    )
    with pytest.raises(SketchError, match="different definitions"):
        merge([table(frame(1)), table(frame(1), other)])
    with pytest.raises(ValueError, match="no tables"):
        merge([])


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


def test_a_table_of_an_earlier_version_is_read_and_merged_with_newer_ones(tmp_path) -> None:
    new = table(frame(4))
    ends = new.column("end").combine_chunks()
    kept = [ends.field("time"), ends.field("value")]
    old_ends = pa.StructArray.from_arrays(kept, ["time", "value"], mask=ends.is_null())
    at = new.schema.get_field_index("end")
    old = new.set_column(at, new.schema.field("end").with_type(old_ends.type), old_ends)
    at, total = new.schema.get_field_index("total"), new.schema.field("total").with_type(pa.int64())
    old = old.set_column(at, total, new.column("total").cast(pa.int64()))
    write_parquet(old, tmp_path / "old.parquet")
    again = read_parquet(tmp_path / "old.parquet")
    assert query(again).equals(query(new))
    for tables in ([again, new], [new, again]):
        assert merge(tables).column("total").to_pylist() == merge([new, new]).column("total").to_pylist()
        merged = merge(tables)
        assert merged.schema.field("end").type == new.schema.field("end").type
        assert query(merged)["end"].equals(query(merge(new))["end"])


def test_decimals_are_keys_that_every_engine_reads(tmp_path) -> None:
    paid = pl.Series([Decimal("1.10"), Decimal("2.00"), Decimal("1.10"), None], dtype=pl.Decimal(20, 2))
    rows = pl.DataFrame({"at": [datetime(2026, 1, 1)] * 4, "paid": paid, "n": [1, 2, 3, 4]})
    stream = Stream.from_batches(rows.schema, time="at").group_by("paid").tumbling("1m").agg(n=sum("n"))
    write_parquet(table(rows, stream), tmp_path / "paid.parquet")
    found = query(merge(read_parquet(tmp_path / "paid.parquet")))
    assert dict(found.select("paid", "n").iter_rows()) == {Decimal("1.10"): 4, Decimal("2.00"): 2, None: 4}
    footer = json.loads(pq.read_metadata(tmp_path / "paid.parquet").metadata[FOOTER])
    assert [field["type"] for field in footer["fields"][2:]] == ["decimal(20,2)", "decimal(38,0)"]


def test_an_empty_table_merges_and_answers() -> None:
    nothing = table(frame(1)[:0])
    assert merge([nothing, nothing]).num_rows == 0
    assert query(nothing).height == 0
    assert merge([nothing, table(frame(1))]).num_rows == table(frame(1)).num_rows


def test_other_files_and_bytes_are_no_table_of_sketches(tmp_path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(SketchError, match="no table of sketches"):
        read_parquet(tmp_path / "other.parquet")
    data = to_ipc(table(frame(1)))
    for broken in (b"", b"\x00" * 40, data[:100], data[: len(data) // 2]):
        with pytest.raises(SketchError, match="no table of sketches"):
            from_ipc(broken)
