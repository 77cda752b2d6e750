"""Lines of a pipe."""

from __future__ import annotations

import os

from streamgauge.agents.ingest.sources.stdin import StdinSource


def test_lines_to_the_end(request: object) -> None:
    reading, writing = os.pipe()
    source = StdinSource(reading, 10)
    os.write(writing, b"one\ntwo\r\npar")
    assert source.read(10).values() == [b"one", b"two"]
    assert source.read(0.01) is None and not source.ended
    os.write(writing, b"tial\n" + b"x" * 11 + b"\nlast")
    batch = source.read(10)
    assert batch.values() == [b"partial"] and [line.value for line in batch.dead] == [b"x" * 11]
    os.close(writing)
    assert source.read(10).values() == [b"last"] and source.ended and source.finite
    os.close(reading)
