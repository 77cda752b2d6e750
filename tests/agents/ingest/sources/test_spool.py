"""Whole files in a folder, each once.

Cases restated from Flume's TestReliableSpoolingFileEventReader.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from streamgauge.agents.ingest.batch import IngestError
from streamgauge.agents.ingest.sources.spool import Spool, SpoolSource


class Spooling:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.settings, self.positions = Spool(folder=str(folder), **settings), {}
        self.source: SpoolSource = self.settings.open(None, {})

    def read(self, commit: bool = True) -> list[bytes]:
        lines = []
        while not self.source.ended:
            batch = self.source.read(0)
            if batch is None:
                continue
            lines += batch.values()
            if commit:
                for key, position in batch.positions.items():
                    self.positions[key] = position
                batch.acknowledged()
        return lines

    def restart(self) -> None:
        self.source.close()
        self.source = self.settings.open(None, self.positions)


def put(folder: Path, name: str, text: bytes, age: float) -> None:
    (folder / name).write_bytes(text)
    os.utime(folder / name, (1_700_000_000 - age,) * 2)


def test_files_are_read_the_oldest_first_and_renamed(tmp_path: Path) -> None:
    put(tmp_path, "b", b"3\n4", 10)
    put(tmp_path, "a", b"5\n", 5)
    put(tmp_path, "z.gz", gzip.compress(b"1\n2\n"), 20)
    put(tmp_path, "empty", b"", 1)
    put(tmp_path, ".hidden", b"not yet\n", 1)
    spool = Spooling(tmp_path)
    assert spool.read() == [b"1", b"2", b"3", b"4", b"5"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(".hidden", "a.COMPLETED", "b.COMPLETED", "empty.COMPLETED", "z.gz.COMPLETED"),
    ]
    put(tmp_path, "c", b"6\n", 0)
    assert spool.read() == [b"6"]


def test_what_was_not_delivered_comes_again(tmp_path: Path) -> None:
    put(tmp_path, "a", b"1\n2\n", 0)
    spool = Spooling(tmp_path)
    assert spool.read(commit=False) == [b"1", b"2"]
    assert (tmp_path / "a").exists()
    spool.restart()
    assert spool.read() == [b"1", b"2"] and not (tmp_path / "a").exists()


def test_delivered_and_killed_before_it_was_renamed(tmp_path: Path) -> None:
    put(tmp_path, "a", b"1\n2\n", 0)
    spool = Spooling(tmp_path)
    first = spool.source.read(0)
    spool.positions.update(first.positions)
    spool.restart()
    assert spool.read() == [] and (tmp_path / "a.COMPLETED").exists()


def test_files_may_be_deleted_and_left_out(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", b"1\n", 0)
    put(tmp_path, "a.tmp", b"2\n", 0)
    spool = Spooling(tmp_path, pattern="*.csv", suffix="")
    assert spool.read() == [b"1"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.tmp"]


@pytest.mark.parametrize("suffix", [".COMPLETED", ""])
def test_a_file_put_in_place_of_one_that_is_not_yet_delivered_is_read(tmp_path: Path, suffix: str) -> None:
    put(tmp_path, "a", b"1\n", 5)
    spool = Spooling(tmp_path, suffix=suffix)
    batches = [spool.source.read(0), spool.source.read(0)]
    put(tmp_path, "a.new", b"2\n", 0)
    (tmp_path / "a.new").replace(tmp_path / "a")
    for batch in batches:
        batch.acknowledged()
    assert batches[0].values() + spool.read() == [b"1", b"2"]


def test_names_that_come_again_destroy_no_file(tmp_path: Path) -> None:
    spool = Spooling(tmp_path)
    for number in range(3):
        put(tmp_path, "a", b"%d\n" % number, 0)
        assert spool.read() == [b"%d" % number]
    names = ["a.1.COMPLETED", "a.2.COMPLETED", "a.COMPLETED"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert [(tmp_path / name).read_bytes() for name in names] == [b"1\n", b"2\n", b"0\n"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="there is no folder"):
        Spooling(tmp_path / "missing")
