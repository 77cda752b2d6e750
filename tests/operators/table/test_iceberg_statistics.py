"""Theta sketches as statistics of an Iceberg table: PyIceberg and DataSketches read what was written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import Stream, count, distinct_set, write_iceberg_ndv
from streamgauge.sketches.core.protocol import SketchError

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = pl.DataFrame(
    {
        "user": [f"u{n % 900}" for n in range(3_000)],
        "item": [n * 7_919 % 5_001 - 2_500 for n in range(3_000)],
        "paid": [n % 77 / 8 for n in range(3_000)],
        "raw": [str(n % 12).encode() for n in range(3_000)],
        "at": [BEGIN + timedelta(seconds=n // 2) for n in range(3_000)],
        "few": pl.Series([n % 5 for n in range(3_000)], dtype=pl.Int32),
    }
)
FITTING = ("user", "item", "paid", "raw", "at")


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    """A table of an Iceberg catalog, with these rows."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("lake", warehouse=tmp_path.as_uri())
    catalog.create_namespace("web")
    table = catalog.create_table("web.visits", schema=ROWS.to_arrow().schema)
    table.append(ROWS.to_arrow().cast(table.schema().as_arrow()))
    return catalog


def sketched(*columns: str) -> Any:
    """A table of sketches by the minute, of these columns."""
    stream = Stream.from_frame(ROWS, time="at").tumbling("1m")
    return (
        stream.agg(n=count(), **{f"{name}s": distinct_set(name) for name in columns})
        .run(progress=False)
        .table
    )


def read(table: Any) -> dict[str, tuple[int, Any]]:
    """By column: the number in the metadata, and the sketch in the file as DataSketches reads it."""
    import datasketches
    from pyiceberg.table.puffin import PuffinFile

    (statistics,) = table.metadata.statistics
    assert statistics.snapshot_id == table.current_snapshot().snapshot_id
    with table.io.new_input(statistics.statistics_path).open() as stream:
        content = stream.read()
    file = PuffinFile(content)
    assert len(content) == statistics.file_size_in_bytes
    assert content[-statistics.file_footer_size_in_bytes :][:4] == b"PFA1"
    blobs = {}
    for blob, described in zip(file.footer.blobs, statistics.blob_metadata, strict=True):
        assert blob.fields == described.fields and blob.properties == described.properties
        name = table.schema().find_column_name(blob.fields[0])
        sketch = datasketches.compact_theta_sketch.deserialize(file.get_blob_payload(blob))
        blobs[name] = int(described.properties["ndv"]), sketch
    return blobs


def test_other_readers_find_numbers_and_sketches(lake: Any) -> None:
    table = lake.load_table("web.visits")
    exact = {name: ROWS[name].n_unique() for name in FITTING}
    assert write_iceberg_ndv(table, sketched("user", "item")) == {
        name: exact[name] for name in ("user", "item")
    }
    # Columns that are added later leave the others as they are.
    write_iceberg_ndv(lake.load_table("web.visits"), sketched("paid", "raw", "at", "user"))
    blobs = read(lake.load_table("web.visits"))
    assert {name: ndv for name, (ndv, _) in blobs.items()} == exact
    assert {name: round(sketch.get_estimate()) for name, (_, sketch) in blobs.items()} == exact


def test_values_are_hashed_as_iceberg_serialises_them(lake: Any) -> None:
    import datasketches

    write_iceberg_ndv(lake.load_table("web.visits"), sketched(*FITTING))
    serialised = {
        "user": [value.encode() for value in ROWS["user"]],
        "item": [value.to_bytes(8, "little", signed=True) for value in ROWS["item"]],
        "paid": [bytes(one) for one in ROWS["paid"].to_numpy().astype("<f8").view("V8")],
        "raw": ROWS["raw"].to_list(),
        "at": [value.to_bytes(8, "little", signed=True) for value in ROWS["at"].dt.epoch("us")],
    }
    for name, (ndv, sketch) in read(lake.load_table("web.visits")).items():
        theirs = datasketches.update_theta_sketch(12)
        for value in serialised[name]:
            theirs.update(hashable(value))
        union = datasketches.theta_union(12)
        union.update(theirs.compact())
        union.update(sketch)
        assert round(union.get_result().get_estimate()) == ndv, name


def hashable(value: bytes) -> Any:
    """Bytes as this library takes them: its binding has no `update` of bytes, but of text, as UTF-8."""
    return value.decode("latin-1") if value.isascii() else int.from_bytes(value, "little", signed=True)


def test_what_does_not_fit_is_refused_by_name(lake: Any) -> None:
    table = lake.load_table("web.visits")
    with pytest.raises(SketchError, match=r"values of 'few' \(int\) differently .* have one hash"):
        write_iceberg_ndv(table, sketched("few"))
    with pytest.raises(SketchError, match=r"no distinct_set sketches; add distinct_set"):
        write_iceberg_ndv(table, sketched())
    other = (
        Stream.from_frame(ROWS.rename({"user": "who"}), time="at").tumbling("1h").agg(w=distinct_set("who"))
    )
    with pytest.raises(SketchError, match="'who', which is not a column of"):
        write_iceberg_ndv(table, other.run(progress=False).table)
    with pytest.raises(ValueError, match="has no snapshot 7"):
        write_iceberg_ndv(table, sketched("user"), snapshot_id=7)
    assert lake.load_table("web.visits").metadata.statistics == []
