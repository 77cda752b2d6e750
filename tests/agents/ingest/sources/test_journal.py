"""systemd's export format, as a program prints it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from streamgauge.agents.ingest.batch import IngestError
from streamgauge.agents.ingest.component import Place
from streamgauge.agents.ingest.sources.journal import Journal, JournalSource, parse_entry

from ....cases import each

# As in https://systemd.io/JOURNAL_EXPORT_FORMATS/
FIRST = b"""__CURSOR=s=739ad463348b4ceca5a9e69c95a3c93f;i=4ece7
__REALTIME_TIMESTAMP=1342540861416351
_TRANSPORT=syslog
PRIORITY=6
MESSAGE=Accepted publickey for lennart from 192.168.1.1 port 58456 ssh2
"""
BINARY = (
    b"__CURSOR=s=2\nMESSAGE\n\x09\0\0\0\0\0\0\0foo\nbar\n\n\nTAG=a\nTAG=b\nRAW\n\x02\0\0\0\0\0\0\0\xff\x01\n"
)


def opened(
    tmp_path: Path, data: bytes, once: bool = True, cursor: str | None = None, tail: str = ""
) -> JournalSource:
    recorded = tmp_path / "journal.export"
    recorded.write_bytes(data)
    copy = f"sys.stdout.buffer.write(open({str(recorded)!r}, 'rb').read()); sys.stdout.flush()"
    code = f"import sys; {copy}; {tail}"
    place = Place("agent", "journal", tmp_path, once)
    positions = {"cursor": {"cursor": cursor}} if cursor else {}
    return Journal(command=[sys.executable, "-c", code]).open(place, positions)


def read(source: JournalSource) -> tuple[list[dict[str, object]], list[bytes], dict[str, object]]:
    entries, dead, positions = [], [], {}
    while not source.ended:
        if (batch := source.read(30)) is not None:
            entries += [json.loads(value) for value in batch.values()]
            dead += [line.value for line in batch.dead]
            positions.update(batch.positions)
    return entries, dead, positions


def test_entries_are_json_and_their_cursor_the_position(tmp_path: Path) -> None:
    source = opened(tmp_path, FIRST + b"\n" + BINARY + b"\n")
    (first, second), dead, positions = read(source)
    assert first["MESSAGE"] == "Accepted publickey for lennart from 192.168.1.1 port 58456 ssh2"
    assert second == {"__CURSOR": "s=2", "MESSAGE": "foo\nbar\n\n", "TAG": ["a", "b"], "RAW": [255, 1]}
    assert dead == [] and positions == {"cursor": {"cursor": "s=2"}} and source.finite
    source.close()


def test_a_restart_asks_for_what_is_behind_the_cursor(tmp_path: Path) -> None:
    place = Place("agent", "journal", tmp_path, True)
    code = "import sys; print('ARGUMENTS=' + ' '.join(sys.argv[1:]), end='\\n\\n')"
    kind = Journal(command=[sys.executable, "-c", code])
    (entry,), _, _ = read(kind.open(place, {"cursor": {"cursor": "s=2"}}))
    assert entry == {"ARGUMENTS": "--after-cursor=s=2"}
    (entry,), _, _ = read(kind.open(place, {}))
    assert entry == {"ARGUMENTS": "--boot"}


@each("cut", range(1, len(BINARY) + 1))
def test_an_entry_waits_for_its_end(cut: int) -> None:
    whole = BINARY + b"\n"
    assert parse_entry(whole)[1] == len(whole)
    assert parse_entry(whole[:cut])[1] == 0


def test_a_length_that_is_wrong_is_a_dead_letter(tmp_path: Path) -> None:
    broken = b"__CURSOR=s=1\nMESSAGE\n" + b"\xff" * 8 + b"foo\n"
    entries, dead, _ = read(opened(tmp_path, broken + b"\n" + FIRST + b"\n"))
    assert len(entries) == 1 and dead == [broken + b"\n"]


def test_a_program_that_fails_is_named(tmp_path: Path) -> None:
    source = opened(tmp_path, b"", tail="sys.exit('no rights')")
    with pytest.raises(IngestError, match="ended with 1: no rights"):
        read(source)
    with pytest.raises(IngestError, match="no-such-journalctl can't be run"):
        Journal(command=["no-such-journalctl"]).open(Place("a", "b", tmp_path), {})


def test_following_it_must_not_end(tmp_path: Path) -> None:
    source = opened(tmp_path, FIRST + b"\n", once=False)
    with pytest.raises(IngestError, match="ended with 0"):
        for _ in range(100):
            source.read(1)
