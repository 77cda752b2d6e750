"""An archived topic gives back what it was given, across files, from any offset on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamgauge.operators.archive.recording import Recording
from streamgauge.operators.archive.segment import (
    FOOTER,
    ArchiveError,
    Segment,
    SegmentWriter,
    messages_to_columns,
    segment_of,
)
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.formats.messages import Messages


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Partition 1 of "posts": offsets 5 to 8 in one file, 10 to 12 in the next, whose range begins at 9."""
    store = LocalStore(tmp_path)
    for first, offset, values in ((5, 5, [b"a", None, b"", b"\xff"]), (9, 10, [b"b", b"c", b"d"])):
        writer = SegmentWriter("posts", 1, first)
        headers = [[("n", value), ("n", None)] for value in values]
        keys = [value and value + b"!" for value in values]
        writer.add(
            Messages.of(
                values,
                keys,
                topic="posts",
                partition=1,
                first_offset=offset,
                timestamps=[-1, *range(7, 6 + len(values))],
                headers=headers,
            )
        )
        segment, data = writer.finish(9 if first == 5 else None)
        assert store.create(segment.path, data)
    return tmp_path


def test_messages_come_back_as_they_were(archive: Path) -> None:
    recording = Recording.open(str(archive))
    assert (recording.topic, recording.rows, recording.n_partitions) == ("posts", 7, 2)
    assert (recording.bounds(1), recording.bounds(0)) == ((5, 13), (0, 0))
    first, second = recording.read(1)
    assert first.offset.tolist() == [5, 6, 7, 8]
    assert [first.value_at(row) for row in range(4)] == [b"a", None, b"", b"\xff"]
    assert first.value.to_pylist() == [b"a", None, b"", b"\xff"]
    assert first.key.to_pylist() == [b"a!", None, b"", b"\xff!"]
    assert first.timestamp.tolist() == [-1, 7, 8, 9]
    assert first.headers is not None
    assert first.headers[3].as_py() == [{"key": "n", "value": b"\xff"}, {"key": "n", "value": None}]
    assert second.value.to_pylist() == [b"b", b"c", b"d"]


@pytest.mark.parametrize(
    "first, following, offsets",
    [(0, None, [5, 6, 7, 8, 10, 11, 12]), (8, 11, [8, 10]), (13, None, []), (0, 5, []), (9, 10, [])],
)
def test_a_range_of_offsets_is_read(
    archive: Path, first: int, following: int | None, offsets: list[int]
) -> None:
    parts = Recording.open(str(archive)).read(1, first, following, limit=2)
    assert [offset for part in parts for offset in part.offset.tolist()] == offsets


def test_one_topic_of_several_is_named(archive: Path) -> None:
    writer = SegmentWriter("trades", 0, 0)
    writer.add(Messages.of([b"t"]))
    segment, data = writer.finish()
    LocalStore(archive).create(segment.path, data)
    with pytest.raises(ArchiveError, match=r"holds the topics posts, trades; name one, as in .*/topic=posts"):
        Recording.open(str(archive))
    assert Recording.open(f"{archive}/topic=trades").topic == "trades"
    with pytest.raises(ArchiveError, match="holds no topic 'nothing'"):
        Recording.open(str(archive), "nothing")


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0xFF, 0x10])
def test_damage_at_any_byte_is_refused_by_the_files_name_or_changes_nothing(
    tmp_path: Path, mask: int
) -> None:
    values = [None if n == 3 else b'{"n": %d}' % n for n in range(40)]
    keys = [None if n % 5 == 0 else b"k%d" % n for n in range(40)]
    headers: list[list[tuple[str, bytes | None]]] = [[("h", b"1")] if n % 3 == 0 else [] for n in range(40)]
    stamps = [1_700_000_000_000 + n for n in range(40)]
    writer = SegmentWriter("posts", 0, 100, "id")
    writer.add(Messages.of(values, keys, topic="posts", first_offset=100, timestamps=stamps, headers=headers))
    segment, data = writer.finish()
    whole, path = data.to_pybytes(), tmp_path / segment.path
    path.parent.mkdir(parents=True)

    def read() -> list[object]:
        recording = Recording.open(str(tmp_path))
        batches = [messages_to_columns(messages).to_pylist() for messages in recording.read(0)]
        return [recording.bounds(0), *batches]

    path.write_bytes(whole)
    expected, wrong = read(), []
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        try:
            if read() != expected:
                wrong.append(f"byte {at}: other rows")
        except ArchiveError as error:
            if path.name not in str(error):
                wrong.append(f"byte {at}: {error}")
        except Exception as error:
            wrong.append(f"byte {at}: {type(error).__name__}: {error}")
    assert wrong == []


def test_footers_of_the_first_version_are_read_and_those_of_later_ones_refused() -> None:
    fields = {"topic": "posts", "partition": 1, "first_offset": 5, "next_offset": 9, "rows": 4, "lost": []}
    old = json.dumps({"version": 1, **fields}).encode()
    assert segment_of({FOOTER: old}, "x.parquet") == Segment("posts", 1, 5, 9, 4)
    for version in (0, 4):
        with pytest.raises(
            ArchiveError, match=f"version {version}, and this version of streamgauge reads 1 to 3"
        ):
            segment_of({FOOTER: json.dumps({"version": version, **fields}).encode()}, "x.parquet")
