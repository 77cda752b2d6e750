"""A file of lines, and where its source was."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from streamgauge.agents.ingest.batch import Batch, DeadLine, IngestError
from streamgauge.agents.ingest.component import Place
from streamgauge.agents.ingest.sinks.file import FileSink, LineFile


def opened(tmp_path: Path, name: str = "out.log") -> FileSink:
    return LineFile(path=str(tmp_path / name)).open(Place("agent", "a/b", tmp_path / "state"))


def deliver(sink: FileSink, batch: Batch) -> None:
    sink.write(batch)
    sink.commit([batch])


def test_lines_are_appended_and_positions_kept(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    deliver(sink, Batch.of([b"one", b"two"], positions={"f": {"offset": 8}}, dead=[DeadLine("why", b"x")]))
    sink.close()
    again = opened(tmp_path)
    assert again.positions == {"f": {"offset": 8}}
    deliver(again, Batch.of([b"three"], positions={"f": None}))
    again.close()
    assert (tmp_path / "out.log").read_bytes() == b"one\ntwo\nthree\n"
    assert (tmp_path / "out.log.dead").read_bytes() == b"why: x\n"
    assert opened(tmp_path).positions == {}


def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink, real, failures = opened(tmp_path), os.write, [True, False]

    def write(descriptor: int, data: Any) -> int:
        if failures:
            if failures.pop():
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, bytes(data)[:2])
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr("streamgauge.agents.ingest.sinks.file._PAUSE_SECONDS", 0.01)
    deliver(sink, Batch.of([b"kept"]))
    assert (tmp_path / "out.log").read_bytes() == b"kept\n"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=r"out\.log can't be written: No such file"):
        opened(tmp_path, "missing/out.log")
