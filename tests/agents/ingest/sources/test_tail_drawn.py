"""Drawn programs that write and rotate, agents that read, die and begin again: lines equal messages in order.

The clock is drawn, too, and the program may go on between any two calls that a source makes to the system.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.agents.ingest.component import Place
from streamgauge.agents.ingest.sources import file_content, tail, tail_positions, tailed_file
from streamgauge.agents.ingest.sources.tail import FileTail, TailSource

from ....cases import seeds

_BEGIN = 1_790_000_000.0
_TICK = 4_000_000
"""Nanoseconds between two times that a file system tells apart."""


class Clock:
    """In place of the module `time`: it goes on as it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return _BEGIN + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def stamp(self, path: Path) -> None:
        """The file was written now."""
        nanoseconds = int(self.time() * 1e9) // _TICK * _TICK
        os.utime(path, ns=(nanoseconds, nanoseconds))


class Program:
    """Writes numbered lines and rotates its log, a step at a time."""

    def __init__(self, folder: Path, clock: Clock, chance: random.Random) -> None:
        self.log, self._clock, self._chance = folder / "a.log", clock, chance
        self.written = 0
        self.rotating = False
        self._steps = self._run()

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            next(self._steps)
            self._clock.now += self._chance.random() / 500

    def finish(self) -> None:
        """Until no rotation is under way."""
        self.go_on(1)
        while self.rotating:
            self.go_on(1)

    def _run(self) -> Iterator[None]:
        while True:
            with self.log.open("ab") as file:
                self._clock.stamp(self.log)
                for _ in range(self._chance.randint(1, 40)):
                    size = self._chance.choice((10, 200, 3_000))
                    file.write(b"%08d %s\n" % (self.written, b"x" * size))
                    file.flush()
                    self._clock.stamp(self.log)
                    self.written += 1
                    yield
            rotate = self._chance.choice((self._rename, self._rename, self._copy, self._pack, None))
            if rotate is not None:
                self.rotating = True
                yield from rotate()
                self.rotating = False
                self._clock.now += 0.2
                yield

    def _shift(self) -> Iterator[None]:
        for path in sorted(self.log.parent.glob("a.log.*"), key=_number, reverse=True):
            end = ".gz" if path.suffix == ".gz" else ""
            path.rename(path.with_name(f"a.log.{_number(path) + 1}{end}"))
            yield

    def _rename(self) -> Iterator[None]:
        yield from self._shift()
        self.log.rename(self.log.with_name("a.log.1"))

    def _copy(self) -> Iterator[None]:
        yield from self._shift()
        data, copy = self.log.read_bytes(), self.log.with_name("a.log.1")
        parts = sorted(self._chance.randint(0, len(data)) for _ in range(2))
        for begin, end in zip((0, *parts), (*parts, len(data)), strict=True):
            with copy.open("ab") as file:
                file.write(data[begin:end])
            self._clock.stamp(copy)
            yield
        self.log.write_bytes(b"")
        self._clock.stamp(self.log)

    def _pack(self) -> Iterator[None]:
        yield from self._rename()
        yield
        plain, packed = self.log.with_name("a.log.1"), self.log.with_name("a.log.1.gz")
        data = gzip.compress(plain.read_bytes())
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            with packed.open("ab") as file:
                file.write(part)
            self._clock.stamp(packed)
            yield
        if self._chance.random() < 0.5:
            shutil.copystat(plain, packed)
        plain.unlink()


def _number(path: Path) -> int:
    return int(path.name.removesuffix(".gz").rpartition(".")[2])


class Reader:
    """Agents, one after the other: what one has not committed is read again by the next."""

    def __init__(self, log: Path) -> None:
        self._settings = FileTail(files=[f"{log}*"])
        self._place = Place("agent", "source", log.parent)
        self._committed: dict[str, Any] = {}
        self.numbers: list[int] = []
        self._begin(once=False)

    def _begin(self, once: bool) -> None:
        place = Place("agent", "source", self._place.folder, once)
        self._source: TailSource = self._settings.open(place, dict(self._committed))
        self._positions: dict[str, Any] = {}
        self._read: list[int] = []

    def read(self, seconds: float) -> bool:
        batch = self._source.read(seconds)
        if batch is None:
            return False
        self._positions |= batch.positions
        self._read += [int(value.split()[0]) for value in batch.values()]
        return True

    def commit(self) -> None:
        self._committed |= self._positions
        self._committed = {key: position for key, position in self._committed.items() if position}
        self.numbers += self._read
        self._positions, self._read = {}, []

    def die(self, once: bool = False) -> None:
        self._source.close()
        self._begin(once)

    def read_to_the_end(self) -> None:
        self.die(once=True)
        while self.read(1.0) or not self._source.ended:
            self.commit()
        self._source.close()


def hold(seed: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    clock = Clock()
    for module in (tail, tail_positions, tailed_file):
        patch.setattr(module, "time", clock)
    program = Program(folder, clock, chance)

    def meanwhile(function: Any) -> Any:
        def called(*given: Any) -> Any:
            if chance.random() < often:
                program.go_on(chance.randint(1, 3))
            return function(*given)

        return called

    often = 0.0
    patch.setattr(tail, "open_content", meanwhile(file_content.open_content))
    patch.setattr(tail, "_list_files", meanwhile(tail._list_files))
    patch.setattr(file_content.PlainContent, "read", meanwhile(file_content.PlainContent.read))

    program.go_on(chance.randint(0, 60))
    reader = Reader(program.log)
    for _ in range(4):
        often = chance.choice((0.0, 0.02, 0.1))
        for _ in range(chance.randint(0, 40)):
            reader.read(chance.choice((0.0, 0.1, 0.5, 3.0)))
            if chance.random() < 0.5:
                reader.commit()
            if chance.random() < 0.7:
                program.go_on(chance.choice((1, 5, 30, 100)))
            clock.now += chance.choice((0.0, 0.0, 0.1, 1.0, 3.0))
        often = 0.0
        reader.die()
        program.go_on(chance.choice((0, 10, 100, 300)))
        clock.now += chance.choice((0.0, 1.0, 10.0))
    program.finish()
    reader.read_to_the_end()
    lost = sorted(set(range(program.written)) - set(reader.numbers))
    jumps = [pair for pair in zip(reader.numbers, reader.numbers[1:], strict=False) if pair[1] != pair[0] + 1]
    assert not lost and not jumps, f"lost {lost[:10]}, out of order {jumps[:10]}"
    assert reader.numbers == list(range(program.written))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(10, 30))
def test_lines_equal_messages(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(seed, tmp_path, monkeypatch)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_lines_equal_messages_two_thousand_times(tmp_path: Path) -> None:
    for seed in range(1_000, 3_000):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            hold(seed, folder, patch)
        shutil.rmtree(folder)
