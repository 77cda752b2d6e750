"""Files that are damaged, foreign, missing or twice there are refused by name."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamgauge as sg
from streamgauge.operators.archive.chain import segments, topics_of
from streamgauge.operators.archive.recording import Recording
from streamgauge.operators.archive.segment import ArchiveError, SegmentWriter
from streamgauge.operators.archive.store import LocalStore, Store, store_of
from streamgauge.operators.formats.decode import TOMBSTONE
from streamgauge.operators.formats.messages import Messages


def fill(store: Store, *ranges: tuple[int, int]) -> None:
    for first, following in ranges:
        writer = SegmentWriter("t", 0, first)
        writer.add(Messages.of([b"%d" % n for n in range(first, following)], first_offset=first))
        segment, data = writer.finish()
        assert store.create(segment.path, data)


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "topic=t" / "partition=0").iterdir())


def test_segments_follow_each_other(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    fill(store, (0, 3), (3, 5))
    assert [(s.first_offset, s.next_offset, s.rows) for s in segments(store, "t", 0)] == [
        (0, 3, 3),
        (3, 5, 2),
    ]
    assert topics_of(store) == {"t": [0]}


def test_a_file_is_created_once(tmp_path: Path) -> None:
    for place in (str(tmp_path / "local"), "memory://archive"):
        store = store_of(place)
        assert store.create("topic=t/partition=0/a.parquet", pa.py_buffer(b"one"))
        assert not store.create("topic=t/partition=0/a.parquet", pa.py_buffer(b"two"))
        with store.open("topic=t/partition=0/a.parquet") as file:
            assert file.read() == b"one"
        assert store.files("topic=t/partition=0") == ["a.parquet"]
        assert (store.files("nowhere"), store.folders("")) == ([], ["topic=t"])


def test_drafts_of_killed_writers_are_removed_after_a_day(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    fill(store, (0, 3))
    [whole] = files(tmp_path)
    drafts = [whole.with_name(f".{whole.name}.{number}") for number in range(2)]
    for draft, age in zip(drafts, (0, 100_000)):
        draft.write_bytes(b"half")
        os.utime(draft, (time.time() - age,) * 2)
    store.remove_drafts("topic=t/partition=0")
    assert files(tmp_path) == [drafts[0], whole]
    store.remove_drafts("topic=t/partition=7")


@pytest.mark.parametrize(
    "ranges, message",
    [([(0, 3), (5, 6)], "3 to 4 are missing"), ([(0, 5), (3, 6)], "3 to 4 are there twice")],
)
def test_gaps_and_overlaps_are_refused(tmp_path: Path, ranges: list[tuple[int, int]], message: str) -> None:
    store = LocalStore(tmp_path)
    fill(store, *ranges)
    with pytest.raises(ArchiveError, match=message):
        segments(store, "t", 0)


def test_damaged_and_foreign_files_are_refused_by_name(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    fill(store, (0, 3))
    [file] = files(tmp_path)
    whole = file.read_bytes()
    for wrong, message in (
        (whole[:-20], "is damaged, or isn't Parquet"),
        (b"PAR1", "is damaged, or isn't Parquet"),
        (whole.replace(b'"version": 3', b'"version": 7'), "has archive format version 7"),
        (whole.replace(b'"rows": 3', b'"rows": 4'), "part of the footer is wrong"),
        (whole.replace(b'"partition": 0', b'"partition": 1'), "part of the footer is wrong"),
    ):
        file.write_bytes(wrong)
        with pytest.raises(ArchiveError, match=message) as raised:
            segments(store, "t", 0)
        assert file.name in str(raised.value)
    pq.write_table(pa.table({"a": [1]}), file)
    with pytest.raises(ArchiveError, match="is Parquet, but not of an archive"):
        segments(store, "t", 0)


def test_a_renamed_file_is_refused(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    fill(store, (0, 3))
    [file] = files(tmp_path)
    shutil.copy(file, file.with_name(f"{3:020d}.parquet"))
    with pytest.raises(ArchiveError, match="was moved or renamed"):
        segments(store, "t", 0)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="is not an archive"):
        topics_of(LocalStore(tmp_path))
    with pytest.raises(ArchiveError, match="no filesystem for nowhere://"):
        store_of("nowhere://bucket")


def test_values_are_decoded_beside_the_raw_ones(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    decoder = sg.json({"n": pl.Int64, "tags": pl.List(pl.String)})
    writer = SegmentWriter("t", 0, 0, decoder=decoder)
    values = [b'{"n":1,"tags":["a"]}', b"oops", None, b'{"n":2,"tags":[]}']
    for messages in (Messages.of(values), Messages.of([b"[]"], first_offset=4)):
        writer.add(messages)
    segment, data = writer.finish()
    assert store.create(segment.path, data)
    [file] = files(tmp_path)
    table = pq.ParquetFile(file).read()
    assert table.column("value").to_pylist() == [*values, b"[]"]
    decoded = [{"n": 1, "tags": ["a"]}, None, None, {"n": 2, "tags": []}, None]
    assert table.column("decoded").to_pylist() == decoded
    refused = table.column("refused").to_pylist()
    assert refused[0] is refused[3] is None and refused[2] == TOMBSTONE and all((refused[1], refused[4]))
    [read] = Recording.open(str(tmp_path)).read(0)
    assert read.value.to_pylist() == [*values, b"[]"]


def test_a_segment_reads_the_same_whether_decoded_or_not(tmp_path: Path) -> None:
    fill(LocalStore(tmp_path), (0, 3))
    writer = SegmentWriter("t", 0, 3, decoder=sg.json({"n": pl.Int64}))
    writer.add(Messages.of([b'{"n":3}'], first_offset=3))
    segment, data = writer.finish()
    assert LocalStore(tmp_path).create(segment.path, data)
    parts = list(Recording.open(str(tmp_path)).read(0))
    assert [value for part in parts for value in part.value.to_pylist()] == [b"0", b"1", b"2", b'{"n":3}']
