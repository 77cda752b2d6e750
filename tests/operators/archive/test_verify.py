"""Every inverted byte and every missing file of an archive is found by name, by readers or by `verify`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from streamgauge.agents.archive.retention import remove_older
from streamgauge.operators.archive.chain import current_manifest, last_segment, segments, topics_of
from streamgauge.operators.archive.manifest import Manifest, read_manifest, record_first, sha256_of
from streamgauge.operators.archive.recording import Recording
from streamgauge.operators.archive.segment import ArchiveError, Segment, SegmentWriter, messages_to_columns
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.archive.verify import PartitionCheck, file_count, verify
from streamgauge.operators.formats.messages import Messages


def publish(store: LocalStore, first: int, count: int, time: int = 5) -> Segment:
    """One more file of partition 0 of "t", as an archiver publishes it."""
    record_first(store, "t", 0, first)
    before = current_manifest(store, "t", 0)
    writer = SegmentWriter("t", 0, first)
    values = [None if n == 1 else b"value %d" % n for n in range(count)]
    keys = [None if n == 0 else b"k" for n in range(count)]
    stamps = [(-1, 0, time)[n % 3] for n in range(count)]
    headers: list[list[tuple[str, bytes | None]]] = [[("h", b"1"), ("h", None)] for _ in range(count)]
    writer.add(Messages.of(values, keys, first_offset=first, timestamps=stamps, headers=headers))
    segment, data = writer.finish(before=before.sha256)
    assert store.create(segment.path, data)
    before.after(segment, sha256_of(data)).write(store)
    return segment


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """Offsets 4 to 13 in three files."""
    store = LocalStore(tmp_path)
    for first, count in ((4, 3), (7, 5), (12, 2)):
        publish(store, first, count)
    return store


def checked(store: LocalStore) -> PartitionCheck:
    [check] = verify(store, {"t": [0]})
    return check


def rows(folder: Path) -> object:
    recording = Recording.open(str(folder))
    return recording.bounds(0), [messages_to_columns(part).to_pylist() for part in recording.read(0)]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_whole_archive_is_counted_and_has_no_problem(store: LocalStore, tmp_path: Path) -> None:
    check = checked(store)
    assert check.problems == [] and (check.files, check.messages, check.unhashed) == (3, 10, 0)
    assert (check.first_offset, check.next_offset, check.lost) == (4, 14, [])
    assert check.bytes == sum(path.stat().st_size for path in files(tmp_path) if path.suffix == ".parquet")
    assert file_count(store, topics_of(store)) == 3
    assert read_manifest(store, "t", 0) == current_manifest(store, "t", 0)
    assert [path.name for path in files(tmp_path) if path.suffix == ".json"] == [
        "_first.json",
        f"_manifest.{14:020d}.json",
    ]


@pytest.mark.slow
def test_each_inverted_byte_is_refused_by_name(store: LocalStore, tmp_path: Path) -> None:
    """Readers refuse it or give the same rows; `verify` finds it everywhere but in where all begins."""
    expected, wrong = rows(tmp_path), []
    for path in files(tmp_path):
        whole = path.read_bytes()
        for at in range(0, len(whole), 1 if path.suffix == ".json" else 13):
            mask = 0x01 if at % 2 else 0xFF
            path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
            try:
                if rows(tmp_path) != expected:
                    wrong.append(f"{path.name}, byte {at}: other rows")
            except ArchiveError as error:
                if path.name not in str(error):
                    wrong.append(f"{path.name}, byte {at}: {error}")
            problems = checked(store).problems
            named = any(path.name in problem for problem in problems)
            if not named and path.name != "_first.json":
                wrong.append(f"{path.name}, byte {at}: not found by verify: {problems}")
        path.write_bytes(whole)
    assert wrong == []


@pytest.mark.parametrize("first", [4, 7, 12])
def test_a_missing_file_is_refused_wherever_it_lay(store: LocalStore, tmp_path: Path, first: int) -> None:
    (tmp_path / "topic=t" / "partition=0" / f"{first:020d}.parquet").unlink()
    with pytest.raises(ArchiveError, match="missing"):
        Recording.open(str(tmp_path))
    assert any("missing" in problem for problem in checked(store).problems)
    if first == 12:
        with pytest.raises(ArchiveError, match=f"{first:020d}.parquet is missing: .*_manifest"):
            last_segment(store, "t", 0)


def test_another_whole_file_of_the_same_offsets_is_found(store: LocalStore, tmp_path: Path) -> None:
    other = LocalStore(tmp_path / "other")
    for first, count in ((4, 3), (7, 5), (12, 2)):
        publish(other, first, count, time=6)
    name = f"topic=t/partition=0/{7:020d}.parquet"
    shutil.copy(tmp_path / "other" / name, tmp_path / name)
    shutil.rmtree(tmp_path / "other")
    problems = checked(store).problems
    assert len(problems) == 2 and all("is damaged: its SHA-256 is" in problem for problem in problems)


def test_all_problems_are_found_and_foreign_files_named(store: LocalStore, tmp_path: Path) -> None:
    place = tmp_path / "topic=t" / "partition=0"
    (place / "notes.txt").write_text("x")
    for first in (4, 12):
        (place / f"{first:020d}.parquet").write_bytes(b"PAR1")
    text = "\n".join(checked(store).problems)
    for name in ("notes.txt", f"{4:020d}.parquet is damaged", f"{12:020d}.parquet is damaged"):
        assert name in text


def test_retention_says_where_the_archive_begins(store: LocalStore, tmp_path: Path) -> None:
    publish(store, 14, 3, time=100)
    assert [one.first_offset for one in remove_older(store, {"t": [0]}, 50)] == [4, 7, 12]
    check = checked(store)
    assert check.problems == [] and (check.first_offset, check.files) == (14, 1)
    assert (read_manifest(store, "t", 0) or Manifest("t", 0, 0)).rows == 13
    publish(store, 17, 1)
    (tmp_path / "topic=t" / "partition=0" / f"{14:020d}.parquet").unlink()
    with pytest.raises(ArchiveError, match="the archive begins at offset 14: 14 to 16 are missing"):
        segments(store, "t", 0)


class Raced(LocalStore):
    """A store in which something happens once, as soon as files were listed that have this name."""

    def __init__(self, root: Path, happens: Callable[[], object]) -> None:
        super().__init__(root)
        self._happens: list[Callable[[], object]] = [happens]

    def files(self, folder: str) -> list[str]:
        names = super().files(folder)
        if any(name.endswith(".parquet") for name in names) and self._happens:
            self._happens.pop()()
        return names


def test_retention_and_archivers_may_race_readers(store: LocalStore, tmp_path: Path) -> None:
    publish(store, 14, 3, time=100)
    raced = Raced(tmp_path, lambda: remove_older(store, {"t": [0]}, 50))
    assert [one.first_offset for one in segments(raced, "t", 0)] == [14]
    raced = Raced(tmp_path, lambda: publish(store, 17, 2))
    assert [one.first_offset for one in segments(raced, "t", 0)] in ([14], [14, 17])
    raced = Raced(tmp_path, lambda: (publish(store, 19, 2, 200), remove_older(store, {"t": [0]}, 150)))
    assert checked(raced).problems == []


def test_retention_between_two_files_of_verify_is_no_damage(store: LocalStore) -> None:
    """The first file is read, then it and the second are removed, and the third follows neither."""
    left = iter([lambda: remove_older(store, {"t": [0]}, 50)])
    publish(store, 14, 3, time=100)
    [check] = verify(store, {"t": [0]}, lambda: next(left, lambda: None)())
    assert (check.problems, check.first_offset, check.next_offset) == ([], 14, 17)


def test_a_file_that_no_retention_removed_is_missing_in_the_middle_of_verify(store: LocalStore) -> None:
    path = f"topic=t/partition=0/{7:020d}.parquet"
    left = iter([lambda: store.remove(path)])
    [check] = verify(store, {"t": [0]}, lambda: next(left, lambda: None)())
    assert any("7 to 11 are missing" in problem for problem in check.problems)


def test_a_file_removed_under_a_reader_is_named(store: LocalStore, tmp_path: Path) -> None:
    recording = Recording.open(str(tmp_path))
    remove_older(store, {"t": [0]}, 50)
    with pytest.raises(ArchiveError, match=r"0004\.parquet was removed while the archive was read"):
        list(recording.read(0))


def test_an_archiver_killed_before_its_manifest_is_made_up_for(store: LocalStore, tmp_path: Path) -> None:
    before = read_manifest(store, "t", 0)
    publish(store, 14, 2)
    whole = read_manifest(store, "t", 0)
    assert before is not None and whole is not None
    store.remove(whole.path)
    before.write(store)
    check = checked(store)
    assert check.problems == [] and check.unhashed == 1
    assert current_manifest(store, "t", 0) == whole
    store.remove(before.path)
    assert current_manifest(store, "t", 0) == whole
