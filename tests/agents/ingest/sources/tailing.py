"""A tail source by itself: what it reads, committed or not, across restarts."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgauge.agents.ingest.component import Place
from streamgauge.agents.ingest.sources.tail import FileTail, TailSource

SECONDS = 300.0


class Tailing:
    """Reads a folder's files to their end; `restart` forgets all but committed positions."""

    def __init__(self, folder: Path, *patterns: str, **settings: Any) -> None:
        self.folder = folder
        self.settings = FileTail(files=[str(folder / pattern) for pattern in patterns or ("*",)], **settings)
        self.positions: dict[str, Any] = {}
        self.lines: list[bytes] = []
        self.dead: list[bytes] = []
        self.dropped: Counter[str] = Counter()
        self.source = self._open()

    def _open(self) -> TailSource:
        # Positions are stored as JSON.
        positions = json.loads(json.dumps(self.positions))
        return self.settings.open(Place("agent", "source", self.folder, once=True), positions)

    def restart(self) -> None:
        self.source.close()
        self.source = self._open()

    def read(self, commit: bool = True) -> list[bytes]:
        """What is new, to the end of what is there; each of these lines is in `lines`, too."""
        lines: list[bytes] = []
        deadline = time.monotonic() + SECONDS
        self.source._next_scan = 0.0
        self.source._at_end = False
        while not self.source.ended:
            assert time.monotonic() < deadline
            batch = self.source.read(0.05)
            if batch is None:
                continue
            lines += batch.values()
            self.dead += [line.value for line in batch.dead]
            self.dropped.update(batch.dropped)
            if commit:
                self._commit(batch.positions)
        self.lines += lines
        return lines

    def read_one(self) -> list[bytes]:
        """The next batch alone, committed."""
        batch = self.source.read(SECONDS)
        assert batch is not None
        self._commit(batch.positions)
        self.lines += batch.values()
        return batch.values()

    def _commit(self, positions: Any) -> None:
        for key, position in positions.items():
            if position is None:
                self.positions.pop(key, None)
            else:
                self.positions[key] = position


def write(path: Path, *lines: bytes | str, end: bytes = b"\n", mode: str = "ab") -> None:
    with path.open(mode) as file:
        for line in lines:
            file.write((line.encode() if isinstance(line, str) else line) + end)


def numbered(numbers: Sequence[int] | range) -> list[bytes]:
    return [b"line %06d" % number for number in numbers]
