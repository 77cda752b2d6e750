"""Compacted tables say the same as the files they are of, and one key's windows are found in few bytes."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge import Stream, count, distinct
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table import compaction
from streamgauge.operators.table.compaction import compact
from streamgauge.operators.table.schema import read_parquet, table_schema, to_ipc, write_parquet
from streamgauge.operators.table.sketch_table import SketchTable, merge
from streamgauge.operators.table.spark_footer import FOOTER, to_footer
from streamgauge.operators.table.stored import files_of, read, read_table
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.windows.table import AllTime
from streamgauge.sketches.core.protocol import SketchError

START = datetime(2026, 3, 30, tzinfo=UTC)
KEYS = 12


def rows_of(hours: int, seed: int) -> pl.DataFrame:
    """Rows of some hours; symbols among them one that is empty and none at all."""
    random = np.random.default_rng(seed)
    n = hours * 600
    symbols = np.array([f"S{number}" for number in range(KEYS - 2)] + ["", None], object)
    at = START.timestamp() * 1e6 + np.sort(random.integers(0, hours * 3_600_000_000, n))
    return pl.DataFrame(
        {
            "at": pl.Series(at.astype(np.int64)).cast(pl.Datetime("us")),
            "symbol": symbols[random.integers(0, KEYS, n)].tolist(),
            "user": random.integers(0, 5_000, n),
        },
        schema={"at": pl.Datetime("us"), "symbol": pl.String, "user": pl.Int64},
    )


def table_of(frame: pl.DataFrame, lg_k: int = 12) -> pa.Table:
    stream = Stream.from_schema(dict(frame.schema), time="at").group_by("symbol").tumbling("10m")
    sketcher = Sketcher(stream.agg(n=count(), users=distinct("user", lg_k=lg_k)))
    sketcher.add(frame, PartitionTime())
    return sketcher.drain()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three days in many files, some of the same windows; Parquet and Arrow IPC, with a folder of days."""
    folder = tmp_path / "small"
    (folder / "window_date=2026-03-30").mkdir(parents=True)
    for seed in (1, 2):
        table = table_of(rows_of(60, seed))
        for number, start in enumerate(range(0, table.num_rows, 400)):
            part = table.slice(start, 400)
            if number == 2:
                (folder / f"{seed}-{number}.arrow").write_bytes(to_ipc(part))
            else:
                write_parquet(part, folder / f"{seed}-{number}.parquet")
    return folder


def in_order(table: pa.Table | SketchTable) -> pa.Table:
    return (
        pa.table(table).sort_by([(name, "ascending") for name in ("window_start", "symbol")]).combine_chunks()
    )


def test_the_compacted_table_is_the_same_a_file_a_day(small: Path, tmp_path: Path) -> None:
    into = tmp_path / "large"
    files = compact(small, into)
    days = [f"window_date=2026-03-{30 + day}" for day in range(2)] + ["window_date=2026-04-01"]
    assert [file.parent.name for file in files] == days
    assert in_order(read(into)).equals(in_order(read(small)))
    for file in files:
        table = read_parquet(file)
        keys = [(name, "ascending") for name in ("symbol", "window_start")]
        assert table.equals(table.sort_by(keys))
        begins = table["window_start"].cast(pa.date32()).unique().to_pylist()
        assert [f"window_date={day}" for day in begins] == [file.parent.name]
    # Again, with one file more: its day is replaced, nothing counts twice, and nothing is left behind.
    write_parquet(table_of(rows_of(1, 3)), small / "more.parquet")
    assert compact(small, into) == files
    assert in_order(read(into)).equals(in_order(read(small)))
    assert sorted(into.rglob("*.*")) == sorted(files)


def test_what_is_asked_for_is_what_a_filter_gives(small: Path, tmp_path: Path) -> None:
    compact(small, tmp_path / "large")
    whole = in_order(read(small))
    since, until = START + timedelta(hours=20, minutes=5), START + timedelta(hours=50)
    inside = pc.and_(
        pc.greater_equal(whole["window_start"], since), pc.less_equal(whole["window_end"], until)
    )
    for folder in (small, tmp_path / "large"):
        table = read_table(folder, since.replace(tzinfo=None), until, {"symbol": "S3"})
        wanted = whole.filter(pc.and_(inside, pc.equal(whole["symbol"], "S3")))
        assert wanted.num_rows > 100 and in_order(table).equals(wanted)
        table = read_table(folder, keys={"symbol": ["S1", "", None]})
        kept = [name in ("S1", "", None) for name in whole["symbol"].to_pylist()]
        assert in_order(table).equals(whole.filter(pa.array(kept)))
        assert in_order(read_table(folder)).equals(whole)
        empty = read_table(folder, since=START + timedelta(days=400))
        assert empty.num_rows == 0 and empty.schema.equals(whole.schema, check_metadata=True)
    with pytest.raises(ValueError, match=r"user is not a key of this table; its keys are \['symbol'\]"):
        read_table(small, keys={"user": 1})


class Counted(io.FileIO):
    """A file that counts the bytes read of it."""

    bytes_read = 0

    def readinto(self, buffer: Any) -> int:
        result = super().readinto(buffer)
        self.bytes_read += result
        return result

    def read(self, size: int | None = -1) -> bytes:
        result = super().read(-1 if size is None else size)
        self.bytes_read += len(result)
        return result


def test_one_key_s_windows_take_a_small_part_of_a_file_s_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As it is with a file of megabytes.
    monkeypatch.setattr(compaction, "GROUP_BYTES", 64 * 1024)
    # A day of windows of ten minutes for forty keys: most of it sketches.
    random = np.random.default_rng(5)
    n = 300_000
    at = START.timestamp() * 1e6 + np.sort(random.integers(0, 86_400_000_000, n))
    frame = pl.DataFrame(
        {
            "at": pl.Series(at.astype(np.int64)).cast(pl.Datetime("us")),
            "symbol": [f"S{number:02d}" for number in random.integers(0, 40, n)],
            "user": random.integers(0, 1 << 40, n),
        }
    )
    (tmp_path / "small").mkdir()
    write_parquet(table_of(frame, lg_k=8), tmp_path / "small" / "day.parquet")
    (file,) = compact(tmp_path / "small", tmp_path / "large")
    groups = pq.ParquetFile(file).metadata.num_row_groups
    assert groups > 10
    counted = Counted(file)
    result = read_parquet(counted, pc.field("symbol") == "S17")
    assert result.num_rows == 144
    # At most two or three row groups hold a key's rows; beside them the footer is read.
    assert counted.bytes_read < 4 / groups * file.stat().st_size + 64 * 1024
    assert counted.bytes_read < file.stat().st_size / 3


def test_folders_of_other_days_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    write_parquet(table_of(rows_of(60, 1)), tmp_path / "small" / "all.parquet")
    first, *others = compact(tmp_path / "small", tmp_path / "large")
    for file in others:
        file.write_bytes(b"not Parquet at all")
    table = read_table(tmp_path / "large", until=START + timedelta(hours=12))
    assert table.num_rows and table == read_table(first, until=START + timedelta(hours=12))
    with pytest.raises(SketchError, match=r"sketches\.parquet: "):
        read_table(tmp_path / "large", until=START + timedelta(days=5))


def as_spark_writes(table: pa.Table, path: Path) -> None:
    """A file as `DataFrame.write.parquet` writes it: times without a zone, and definitions in its footer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    reported = {FOOTER: to_footer(table.schema), "org.apache.spark.version": "4.3.0"}
    plain = table.replace_schema_metadata(None)
    plain = plain.cast(pa.schema([field.remove_metadata() for field in plain.schema]))
    with pq.ParquetWriter(path, plain.schema, use_deprecated_int96_timestamps=True, store_schema=False) as w:
        w.write_table(plain)
        w.add_key_value_metadata(reported)


def test_what_spark_wrote_is_asked_and_compacted_as_any_table(tmp_path: Path) -> None:
    table = table_of(rows_of(60, 1))
    as_spark_writes(table, tmp_path / "spark" / "one.parquet")
    as_spark_writes(table_of(rows_of(30, 2)), tmp_path / "spark" / "other.parquet")
    whole = in_order(read(tmp_path / "spark"))
    inside = (pc.field("window_start") >= START + timedelta(hours=5)) & (pc.field("symbol") == "S1")
    result = read_table(tmp_path / "spark", since=START + timedelta(hours=5), keys={"symbol": "S1"})
    assert result.num_rows and in_order(result).equals(in_order(whole.filter(inside)))
    assert len(compact(tmp_path / "spark", tmp_path / "days")) == 3
    assert in_order(read(tmp_path / "days")).equals(whole)


def test_a_table_without_windows_becomes_one_file_without_a_day(tmp_path: Path) -> None:
    schema = table_schema({"lang": pa.string()}, {"posts": count()}, AllTime())
    bare = pa.schema([schema.field("lang"), schema.field("posts")], metadata=schema.metadata)
    (tmp_path / "small").mkdir()
    for name, counts in (("one", [20, 40]), ("other", [1, 2])):
        table = SketchTable(pa.table([["de", "en"], counts], schema=bare))
        table.write(tmp_path / "small" / f"{name}.parquet")
    for _ in range(2):
        assert compact(tmp_path / "small", tmp_path / "large") == [tmp_path / "large" / "sketches.parquet"]
    assert read_table(tmp_path / "large").answers().to_dict(as_series=False) == {
        "lang": ["de", "en"],
        "posts": [21, 42],
    }
    (tmp_path / "small" / "one.parquet").unlink()
    with pytest.raises(SketchError, match=r"was written from one\.parquet, which the folder no longer has"):
        compact(tmp_path / "small", tmp_path / "large")


def test_a_key_in_names_of_folders_alone_is_not_lost(tmp_path: Path) -> None:
    table = table_of(rows_of(30, 1))
    days = [(START + timedelta(days=day)).date() for day in range(2)]
    for day in days:
        rows = table.filter(pc.equal(table["window_start"].cast(pa.date32()), pa.scalar(day)))
        as_spark_writes(rows, tmp_path / "by-day" / f"day={day}" / "part.parquet")
    assert in_order(read(tmp_path / "by-day")).equals(in_order(table))
    for site in ("north", "south"):
        as_spark_writes(table, tmp_path / "by-site" / f"site={site}" / "part.parquet")
    for ask in (read, read_table, lambda path: compact(path, tmp_path / "days")):
        with pytest.raises(SketchError, match="site: Spark has written this column into names of folders"):
            ask(tmp_path / "by-site")
    assert in_order(read(tmp_path / "by-site" / "site=north")).equals(in_order(table))


def test_what_would_count_twice_or_differs_is_refused(small: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whose files it would count twice; name another"):
        compact(small, small / "compacted")
    with pytest.raises(FileNotFoundError, match="no file in this folder ends in"):
        (tmp_path / "empty").mkdir()
        compact(tmp_path / "empty", tmp_path / "large")
    write_parquet(table_of(rows_of(1, 1), lg_k=10), small / "other.parquet")
    with pytest.raises(SketchError, match='"users" changed from distinct'):
        compact(small, tmp_path / "large")
    assert len(files_of(small)) > 5 and merge(read_parquet(small / "other.parquet")).num_rows


def test_days_of_different_definitions_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    small, into = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    write_parquet(table_of(rows_of(20, 1)), small / "a.parquet")
    other = table_of(rows_of(5, 2).with_columns(pl.col("at") + timedelta(days=9)), lg_k=10)
    write_parquet(other, small / "b.parquet")
    with pytest.raises(SketchError, match=r'compact: .*"users" changed from .*lg_k=12.* to .*lg_k=10'):
        compact(small, into)
    assert not into.exists()
    # Also from what was compacted before, even of another day.
    (small / "b.parquet").unlink()
    compact(small, into)
    (small / "a.parquet").unlink()
    write_parquet(other, small / "b.parquet")
    with pytest.raises(SketchError, match=r"lg_k=10.* to .*lg_k=12"):
        compact(small, into)


@pytest.mark.parametrize("noted", [True, False], ids=["as compacted", "written again by hand"])
def test_a_day_whose_sources_were_removed_is_not_replaced_by_less(tmp_path: Path, noted: bool) -> None:
    small, into = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    first, late = table_of(rows_of(3, 1)), table_of(rows_of(1, 3).head(40))
    write_parquet(first, small / "first.parquet")
    (file,) = compact(small, into)
    if not noted:
        write_parquet(read_parquet(file), file)
    (small / "first.parquet").unlink()
    write_parquet(late, small / "late.parquet")
    reported = (
        "was written from first.parquet" if noted else "rows of windows and groups that the folder's files"
    )
    with pytest.raises(SketchError, match=reported):
        compact(small, into)
    assert in_order(read(into)).equals(in_order(first))
    # With all of them there it is done again.
    write_parquet(first, small / "first.parquet")
    assert compact(small, into) == [file]
    assert in_order(read(into)).equals(in_order(read(small)))


def test_a_source_that_lost_rows_under_its_name_replaces_nothing(tmp_path: Path) -> None:
    small, into = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    write_parquet(table_of(rows_of(3, 1)), small / "part.parquet")
    compact(small, into)
    write_parquet(table_of(rows_of(1, 1)), small / "part.parquet")
    with pytest.raises(SketchError, match="they would be lost"):
        compact(small, into)
