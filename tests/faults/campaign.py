"""A campaign: episodes one after another in lanes side by side, and what was injected and compared so far."""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from .episode import Episode, Shape
from .injections import Fault, suits
from .report import table

AN_EPISODE = 20
"""Faults that one group suffers."""
_FAILURES = 10
"""Episodes that may fail before a campaign ends: one shows what is wrong, more whether it is so again."""

Kafka = Callable[[int, Path], AbstractContextManager[Any]]
"""What an episode of a lane runs on, given a folder of its own."""


class Campaign:
    """Injects `wanted` of these faults into groups of all `kinds` by turns, for at most so many minutes.

    A fault that is `busy` would have to wait for another one of its kind; others come first.

    What was injected and compared so far is printed after each fault, and the table is in `folder` after each
    episode, so that a campaign that is cut off has a result.
    """

    def __init__(
        self,
        faults: Mapping[str, Fault],
        kinds: Sequence[str],
        wanted: int,
        seed: int,
        folder: Path,
        minutes: float = float("inf"),
        busy: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self._faults, self._kinds, self._wanted, self._seed = faults, kinds, wanted, seed
        self._folder = folder
        self._began = time.monotonic()
        self._most_seconds = 60 * minutes
        self._busy = busy
        self._lock = threading.Lock()
        self._numbers = 0
        self._chosen: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
        self._loads: list[float] = []
        self.injected: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
        self.checked: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, lanes: int, kafka: Kafka) -> None:
        """Run as many lanes side by side until everything was injected; `failures` says what went wrong."""
        threads = [threading.Thread(target=self._lane, args=[lane, kafka]) for lane in range(lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @property
    def report(self) -> str:
        """What was injected and compared so far."""
        with self._lock:
            compared = ", ".join(f"{what} {times} times" for what, times in sorted(self.checked.items()))
            total = sum(counts.total() for counts in self.injected.values())
            load = f"load {min(self._loads):.0f} to {max(self._loads):.0f}" if self._loads else ""
            head = (
                f"seed {self._seed}: {total} faults in {self._numbers} episodes and {self._minutes:.0f} "
                f"minutes, {load}, {len(self.failures)} episodes failed; compared: {compared}"
            )
            return f"{head}\n\n{table(self.injected)}\n"

    @property
    def _minutes(self) -> float:
        return (time.monotonic() - self._began) / 60

    def _lane(self, lane: int, kafka: Kafka) -> None:
        while self._more():
            with self._lock:
                number = self._numbers
                self._numbers += 1
            kind = self._kinds[number % len(self._kinds)]
            shape, folder = Shape.drawn(kind, self._seed + number), self._folder / str(number)
            try:
                with kafka(lane, folder) as own, Episode(own, folder, shape) as episode:
                    self._suffer(kind, episode)
                    episode.finish()
            except BaseException:
                self._failed(f"{kind}, {shape}, in {folder}:\n{traceback.format_exc()}")
                continue
            with self._lock:
                self.checked += episode.checked
            shutil.rmtree(folder, ignore_errors=True)
            (self._folder / "faults.md").write_text(self.report)

    def _suffer(self, kind: str, episode: Episode) -> None:
        self._count(kind, episode, Counter())
        names = [name for name in self._faults if suits(name, episode.shape)]
        random.Random(episode.shape.seed).shuffle(names)
        for _ in range(min(AN_EPISODE, len(names))):
            if not self._more():
                return
            before = episode.injected.copy()
            names.remove(name := self._choose(kind, names))
            episode.suffer(name, self._faults[name])
            self._count(kind, episode, before)

    def _choose(self, kind: str, names: Sequence[str]) -> str:
        """The fault that came least so far."""
        with self._lock:
            name = min(names, key=lambda name: (self._busy(name), self._chosen[kind][name]))
            self._chosen[kind][name] += 1
            return name

    def _count(self, kind: str, episode: Episode, before: Counter[str]) -> None:
        with self._lock:
            self.injected[kind] += (fresh := episode.injected - before)
            total = sum(counts.total() for counts in self.injected.values())
            self._loads.append(os.getloadavg()[0])
            for name in fresh:
                print(f"{total} after {self._minutes:.1f} minutes: {kind}: {name}", flush=True)

    def _more(self) -> bool:
        with self._lock:
            total = sum(counts.total() for counts in self.injected.values())
            in_time = time.monotonic() - self._began < self._most_seconds
            return total < self._wanted and in_time and len(self.failures) < _FAILURES

    def _failed(self, reported: str) -> None:
        with self._lock:
            self.failures.append(reported)
            print(f"an episode failed: {reported}", flush=True)
