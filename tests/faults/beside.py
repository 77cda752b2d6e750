"""What runs beside a group, through the same proxies: an archive of its input, a server of its table.

Both are the programs that users run. Each is struck, too, and compared with the input at the end.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from streamgauge.apps.dev.kafka import watchdog
from streamgauge.operators.archive.chain import last_segment, segments
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.archive.verify import verify
from streamgauge.operators.table.schema import START
from streamgauge.queries.answers.answers import Answer
from streamgauge.queries.client import Client, QueryError

from ..waiting import until
from .exact import Exact, messages
from .members import PATIENCE
from .posts import Posts, StreamCase

_PROGRAM = "from streamgauge.apps.cli.program import main; main()"
_QUESTION_SECONDS = 3.0
_STOPPED = (0, 130, -signal.SIGTERM)
"""How a program ends that a signal has asked to."""
Cell = tuple[int, str]
_Rows = Mapping[int, Sequence[tuple[int, bytes | None]]]


class Program:
    """A program of the command line, its log in a file."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=watchdog._end_with_me,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )

    @property
    def output(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    @property
    def alive(self) -> bool:
        """Whether it runs, frozen or not."""
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """As a power cut does."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> None:
        """Have it end in order."""
        self.signal(signal.SIGCONT)
        self._process.terminate()
        assert self._process.wait(PATIENCE) in _STOPPED, self.output

    def check(self) -> None:
        """Raise an error if it has ended by itself."""
        assert self.alive, f"{self.log} has ended with {self._process.returncode}:\n{self.output[-3000:]}"


class Archive:
    """Archivers that follow the input topics into one folder."""

    def __init__(self, kafka: Any, folder: Path, posts: Posts) -> None:
        self._kafka, self._folder, self._posts, self._topics = kafka, folder, posts, posts.topics
        self._store = LocalStore(folder / "archive")
        self._programs: list[Program] = []
        self._started = 0
        self.start()

    def start(self) -> None:
        """Start one more."""
        self._started += 1
        program = Program(
            self._folder / f"archiver-{self._started}.log",
            *("archive", *self._topics, "--output", str(self._folder / "archive")),
            *("--bootstrap-servers", self._kafka.proxied, "--interval", "1s", "--size", "64KB"),
            *("--config", "session.timeout.ms=2000", "--config", "heartbeat.interval.ms=300"),
        )
        self._programs.append(program)

    def kill(self) -> None:
        """Kill -9 of the one that runs; another takes its place."""
        self._programs.pop().kill()
        self._begin()

    def freeze(self, seconds: float) -> None:
        """SIGSTOP past its session; it comes back with what it held, and leaves its place to another."""
        (frozen,) = self._programs
        until(lambda: self.check() or frozen.output, PATIENCE)  # it has begun
        self._begin()
        frozen.signal(signal.SIGSTOP)
        time.sleep(seconds)
        frozen.signal(signal.SIGCONT)
        time.sleep(seconds)
        frozen.check()
        frozen.stop()
        self._programs.remove(frozen)

    def _begin(self) -> None:
        """Start one more, and wait until it asks brokers for no more than messages."""
        with self._kafka.calm():
            before = self._files()
            self.start()
            until(lambda: self.check() or self._files() > before or self._whole(), PATIENCE)

    def check(self) -> None:
        """Raise an error if one has ended."""
        for program in self._programs:
            program.check()

    def compare(self) -> None:
        """Wait until everything is archived, end, and compare it with the topics."""
        until(lambda: self.check() or self._whole(), PATIENCE)
        for program in self._programs:
            program.stop()
        self._programs.clear()
        for topic in self._topics:
            wanted = self._wanted(topic)
            archived = {partition: self._archived(topic, partition) for partition in wanted}
            for partition, rows in wanted.items():
                assert archived[partition] == rows, _first_difference(topic, partition, archived, wanted)
            checks = list(verify(self._store, {topic: sorted(p for p, rows in wanted.items() if rows)}))
            assert [check.problems for check in checks if check.problems] == []

    def end(self) -> None:
        """Leave no process behind."""
        for program in self._programs:
            program.kill()

    def _wanted(self, topic: str) -> Mapping[int, list[tuple[int, bytes | None]]]:
        by_partition: dict[int, list[tuple[int, bytes | None]]] = defaultdict(list)
        for message in messages(self._kafka.bootstrap_servers, topic):
            by_partition[message.partition()].append((message.offset(), message.value()))
        return by_partition

    def _archived(self, topic: str, partition: int) -> list[tuple[int, bytes | None]]:
        rows: list[tuple[int, bytes | None]] = []
        for segment in segments(self._store, topic, partition):
            table = pq.ParquetFile(self._folder / "archive" / segment.path).read(["offset", "value"])
            rows += zip(table["offset"].to_pylist(), table["value"].to_pylist())
        return rows

    def _whole(self) -> bool:
        """Whether everything that was sent is archived."""
        for (topic, partition), end in list(self._posts.ends.items()):
            last = last_segment(self._store, topic, partition) if end else None
            if end and (last is None or last.next_offset < end):
                time.sleep(0.2)
                return False
        return True

    def _files(self) -> int:
        return sum(1 for _ in (self._folder / "archive").rglob("*.parquet"))


class Server:
    """A query server of the group's tables, which is asked all the time.

    `tables` are the streams' cases by the server's names of their tables. An answer never counts more than
    was made, if `bounded`.
    """

    def __init__(
        self, kafka: Any, folder: Path, tables: Mapping[str, StreamCase], posts: Posts, bounded: bool
    ) -> None:
        self._kafka, self._folder, self._tables, self._posts = kafka, folder, tables, posts
        self._bounded = bounded
        self._bounds: dict[str, Counter[Cell]] = {name: Counter() for name in tables}
        self._seen = dict.fromkeys(tables, 0)
        self._started = 0
        self._client: Client | None = None
        self._wrong: list[str] = []
        self._end = threading.Event()
        self.answers = 0
        """How many answers were compared with what was sent until then."""
        self._start()
        self._asking = threading.Thread(target=self._ask_on, daemon=True)
        self._asking.start()

    def _start(self) -> None:
        self._started += 1
        self._program = Program(
            self._folder / f"server-{self._started}.log",
            *("serve", *(part for name in self._tables for part in ("--group", name)), "--port", "0"),
            *("--bootstrap-servers", self._kafka.proxied, "--keep", "5000h"),
            *("--state", str(self._folder / "state")),
        )

    def restart(self, in_order: bool) -> None:
        """End it, by kill -9 or in order, and start it again on what it saved."""
        program = self._program
        program.stop() if in_order else program.kill()
        self._start()

    def check(self) -> None:
        """Raise an error if it has ended, or has counted too much."""
        self._program.check()
        assert not self._wrong, self._wrong

    def compare(self, truths: Mapping[str, Exact], delivery: str) -> None:
        """Wait until it has read everything, and compare its answers with the exact ones."""
        for name, truth in truths.items():
            differences = [""]

            def right(name: str = name, truth: Exact = truth, differences: list[str] = differences) -> bool:
                self.check()
                answer = self._answer(name)
                differences[0] = "no answer" if answer is None else _differences(answer, truth, delivery)
                time.sleep(0.2)
                return not differences[0]

            try:
                until(right, 120)
            except AssertionError:
                log = self._program.output[-3000:]
                raise AssertionError(f"the server of {name}: {differences[0]}\n{log}") from None

    def end(self) -> None:
        """Leave no process behind."""
        self._end.set()
        self._program.kill()
        self._asking.join(PATIENCE)

    def _ask_on(self) -> None:
        while not self._end.wait(_QUESTION_SECONDS):
            for name in self._tables:
                answer = self._answer(name)
                if answer is not None and self._bounded:
                    self._judge(name, answer)

    def _judge(self, name: str, answer: Answer) -> None:
        """Compare an answer with all that was made until now, which is no less than was sent."""
        case, bounds = self._tables[name], self._bounds[name]
        made = self._posts.made[self._seen[name] :]
        self._seen[name] += len(made)
        for at, user, tag in made:
            if user != case.without:
                bounds[at - at % case.window_us, tag] += 1
        counted = {cell: posts for cell, (posts, *_) in _cells(answer).items()}
        over = [(cell, posts, bounds[cell]) for cell, posts in counted.items() if posts > bounds[cell]]
        if over:
            self._wrong.append(f"the server of {name} counts more than was sent: {over}")
        self.answers += 1

    def _answer(self, name: str) -> Answer | None:
        """The server's answer for all windows, None if it has none yet."""
        address = re.search(r" at (http://\S+?);", self._program.output)
        if address is None:
            return None
        if self._client is None or self._client.url != address[1]:
            self._client = Client(address[1], seconds=20.0)
        with suppress(QueryError):
            return self._client.ask("rows", name, every="window")
        return None


def _cells(answer: Answer) -> dict[Cell, tuple[int, int, int]]:
    result = {}
    for row in answer.rows.to_dicts():
        users = row["users"]
        users = users["estimate"] if isinstance(users, dict) else users
        key = int(row[START].timestamp() * 1e6), row["tag"]
        result[key] = int(row["posts"]), int(row["amount"]), round(users)
    return result


def _differences(answer: Answer, truth: Exact, delivery: str) -> str:
    """What an answer has that it must not have; windows that it says are missing are not compared."""
    cells = _cells(answer)
    if answer.stale or answer.lag:
        return f"it is stale ({answer.stale}) or behind ({answer.lag})"
    missing = [(_us(gap["from"], 0), _us(gap["to"], 1 << 62)) for gap in answer.missing]
    known = {key: value for key, value in truth.cells.items() if not any(a <= key[0] < b for a, b in missing)}
    if delivery == "at_most_once":
        wrong = [key for key, own in cells.items() if _any_more(own, truth.cells.get(key, (0, 0, 0)))]
    elif delivery == "at_least_once":
        wrong = [key for key, true in known.items() if _any_more(true, cells.get(key, (0, 0, 0)))]
    else:
        wrong = [key for key in known.keys() | cells.keys() if cells.get(key) != truth.cells.get(key)]
    first = [(key, cells.get(key), truth.cells.get(key)) for key in sorted(wrong)[:5]]
    return f"{len(wrong)} of {len(known)} windows differ: {first}, missing: {answer.missing}" if wrong else ""


def _any_more(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return any(a > b for a, b in zip(left, right))


def _us(moment: Any, otherwise: int) -> int:
    return otherwise if moment is None else int(datetime.fromisoformat(moment).timestamp() * 1e6)


def _first_difference(topic: str, partition: int, archived: _Rows, wanted: _Rows) -> str:
    here, there = archived[partition], wanted[partition]
    at = next((n for n, (a, b) in enumerate(zip(here, there)) if a != b), min(len(here), len(there)))
    return (
        f"{topic}[{partition}]: {len(here)} messages are archived of {len(there)}; "
        f"they differ at {at}: {here[at : at + 2]} and {there[at : at + 2]}"
    )
