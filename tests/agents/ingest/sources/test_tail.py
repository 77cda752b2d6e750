"""Lines equal messages, whatever becomes of the files.

Cases restated from Flume's TestTaildirEventReader and from the tests of Vector's file source.
"""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .tailing import Tailing, numbered, write


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


def aged(path: Path, seconds: float = 10.0) -> None:
    """As if its last change were some time ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """As if the process might have no more; it has more open already."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


# Flume: testBasicReadFiles, testInitiallyEmptyDirAndBehaviorAfterReadingAll, testUpdatedFile


def test_all_lines_of_all_files_then_what_is_appended(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write(tmp_path / name, *(f"{name} {at}" for at in range(5)))
    tail = Tailing(tmp_path)
    assert sorted(tail.read()) == sorted(
        f"{n} {at}".encode() for n in ("one", "two", "three") for at in range(5)
    )
    assert tail.read() == []
    write(tmp_path / "two", "more")
    write(tmp_path / "four", "new")
    assert sorted(tail.read()) == [b"more", b"new"]


def test_an_empty_folder_gets_files_later(tmp_path: Path) -> None:
    tail = Tailing(tmp_path)
    assert tail.read() == []
    write(tmp_path / "a", "first")
    assert tail.read() == [b"first"]


# Flume: testBasicCommitFailure


def test_what_was_not_committed_comes_again(log: Path) -> None:
    write(log, *numbered(range(10)))
    tail = Tailing(log.parent)
    assert tail.read(commit=False) == numbered(range(10))
    tail.restart()
    assert tail.read() == numbered(range(10))
    tail.restart()
    assert tail.read() == []


# Vector: file_read_from_beginning, file_start_position_server_restart


def test_from_the_end_only_what_comes_later(tmp_path: Path, log: Path) -> None:
    write(log, "old")
    tail = Tailing(tmp_path, start="end")
    assert tail.read() == []
    write(log, "new")
    write(tmp_path / "b.log", "of another")
    assert sorted(tail.read()) == [b"new", b"of another"]
    tail.restart()
    write(log, "newer")
    assert tail.read() == [b"newer"]


# Vector: file_partial_lines, file_gzipped, file_truncate, file_rotate, file_fingerprint_inode_reuse


def test_a_line_waits_for_its_newline(log: Path) -> None:
    write(log, "whole", end=b"\n")
    write(log, "par", end=b"")
    tail = Tailing(log.parent)
    assert tail.read() == [b"whole"]
    assert tail.source.unfinished == {str(log): 3}
    tail.restart()
    write(log, "tial")
    assert tail.read() == [b"partial"]
    assert tail.source.unfinished == {}


def test_ends_of_lines_and_bytes_that_are_no_text(log: Path) -> None:
    log.write_bytes(b"one\r\n\r\n\n\xff\xfe\x00\r\n\rtwo\r\r\n")
    assert Tailing(log.parent).read() == [b"one", b"", b"", b"\xff\xfe\x00", b"\rtwo\r"]


@pytest.mark.parametrize("size", [10_000_000, 4 * 1024 * 1024, 4 * 1024 * 1024 - 1])
def test_a_line_of_10_mb(log: Path, size: int) -> None:
    write(log, "before", b"x" * size, "after")
    assert Tailing(log.parent).read() == [b"before", b"x" * size, b"after"]


@pytest.mark.parametrize("size", [1_001, 10_000_000])
def test_a_line_that_is_too_long_is_a_dead_letter(log: Path, size: int) -> None:
    write(log, "before", b"y" * 1_000, b"x" * size, "after")
    tail = Tailing(log.parent, max_line=1_000)
    assert tail.read() == [b"before", b"y" * 1_000, b"after"]
    assert [set(line) for line in tail.dead] == [{ord("x")}]
    assert [len(line) for line in tail.dead] == [min(size, 100_000)]


def test_a_line_that_is_too_long_and_has_no_end_yet(log: Path) -> None:
    write(log, "before", end=b"\n")
    write(log, b"x" * 20_000_000, end=b"")
    tail = Tailing(log.parent, max_line=1_000)
    assert tail.read() == [b"before"] and tail.dead == []
    write(log, b"x" * 10, "after")
    assert tail.read() == [b"after"] and len(tail.dead) == 1


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("size", [999, 1_000, 1_001, 2_000, 2_001, 9_000_000])
def test_a_line_that_is_too_long_in_pieces(log: Path, size: int, end: bytes) -> None:
    long = bytes(range(33, 127)) * (size // 94) + b"x" * (size % 94)
    write(log, "before", long, "", "after", end=end)
    tail = Tailing(log.parent, max_line=1_000, long_lines="pieces")
    pieces = [long[at : at + 1_000] for at in range(0, size, 1_000)]
    assert tail.read() == [b"before", *pieces, b"", b"after"] and tail.dead == []


@pytest.mark.slow
@pytest.mark.parametrize("size", [2_000, 2_001, 2_002, 20_000_000])
def test_pieces_of_a_line_that_grows_across_restarts(log: Path, size: int) -> None:
    tail = Tailing(log.parent, max_line=1_000, long_lines="pieces")
    write(log, "before", b"x" * size, end=b"\n")
    os.truncate(log, log.stat().st_size - 1)
    first = tail.read()
    assert first[0] == b"before" and size - 1_002 < sum(map(len, first[1:])) < size
    tail.restart()
    write(log, b"yy", "after")
    tail.read()
    assert b"".join(tail.lines) == b"before" + b"x" * size + b"yyafter" and tail.dead == []
    assert {len(line) for line in tail.lines[1:-2]} == {1_000} and 0 < len(tail.lines[-2]) <= 1_000


@pytest.mark.parametrize("restart", [False, True])
def test_rotation_by_renaming(log: Path, restart: bool) -> None:
    tail = Tailing(log.parent, "a.log*")
    write(log, *numbered(range(5)))
    tail.read_one()
    write(log, *numbered(range(5, 8)))
    log.rename(log.with_name("a.log.1"))
    write(log, *numbered(range(8, 10)))
    if restart:
        tail.restart()
    tail.read()
    assert tail.lines == numbered(range(10))


@pytest.mark.parametrize("restart", [False, True])
def test_rotation_to_a_name_that_no_pattern_matches(log: Path, restart: bool) -> None:
    tail = Tailing(log.parent, "a.log")
    write(log, *numbered(range(5)))
    tail.read()
    write(log, *numbered(range(5, 8)))
    log.rename(log.with_name("a.log.1"))
    write(log, *numbered(range(8, 10)))
    if restart:
        tail.restart()
    tail.read()
    assert tail.lines == numbered(range(10))


def test_the_writer_goes_on_in_the_renamed_file(log: Path) -> None:
    tail = Tailing(log.parent, "a.log*")
    with log.open("ab") as file:
        file.write(b"one\n")
        file.flush()
        tail.read()
        log.rename(log.with_name("a.log.1"))
        write(log, "three")
        tail.read()
        file.write(b"two\n")
    tail.read()
    assert sorted(tail.lines) == [b"one", b"three", b"two"]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["a.log", "a.log*"])
@pytest.mark.parametrize("restart", [False, True])
def test_rotation_by_copy_and_truncate(log: Path, restart: bool, pattern: str) -> None:
    tail = Tailing(log.parent, pattern)
    write(log, *numbered(range(5)))
    tail.read()
    write(log, *numbered(range(5, 8)))  # nobody has read these when the copy is made
    shutil.copy(log, log.with_name("a.log.1"))
    log.write_bytes(b"")
    write(log, *numbered(range(8, 10)))
    if restart:
        tail.restart()
    tail.read()
    assert tail.lines == numbered(range(10))


def test_a_copy_that_is_there_before_the_truncation(log: Path) -> None:
    tail = Tailing(log.parent, "a.log*")
    write(log, *numbered(range(5)))
    tail.read()
    shutil.copy(log, log.with_name("a.log.1"))
    assert tail.source.read(0.7) is None  # it waits to see what becomes of the other
    log.write_bytes(b"")
    write(log, *numbered(range(5, 7)))
    tail.read()
    assert tail.lines == numbered(range(7))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [100.0, 1.0])
def test_a_rotated_file_that_is_the_beginning_of_the_present_one(log: Path, seconds: float) -> None:
    older = log.with_name("a.log.1")
    write(older, "Started")
    aged(older, seconds)
    write(log, "Started", "working")
    assert Tailing(log.parent, "a.log*").read() == [b"Started", b"Started", b"working"]


def test_rotated_files_that_begin_like_one_that_was_read(log: Path) -> None:
    """Neither the position of the first file nor its name may be taken for the second one's."""
    tail = Tailing(log.parent, "a.log*")
    write(log, "Started")
    tail.read()
    log.rename(log.with_name("a.log.2"))
    write(log.with_name("a.log.2"), "first")
    write(log.with_name("a.log.1"), "Started", "second")
    write(log, "Started", "third")
    for age, name in enumerate(("a.log", "a.log.1", "a.log.2")):
        aged(log.with_name(name), 100.0 * (age + 1))
    tail.restart()
    tail.read()
    assert tail.lines == [b"Started", b"first", b"Started", b"second", b"Started", b"third"]


def test_a_packed_file_that_begins_like_the_present_one(log: Path) -> None:
    tail = Tailing(log.parent, "a.log*")
    write(log, "Started")
    tail.read()
    packed = log.with_name("a.log.1.gz")
    packed.write_bytes(gzip.compress(b"Started\nof another\n"))
    aged(packed, 100)
    tail.restart()
    assert tail.read() == [b"Started", b"of another"]


def test_truncated_and_grown_beyond_where_it_was_read(log: Path) -> None:
    tail = Tailing(log.parent)
    write(log, "short")
    tail.read()
    log.write_bytes(b"")
    write(log, "much longer than before", "and more")
    assert tail.read() == [b"much longer than before", b"and more"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 10_000, 9_000_000])
@pytest.mark.parametrize("seen", [False, True])
def test_a_writer_that_does_not_append_leaves_nuls(
    log: Path, size: int, seen: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Copied and truncated, then written on at the old offset."""
    tail = Tailing(log.parent, "a.log*")
    with log.open("wb") as file:
        file.write(b"x" * (size - 1) + b"\n")
        file.flush()
        tail.read()
        shutil.copy(log, log.with_name("a.log.1"))
        aged(log.with_name("a.log.1"))
        os.truncate(log, 0)
        if seen:
            tail.read()
        file.write(b"be")
        file.flush()
        tail.read()
        assert not tail.dropped
        file.write(b"hind\nlast\n")
        file.flush()
        tail.read()
        tail.restart()
        tail.read()
    assert tail.lines == [b"x" * (size - 1), b"behind", b"last"] and not tail.dead
    assert tail.dropped == {"a run of NULs": 1}
    assert f"a.log begins with {size} NULs" in caplog.text


def test_a_rotated_file_of_nuls_alone(log: Path) -> None:
    log.with_name("a.log.1").write_bytes(bytes(3_000))
    aged(log.with_name("a.log.1"), 100)
    write(log, "present")
    tail = Tailing(log.parent, "a.log*")
    assert tail.read() == [b"present"] and tail.dropped == {"a run of NULs": 1}


def test_truncated_and_grown_with_the_same_beginning(log: Path) -> None:
    header = [b"#Fields: date time %s" % (b"x" * 2_000)]
    tail = Tailing(log.parent)
    write(log, *header, *numbered(range(100)))
    tail.read()
    write(log, *header, *numbered(range(100, 900)), mode="wb")
    assert tail.read() == header + numbered(range(100, 900))


@pytest.mark.parametrize("lines", [3, 300])
def test_an_inode_that_is_used_again(log: Path, lines: int) -> None:
    """The file system may not give the same inode; that the position is of it is what matters."""
    tail = Tailing(log.parent)
    write(log, *numbered(range(lines)))
    tail.read()
    (key,) = tail.positions
    log.unlink()
    write(log, *numbered(range(1_000, 1_000 + 2 * lines)))
    status = log.stat()
    tail.positions = {f"{status.st_dev}:{status.st_ino}": tail.positions[key]}
    tail.restart()
    assert tail.read() == numbered(range(1_000, 1_000 + 2 * lines))


def test_packed_files_are_read_and_their_rest_is(log: Path) -> None:
    tail = Tailing(log.parent, "a.log*")
    older = log.with_name("a.log.2.gz")
    older.write_bytes(gzip.compress(b"".join(line + b"\n" for line in numbered(range(5))) + b"no newline"))
    aged(older, 100)
    write(log, *numbered(range(5, 8)))
    assert tail.read() == [*numbered(range(5)), b"no newline", *numbered(range(5, 8))]
    write(log, *numbered(range(8, 10)))
    # Rotated and packed at once, while no agent ran.
    packed = log.with_name("a.log.1.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    aged(packed)
    tail.restart()
    write(log, "new")
    assert tail.read() == [*numbered(range(8, 10)), b"new"]


def test_what_was_read_is_not_read_again_when_it_is_packed(log: Path) -> None:
    tail = Tailing(log.parent, "a.log*")
    write(log, *numbered(range(5_000)))
    tail.read()
    rotated = log.with_name("a.log.1")
    log.rename(rotated)
    write(log, "new")
    tail.read()
    packed = log.with_name("a.log.1.gz")
    packed.write_bytes(gzip.compress(rotated.read_bytes()))
    rotated.unlink()
    tail.read()
    tail.restart()
    tail.read()
    assert tail.lines == [*numbered(range(5_000)), b"new"]


def test_a_packed_file_that_is_damaged_is_named(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    packed = log.with_name("a.log.1.gz")
    packed.write_bytes(gzip.compress(os.urandom(50_000))[:-1_000])
    aged(packed)
    tail = Tailing(log.parent, "a.log*")
    tail.read()
    assert "a.log.1.gz: the compressed file is truncated or damaged" in caplog.text


def test_a_deleted_file_is_read_to_its_end(log: Path) -> None:
    tail = Tailing(log.parent)
    write(log, *numbered(range(5)))
    tail.read()
    write(log, *numbered(range(5, 9)))
    log.unlink()
    tail.read()
    assert tail.lines == numbered(range(9))


def test_many_rotations_in_their_order(log: Path) -> None:
    tail = Tailing(log.parent, "a.log*")
    write(log, "0")
    tail.read()
    for number in range(1, 6):
        for older in range(number, 0, -1):
            path = log.with_name(f"a.log.{older}") if older > 1 else log.with_name("a.log.1")
            before = log if older == 1 else log.with_name(f"a.log.{older - 1}")
            if before.exists():
                before.rename(path)
        write(log, str(number))
        time.sleep(0.01)
    tail.restart()
    tail.read()
    assert tail.lines == [b"0", b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_rotated_file_comes_before_the_present_one_whatever_its_time(log: Path, restart: bool) -> None:
    tail = Tailing(log.parent, "a.log*")
    if restart:
        write(log, "0")
        tail.read()
        tail.restart()
    write(log, "1", "2")
    shutil.copy(log, log.with_name("a.log.1"))
    log.write_bytes(b"")
    write(log, "3")
    aged(log.with_name("a.log.1"), -100)
    tail.read()
    assert tail.lines == [b"0"] * restart + [b"1", b"2", b"3"]


def test_messages_of_several_lines(log: Path) -> None:
    from streamgauge.agents.ingest.sources.lines import Multiline

    trace = b"2026-01-01 error\n  at here\n\n  at there"
    write(log, "continued", "2026-01-01 one", trace, "2026-01-02 two")
    tail = Tailing(log.parent, multiline=Multiline(start=r"^\d{4}-\d\d-\d\d ", seconds=0.0))
    assert tail.read() == [b"continued", b"2026-01-01 one", trace, b"2026-01-02 two"]


def test_a_message_of_several_lines_waits_for_the_next_one(log: Path) -> None:
    from streamgauge.agents.ingest.sources.lines import Multiline

    write(log, "- one", "  more")
    tail = Tailing(log.parent, multiline=Multiline(start="^-", seconds=60.0))
    tail.source._once = False
    assert tail.source.read(0.3) is None
    write(log, "  still more", "- two")
    assert tail.read_one() == [b"- one\n  more\n  still more"]


def test_blocks_are_cut_at_lines(log: Path) -> None:
    lines = numbered(range(600_000))
    write(log, *lines)
    tail = Tailing(log.parent)
    first = tail.read_one()
    assert 0 < len(first) < len(lines)
    tail.restart()
    tail.read()
    assert tail.lines == lines


def test_logs_take_turns(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, *(name.encode() * 200 for _ in range(60_000)))
    tail = Tailing(tmp_path)
    assert {tail.read_one()[0][:1] for _ in range(2)} == {b"a", b"b"}


@pytest.mark.parametrize("once", [True, False])
def test_more_files_than_may_be_open(tmp_path: Path, once: bool) -> None:
    """All with a last line that is not whole, some rotated; then those that were closed grow."""
    names = [f"{at}.log{end}" for at in range(15) for end in ("", ".1")] + [f"{at}.out" for at in range(30)]
    for name in names:
        write(tmp_path / name, *(f"{name} {line}" for line in range(3)), "par", end=b"\n")
        write(tmp_path / name, "tial", end=b"")
        if name.endswith(".1"):
            aged(tmp_path / name)
    with descriptors(16):
        tail = Tailing(tmp_path)
    tail.source._once = once

    def read_all(count: int) -> list[bytes]:
        if once:
            return tail.read()
        lines: list[bytes] = []
        while len(lines) < count:
            lines += tail.read_one()
            assert tail.source._count_open() <= 8
        return lines

    def expected(*lines: str) -> list[bytes]:
        return sorted(line.encode() for line in lines)

    first = read_all(240)
    assert sorted(first) == expected(*(f"{n} {at}" for n in names for at in range(3)), *["par"] * 60)
    assert all(first.index(b"%d.log.1 2" % at) < first.index(b"%d.log 0" % at) for at in range(15))
    if once:
        assert set(tail.source.unfinished.values()) == {4} and len(tail.source.unfinished) == 60
    for name in names:
        write(tmp_path / name, f" of {name}")
    assert sorted(read_all(60)) == expected(*(f"tial of {name}" for name in names))
    tail.restart()
    assert tail.read() == []


def test_files_that_always_grow_take_turns(tmp_path: Path) -> None:
    for at in range(12):
        write(tmp_path / str(at), "first")
    with descriptors(4):
        tail = Tailing(tmp_path)
    tail.source._once = False
    seen: set[bytes] = set()
    for _ in range(600):
        batch = tail.source.read(0.0)
        for value in batch.values() if batch else ():
            seen.add(value)
        for file in tail.source._open_files():
            write(file.path, file.path.name)
    assert seen == {b"first", *(str(at).encode() for at in range(12))}


def test_more_files_of_one_log_than_may_be_open(log: Path) -> None:
    for number in range(12):
        path = log.with_name(f"a.log.{number}") if number else log
        write(path, str(number))
        aged(path, 10.0 * (1 + number))
    with descriptors(8):
        tail = Tailing(log.parent)
    assert tail.read() == [b"%d" % number for number in range(11, -1, -1)]


def test_more_files_than_may_be_open_from_the_end(tmp_path: Path) -> None:
    for at in range(12):
        write(tmp_path / str(at), "old")
    with descriptors(8):
        tail = Tailing(tmp_path, start="end")
    assert tail.read() == []
    for at in range(12):
        write(tmp_path / str(at), "new")
    assert tail.read() == [b"new"] * 12


def test_files_that_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "a.log", "deep")
    write(tmp_path / "b.log", "out")
    tail = Tailing(tmp_path, "**/*.log", exclude=["*/b.log"])
    assert tail.read() == [b"deep"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"files": []}, "files must be a list"),
        ({"files": "a.log"}, "files must be a list"),
        ({"files": ["a"], "max_line": 0}, "max_line must be an integer ≥ 1, got 0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, object], text: str) -> None:
    from streamgauge.agents.ingest.sources.tail import FileTail

    with pytest.raises(ValueError, match=text):
        FileTail(**settings)


@pytest.mark.parametrize("newest", ["lowest", "highest"])
def test_numbers_decide_the_order_whatever_changed_the_times(log: Path, newest: str) -> None:
    for number in range(1, 8):
        oldest_first = 7 - number if newest == "lowest" else number - 1
        rotated = log.with_name(f"a.log.{number}")
        write(rotated, *numbered(range(2 * oldest_first, 2 * oldest_first + 2)))
        # A third one was touched, or copied, later than all others.
        aged(rotated, 90 if number == 3 else 1_000 - 10 * oldest_first)
    write(log, *numbered(range(14, 16)))
    tail = Tailing(log.parent, "a.log*")
    assert tail.read() == numbered(range(16))
    tail.restart()
    assert tail.read() == []
