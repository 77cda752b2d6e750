"""Messages on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.agents.ingest.batch import Batch, DeadLine
from streamgauge.agents.ingest.component import Place
from streamgauge.agents.ingest.sinks.console import Console


def test_lines_as_they_are(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    place = Place("agent", "source", tmp_path)
    sink = Console().open(place)
    batch = Batch.of([b"one", b"\xff"], positions={"f": {"offset": 1}}, dead=[DeadLine("why", b"\x1b[2J")])
    sink.write(batch)
    sink.commit([batch])
    out, error = capfdbinary.readouterr()
    assert out == b"one\n\xff\n" and error == b"dead: why: \\x1b[2J\n"
    assert Console().open(place).positions == {"f": {"offset": 1}}
