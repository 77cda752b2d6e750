"""A topic's Delta table holds the archive's files, each once, whoever commits them and wherever they stop."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.agents.archive.retention import remove_older
from streamgauge.operators.archive.chain import topics_of
from streamgauge.operators.archive.manifest import record_first, record_removal
from streamgauge.operators.archive.recording import Recording
from streamgauge.operators.archive.segment import SCHEMA, ArchiveError, SegmentWriter, decoded_schema
from streamgauge.operators.archive.store import LocalStore, Store, store_of
from streamgauge.operators.archive.verify import verify
from streamgauge.operators.formats.messages import Messages

deltalake = pytest.importorskip("deltalake")

from streamgauge.operators.archive.delta_log import DeltaLog  # noqa: E402


def publish(store: Store, partition: int, first: int, count: int, decoder: Any = None) -> None:
    """A file with a null key and a tombstone, headers, and the timestamps −1, 0 and 5 seconds per offset."""
    numbers = range(first, first + count)
    writer = SegmentWriter("t", partition, first, decoder=decoder)
    values = [None if n % 3 == 1 else b'{"n":%d}' % n for n in numbers]
    keys = [None if n % 2 else b"k" for n in numbers]
    stamps = [(-1, 0, 5_000 * n)[n % 3] for n in numbers]
    headers: list[list[tuple[str, bytes | None]]] = [[("h", b"1"), ("h", None)] for _ in numbers]
    writer.add(Messages.of(values, keys, first_offset=first, timestamps=stamps, headers=headers))
    segment, data = writer.finish()
    assert store.create(segment.path, data)


def table(folder: Path) -> pa.Table:
    """What a reader of Delta sees."""
    read = pa.table(deltalake.DeltaTable(str(folder / "topic=t")).to_pyarrow_table())
    return read.sort_by([("partition", "ascending"), ("offset", "ascending")])


def offsets(folder: Path, partition: int = 0) -> list[int]:
    read = table(folder)
    return read.filter(pa.compute.equal(read.column("partition"), partition)).column("offset").to_pylist()


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path)
    publish(store, 0, 0, 4)
    publish(store, 0, 4, 3)
    publish(store, 1, 10, 3)
    return store


def test_readers_of_delta_see_each_message_as_it_was(store: LocalStore, tmp_path: Path) -> None:
    log = DeltaLog.create(store, "t")
    for partition in (0, 1):
        log.catch_up(partition)
    read = table(tmp_path)
    [recorded] = [
        pa.concat_tables(
            pa.Table.from_batches([columns])
            for partition in (0, 1)
            for part in Recording.open(str(tmp_path)).read(partition)
            for columns in [_columns(part)]
        )
    ]
    for name in ("offset", "timestamp_type", "key", "value", "headers"):
        assert read.column(name).to_pylist() == recorded.column(name).to_pylist(), name
    times = [recorded.column("timestamp").cast(pa.timestamp("us", "UTC")), read.column("timestamp")]
    assert times[0].to_pylist() == times[1].to_pylist() and times[0].null_count
    assert set(read.column("topic").to_pylist()) == {"t"}
    counted = pl.scan_delta(str(tmp_path / "topic=t")).group_by("topic", "partition").len().collect()
    assert sorted(counted.rows()) == [("t", 0, 7), ("t", 1, 3)]
    duckdb = pytest.importorskip("duckdb")
    posts = deltalake.DeltaTable(str(tmp_path / "topic=t")).to_pyarrow_dataset()  # noqa: F841
    assert duckdb.sql('SELECT count(*), count(value), max("offset") FROM posts').fetchall() == [(10, 7, 12)]


def _columns(messages: Messages) -> pa.RecordBatch:
    from streamgauge.operators.archive.segment import messages_to_columns

    return messages_to_columns(messages)


def test_statistics_are_exact(store: LocalStore, tmp_path: Path) -> None:
    log = DeltaLog.create(store, "t")
    log.catch_up(0)
    actions = pa.table(deltalake.DeltaTable(str(tmp_path / "topic=t")).get_add_actions(flatten=True))
    [row] = [row for row in actions.to_pylist() if row["path"].endswith("04.parquet")]
    assert (row["num_records"], row["min.offset"], row["max.offset"]) == (3, 4, 6)
    assert row["null_count.timestamp"] == 1
    at = datetime.fromtimestamp(0, UTC)
    assert (row["min.timestamp"], row["max.timestamp"]) == (at, at + timedelta(seconds=25))
    old = pl.scan_delta(str(tmp_path / "topic=t")).filter(pl.col("timestamp") > at + timedelta(seconds=20))
    assert old.collect()["offset"].to_list() == [5]


def test_files_are_added_once_and_what_was_not_committed_is_made_up_for(
    store: LocalStore, tmp_path: Path
) -> None:
    one = DeltaLog.create(store, "t")
    one.catch_up(0)
    one.catch_up(0)
    assert one.next_offset(0) == 7 and one.next_offset(1) is None
    publish(store, 0, 7, 2)  # and its archiver dies before the commit
    another = DeltaLog.open(store, "t")
    assert another is not None and another.next_offset(0) == 7
    another.catch_up(0)
    version = deltalake.DeltaTable(str(tmp_path / "topic=t")).version()
    one.catch_up(0)
    assert deltalake.DeltaTable(str(tmp_path / "topic=t")).version() == version
    assert offsets(tmp_path) == list(range(9))


def test_two_archivers_that_commit_the_same_file_at_once_add_it_once(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, another = DeltaLog.create(store, "t"), DeltaLog.create(store, "t")
    added = one._added

    def overtaken(partition: int, first: int) -> Any:
        another.catch_up(partition)
        return added(partition, first)

    monkeypatch.setattr(one, "_added", overtaken)
    one.catch_up(0)
    assert offsets(tmp_path) == list(range(7))
    kinds = [entry["operation"] for entry in deltalake.DeltaTable(str(tmp_path / "topic=t")).history()]
    assert len(kinds) == 2  # the table's creation, and one commit


def test_a_commit_of_another_partition_is_no_conflict(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, another = DeltaLog.create(store, "t"), DeltaLog.create(store, "t")
    added = one._added
    monkeypatch.setattr(one, "_added", lambda *where: (another.catch_up(1), added(*where))[1])
    one.catch_up(0)
    assert offsets(tmp_path, 0) == list(range(7)) and offsets(tmp_path, 1) == [10, 11, 12]


@pytest.mark.slow
def test_positions_outlive_checkpoints_of_the_log(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    publish(store, 1, 0, 2)
    log = DeltaLog.create(store, "t")
    log.catch_up(1)
    for first in range(110):
        publish(store, 0, first, 1)
        log.catch_up(0)
    assert list((tmp_path / "topic=t" / "_delta_log").glob("*.checkpoint.parquet"))
    deltalake.DeltaTable(str(tmp_path / "topic=t")).cleanup_metadata()
    opened = DeltaLog.open(store, "t")
    assert opened is not None and (opened.next_offset(0), opened.next_offset(1)) == (110, 2)
    assert offsets(tmp_path) == list(range(110))


def test_retention_takes_files_out_of_the_table_first(store: LocalStore, tmp_path: Path) -> None:
    log = DeltaLog.create(store, "t")
    log.catch_up(0)
    publish(store, 0, 7, 2)
    log.catch_up(0)
    assert [one.first_offset for one in remove_older(store, topics_of(store), 30_000)] == [0, 4]
    assert offsets(tmp_path) == [7, 8]
    log.catch_up(0)
    assert offsets(tmp_path) == [7, 8] and [c.problems for c in verify(store, {"t": [0]})] == [[]]


def test_retention_that_was_killed_is_made_up_for(store: LocalStore, tmp_path: Path) -> None:
    log = DeltaLog.create(store, "t")
    log.catch_up(0)
    record_first(store, "t", 0, 0)
    record_removal(store, "t", 0, 4)
    log.catch_up(0)
    assert offsets(tmp_path) == [4, 5, 6] and [c.problems for c in verify(store, {"t": [0]})] == [[]]


def test_a_table_that_differs_from_the_archive_is_found(store: LocalStore, tmp_path: Path) -> None:
    log = DeltaLog.create(store, "t")
    log.catch_up(0)
    assert [check.problems for check in verify(store, {"t": [0, 1]})] == [[], []]
    deltalake.DeltaTable(str(tmp_path / "topic=t")).optimize.compact()
    problems = [problem for check in verify(store, {"t": [0]}) for problem in check.problems]
    assert len(problems) == 3 and "is not in the Delta table" in problems[-1]
    shutil.rmtree(tmp_path / "topic=t" / "_delta_log")
    log = DeltaLog.create(store, "t")
    log.catch_up(0)
    for file in (tmp_path / "topic=t" / "partition=0").glob("part-*"):
        file.unlink()
    assert [check.problems for check in verify(store, {"t": [0]})] == [[]]
    store.remove(f"topic=t/partition=0/{4:020d}.parquet")
    [problem] = [problem for check in verify(store, {"t": [0]}) for problem in check.problems]
    assert "is in the Delta table, and not in the archive" in problem


def test_decoded_columns_are_added_to_the_table(store: LocalStore, tmp_path: Path) -> None:
    DeltaLog.create(store, "t").catch_up(0)
    decoder = sg.json({"n": pl.Int64})
    publish(store, 0, 7, 3, decoder)
    log = DeltaLog.create(store, "t", decoded_schema(decoder))
    log.catch_up(0)
    decoded = table(tmp_path).column("decoded").to_pylist()
    assert decoded == [None] * 7 + [None, {"n": 8}, {"n": 9}]
    with pytest.raises(ArchiveError, match="column decoded has a different type"):
        DeltaLog.create(store, "t", decoded_schema(sg.json({"n": pl.String})))
    assert DeltaLog.create(store, "t", SCHEMA).next_offset(0) == 10


def test_a_file_without_messages_is_counted_as_such(store: LocalStore, tmp_path: Path) -> None:
    writer = SegmentWriter("t", 0, 7)
    writer.skip(7, 9)
    segment, data = writer.finish()
    assert store.create(segment.path, data)
    log = DeltaLog.create(store, "t")
    log.catch_up(0)
    publish(store, 0, 9, 2)
    log.catch_up(0)
    assert log.next_offset(0) == 11 and offsets(tmp_path) == [*range(7), 9, 10]


def test_a_damaged_log_is_refused_by_name(store: LocalStore, tmp_path: Path) -> None:
    DeltaLog.create(store, "t").catch_up(0)
    for entry in (tmp_path / "topic=t" / "_delta_log").glob("*.json"):
        entry.write_text("{")
    with pytest.raises(ArchiveError, match="topic=t/_delta_log"):
        DeltaLog.open(store, "t")


def test_a_bucket_holds_a_table(s3: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        *(("AWS_ACCESS_KEY_ID", s3["key"]), ("AWS_SECRET_ACCESS_KEY", s3["secret"])),
        *(("AWS_ENDPOINT_URL", s3["endpoint_url"]), ("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1")),
    ):
        monkeypatch.setenv(name, value)
    store = store_of("s3://streams/delta", s3)
    publish(store, 0, 0, 3)
    one, another = DeltaLog.create(store, "t"), DeltaLog.create(store, "t")
    one.catch_up(0)
    another.catch_up(0)
    read = pa.table(deltalake.DeltaTable("s3://streams/delta/topic=t").to_pyarrow_table())
    assert sorted(read.column("offset").to_pylist()) == [0, 1, 2]
    assert [check.problems for check in verify(store, {"t": [0]})] == [[]]
