"""A table kept in a folder: whole again after a restart, and worth nothing if any of it is damaged."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.watermarks.position import inputs_of
from streamgauge.queries.views.live import LiveTable
from streamgauge.queries.views.table_snapshot import TableSnapshot

from ..logs import STREAM, Fed, deltas, messages, rows

SENT = messages(deltas(rows(seed=9, minutes=7)))
HALF = len(SENT) // 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    TableSnapshot(tmp_path / "posts").save("table", "one", Fed().feed(SENT[:HALF]).table.known())
    return tmp_path / "posts"


def content(table: LiveTable) -> list[object]:
    return [(window.open, window.table.to_pylist()) for window in table.view().windows]


def test_a_later_server_goes_on_where_the_first_one_was(folder: Path) -> None:
    saved = TableSnapshot(folder)
    known = saved.load("table", "one")
    assert known is not None and known.windows
    table = LiveTable("posts")
    table.add_closed(known.windows)
    table.add_gaps(known.gaps)
    until = {0: max(window.end for window in known.windows)}
    table.begin(described_stream(STREAM.definition()), known.places, inputs_of({"posts": 2}), until)
    offset = known.places[0][0]
    assert 0 < offset < HALF  # the windows that were open are read again, and no others
    for at in range(offset, len(SENT)):
        table.merge_message(0, at, SENT[at].value, list(SENT[at].headers))
    assert content(table) == content(Fed().feed(SENT).table) and table.view().gaps == ()
    # Kept again, what was there is not written again, and what is closed since is added.
    before = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.arrows")}
    saved.save("table", "one", table.known())
    after = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.arrows")}
    assert before.items() < after.items()


def test_nobody_else_on_the_machine_reads_what_the_server_asks_a_token_for(folder: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(modes) > 1 and set(modes.values()) == {0o600}


def test_windows_that_are_no_longer_kept_leave_no_files(folder: Path) -> None:
    table = Fed(keep_us=60_000_000).feed(SENT).table
    saved = TableSnapshot(folder)
    saved.save("table", "one", table.known())
    assert len(list(folder.glob("*.arrows"))) == 1
    result = saved.load("table", "one")
    assert result is not None and len(result.windows) == 1


def test_what_is_damaged_anywhere_is_not_taken(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = sorted(folder.iterdir())
    assert len(files) > 2
    for file in files:
        whole = file.read_bytes()
        places = range(0, len(whole), max(1, len(whole) // 40))
        broken = [whole[:at] for at in places]
        broken += [whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in places]
        for data in broken:
            copy = tmp_path / "copy"
            shutil.copytree(folder, copy)
            (copy / file.name).write_bytes(data)
            with caplog.at_level(logging.WARNING, "streamgauge.serving"):
                assert TableSnapshot(copy).load("table", "one") is None
            assert "reading all of table instead" in caplog.text
            caplog.clear()
            shutil.rmtree(copy)
        file.unlink()
        if file.name != "table.json":
            assert TableSnapshot(folder).load("table", "one") is None
        file.write_bytes(whole)
    assert TableSnapshot(folder).load("table", "one") is not None


def test_another_topic_of_that_name_is_not_gone_on_with(folder: Path) -> None:
    assert TableSnapshot(folder).load("table", "two") is None
    assert TableSnapshot(folder).load("other", "one") is None
    assert TableSnapshot(folder / "nothing").load("table", "one") is None
