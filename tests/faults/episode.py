"""One group on a topic, or two, through a series of faults; after each its answers are those of the input."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.consumer.summary import Summary
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import START
from streamgauge.shared_runs import run_together

from ..faulty_proxy import ProxiedKafka
from ..waiting import readable
from .beside import Archive, Server
from .cluster import Lane
from .exact import Exact, MessageAt, exact, messages
from .members import PATIENCE, Group, Member
from .posts import ALONE, TOGETHER, Posts, StreamCase, stream_of

EXACT = {"exactly_once", "effectively_once"}
"""The deliveries that lose nothing and repeat nothing."""
JOINED = "exactly_once, two streams joined"
"""Another kind of episode beside the deliveries: a join of two streams takes no other delivery."""
SHARED = "exactly_once, two streams with one reading"
"""And another, whose streams have windows, delays and filters of their own."""
SENT_ONCE = "exactly_once, rows sent on"
"""And one whose stream has no windows: it sends its rows to a topic."""
SENT_AGAIN = "at_least_once, rows sent on"
AT_LEAST, AT_MOST = "at_least_once", "at_most_once"
LETTERS_ONCE = "exactly_once"
"""The delivery whose dead letters are in the transaction, too."""
CHUNK = 300

Cells = dict[tuple[int, str], list[tuple[int, int, int]]]


@dataclass(frozen=True)
class Shape:
    """What an episode is like: its delivery, its topics, and how patient its group is."""

    delivery: str
    seed: int
    joined: bool = False
    shared: bool = False
    partitions: int = 3
    table_partitions: int = 2
    idle: int = 0
    ahead: int = 0
    idle_seconds: float = 3_600.0
    session_ms: int = 2_000
    transaction_ms: int = 4_000
    by_brokers: bool = False
    sending: bool = False
    archived: bool = False
    served: bool = False

    @classmethod
    def drawn(cls, kind: str, seed: int) -> Shape:
        """A shape by chance; its kind is the delivery, or one that takes no other."""
        by = random.Random(seed)
        silent = by.random() < 0.4
        return cls(
            "exactly_once" if kind in (JOINED, SHARED) else kind.partition(",")[0],
            seed,
            joined=kind == JOINED,
            shared=kind == SHARED,
            partitions=by.randint(2, 5),
            table_partitions=by.randint(1, 3),
            idle=int(silent),
            # In pauses silent partitions are assumed to be as far as the furthest.
            ahead=int(not silent and by.random() < 0.5),
            idle_seconds=1.0 if silent else 3_600.0,
            transaction_ms=by.choice([4_000, 4_000, 30_000]),
            # Streams that are joined need partitions assigned alike, which brokers don't promise.
            by_brokers=by.random() < 0.3 and kind != JOINED,
            sending=kind in (SENT_ONCE, SENT_AGAIN),
            archived=by.random() < 0.5,
            served=by.random() < 0.5 and kind not in (SENT_ONCE, SENT_AGAIN),
        )


@dataclass
class Episode:
    """One group, its members, its topic or topics.

    `injected` counts the faults by name, `checked` what was found right. Members are of the `release` in that
    folder (`Group`).
    """

    kafka: ProxiedKafka | Lane
    folder: Path
    shape: Shape
    release: Path | None = None
    injected: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        shape, name = self.shape, f"faults-{uuid.uuid4().hex[:8]}"
        self.name = name
        self.random = random.Random(shape.seed)
        topics = [name, f"{name}-too"] if shape.joined else [name]
        self.posts = Posts(self.kafka, topics, shape.partitions, shape.seed, shape.idle, shape.ahead)
        classic = {"session.timeout.ms": shape.session_ms, "heartbeat.interval.ms": 300}
        self.config = {
            **({"group.protocol": "consumer"} if shape.by_brokers else classic),
            "transaction.timeout.ms": shape.transaction_ms,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
        sending = StreamCase(rows_to=f"{name}-rows")
        self.streams = {**TOGETHER, "rows": sending} if shape.shared else ALONE
        if shape.sending:
            self.streams = {"": sending}
        self.archive: Archive | None = None
        self.server: Server | None = None
        self.options = {
            "delivery": shape.delivery,
            "group_id": name,
            "table_partitions": shape.table_partitions,
            "checkpoint_seconds": 0.2,
            "idle_seconds": shape.idle_seconds,
        }
        task = {
            "topics": topics,
            "servers": self.kafka.proxied,
            "config": self.config,
            "options": self.options,
            "asked": {name: asdict(requested) for name, requested in self.streams.items()},
        }
        self.group = Group(self.folder / name, task)
        self.group.release = self.release

    def __enter__(self) -> Episode:
        if self.shape.idle:
            self.injected["an idle partition"] += 1
        if self.shape.ahead:
            self.injected["a partition whose clock is a day ahead"] += 1
        if self.shape.by_brokers:
            self.injected["partitions assigned by the brokers (KIP-848)"] += 1
        try:
            self.gather(2)
            if self.shape.archived:
                self.archive = Archive(self.kafka, self.group.folder, self.posts)
            if self.shape.served:
                bounded = self.shape.delivery != AT_LEAST and not self.shape.joined
                self.server = Server(self.kafka, self.group.folder, self._served(), self.posts, bounded)
            self.wait_until_read()
        except BaseException:
            self.__exit__()
            raise
        return self

    def suffer(self, name: str, fault: Callable[[Episode], None]) -> None:
        """Inject a fault, and see that the group comes round with the right counts."""
        fault(self)
        self.wait_until_read()
        self.injected[name] += 1

    def __exit__(self, *_: object) -> None:
        self.kafka.proxy.mend()
        self.group.end()
        for beside in (self.archive, self.server):
            if beside is not None:
                beside.end()
        with suppress(Exception):
            self.kafka.forget(self.name)

    def join(self, disk_full: bool = False) -> Member:
        """Have one more member, which runs: one that begins while brokers are missing would end at once."""
        with self.kafka.calm():
            member = self.group.join(disk_full=disk_full)
            self.group.begun()
        return member

    def gather(self, wanted: int) -> None:
        """Have so many members."""
        while len(self.group.alive) < wanted:
            self.join()

    def wait_until_read(self, more: int = CHUNK) -> None:
        """Send more, wait until the log covers all that was sent, and compare the accounts."""
        self.posts.send(more, poison=self.random.randrange(3))
        began = requested_again = time.monotonic()
        while not self._covered():
            self.check()
            now = time.monotonic()
            if now - began > PATIENCE:
                raise AssertionError(self._hanging())
            if self.shape.delivery == AT_MOST and now - requested_again > 5:
                self.posts.send(10)  # what was lost at the end is not requested again
                requested_again = now
            time.sleep(0.02)
        self.check()
        for account in self.group.accounts():
            assert Account(**account).balanced, account
        self._compare("messages read", self._read(), self.posts.sent)
        self.checked["account after a fault"] += 1

    def finish(self) -> None:
        """End in order, have the windows that are still open, and compare everything with the input."""
        self.group.stop()
        truths = {
            name: exact(self.kafka.bootstrap_servers, self.posts.topics, requested)
            for name, requested in self.streams.items()
        }
        self._compare_beside()
        tables: dict[str, list[pa.Table]] = {name: [] for name in self.windowed}
        where = self.posts.topics, self.kafka.bootstrap_servers, self.config
        streams = {name: stream_of(requested, *where) for name, requested in self.streams.items()}
        options: Any = {**self.options, "until": "latest"}
        calls = {name: own.append for name, own in tables.items()}
        with self.kafka.calm():
            if self.shape.shared:
                result = run_together(streams, on_window=calls, progress=False, **options)
            else:
                result = {"": run(streams[""], RunOptions(on_window=calls.get(""), **options))}
        for name, summary in result.items():
            self._compare_all(name, summary, tables.get(name, []), truths[name])
            what = "windows" if name in tables else "rows"
            self.checked[f"{what}, account and dead letters"] += 1

    @property
    def windowed(self) -> dict[str, StreamCase]:
        """The streams that have windows."""
        return {name: requested for name, requested in self.streams.items() if not requested.rows_to}

    def check(self) -> None:
        """Raise an error if a member, or what runs beside them, has ended or was wrong."""
        self.group.check()
        for beside in (self.archive, self.server):
            if beside is not None:
                beside.check()

    def _served(self) -> dict[str, StreamCase]:
        """The streams with windows by their tables' names in the query server."""
        return {f"{self.name}.{name}" if name else self.name: own for name, own in self.windowed.items()}

    def _compare_beside(self) -> None:
        """Compare the archive with the input, and the query server's answers with the exact ones."""
        if self.archive is not None:
            self.archive.compare()
            self.checked["archive"] += 1
        if self.server is not None:
            where = self.kafka.bootstrap_servers, self.posts.topics
            by_table = {name: exact(*where, case, ended=False) for name, case in self._served().items()}
            self.server.compare(by_table, self.shape.delivery)
            self.checked["the query server's answers at the end"] += len(by_table)
            self.checked["the query server's answers meanwhile"] += self.server.answers

    def _compare_all(self, stream: str, summary: Summary, tables: list[pa.Table], truth: Exact) -> None:
        """Compare what one stream came to with what the input says."""
        assert truth.account.read == self.posts.sent
        account = summary.account
        assert account.balanced, account
        for name, wanted in truth.account.to_dict().items():
            self._compare(name, getattr(account, name), wanted)
        if self.shape.delivery in EXACT:
            assert summary.overlaps == 0
        if stream not in self.windowed:
            self._compare_rows(self.streams[stream].rows_to, truth)
            if self.shape.sending:
                self._compare_letters(truth.poison)
            return
        result = self._handed_over(stream, tables)
        if self.shape.delivery != AT_MOST:
            missing = sorted(set(truth.cells) - set(result))
            assert not missing, f"windows are missing: {missing}"
        self._compare_cells(result, truth.cells)
        self._compare_letters(truth.poison)

    def _compare_rows(self, topic: str, truth: Exact) -> None:
        """Compare each row that was sent on with the input message that it comes from."""
        readable(self.kafka.bootstrap_servers, topic)
        seen: Counter[MessageAt] = Counter()
        for message in messages(self.kafka.bootstrap_servers, topic):
            ((name, source),) = message.headers()
            of, partition, offset = source.decode().rsplit("/", 2)
            place = of, int(partition), int(offset)
            row = json.loads(message.value())
            assert name == "source" and truth.rows.get(place) == row, (place, row, truth.rows.get(place))
            assert message.key() == row["tag"].encode(), (place, message.key())
            seen[place] += 1
        assert not (missing := sorted(truth.rows.keys() - seen.keys())[:5]), f"rows are missing: {missing}"
        if self.shape.delivery == LETTERS_ONCE:
            assert not (twice := [place for place, times in seen.items() if times > 1]), f"twice: {twice[:5]}"

    def compare_so_far(self, truth: Exact) -> None:
        """Compare the windows that were handed over until the run could not go on."""
        self._compare_cells(self._handed_over("", []), truth.cells)
        self.checked["windows until the end"] += 1

    def _covered(self) -> bool:
        marks = self.group.marks()
        covered = all(marks.get(place, 0) >= end for place, end in self.posts.ends.items())
        return covered and (self.shape.delivery == AT_MOST or self._read() >= self.posts.sent)

    def _read(self) -> int:
        return max((account["read"] for account in self.group.accounts()), default=0)

    def _hanging(self) -> str:
        logs = [(member.log, member.log.read_text(errors="replace")) for member in self.group.alive]
        reported = "\n".join(f"{log}:\n{text[-1500:]}" for log, text in logs)
        return (
            f"after {PATIENCE:.0f} s the log covers {self.group.marks()} of {self.posts.ends}, "
            f"{self._read()} messages of {self.posts.sent}; {self.shape}\n{reported}"
        )

    def _compare(self, what: str, result: int, wanted: int) -> None:
        """By what the delivery promises."""
        reported = f"{what}: {result}, by the input {wanted}; {self.shape}"
        if self.shape.delivery == AT_LEAST:
            assert result >= wanted, reported
        elif self.shape.delivery == AT_MOST:
            assert result <= wanted, reported
        else:
            assert result == wanted, reported

    def _handed_over(self, stream: str, last: list[pa.Table]) -> Cells:
        """Every answer that a stream's callback got, by window and tag."""
        cells: Cells = defaultdict(list)
        for table in [*last, *(table for member in self.group.members for table in member.windows[stream])]:
            for row in query(table).to_dicts():
                answer = row["posts"], row["amount"], round(row["users"]["estimate"])
                cells[int(row[START].timestamp() * 1e6), row["tag"]].append(answer)
        return cells

    def _compare_cells(self, result: Cells, wanted: Mapping[tuple[int, str], tuple[int, int, int]]) -> None:
        assert set(result) <= set(wanted), f"windows of nothing: {sorted(set(result) - set(wanted))}"
        for key, answers in result.items():
            # What silence closed comes again with what followed; nothing else may differ from the last.
            last = max(answers)
            if self.shape.idle_seconds > 60 or self.shape.delivery not in EXACT:
                answers = [last] if self.shape.delivery == AT_LEAST else answers
            else:
                assert all(each <= most for a in answers for each, most in zip(a, last)), (key, answers)
                answers = [last]
            for answer in answers:
                for what, each, true in zip(("posts", "amount", "users"), answer, wanted[key]):
                    self._compare(f"{what} of {key}", each, true)

    def _compare_letters(self, poison: Mapping[MessageAt, bytes | None]) -> None:
        letters: Counter[MessageAt] = Counter()
        for topic in self.posts.topics:
            for letter in messages(self.kafka.bootstrap_servers, f"{topic}.dead-letters"):
                decoded = {name: value.decode() for name, value in letter.headers()}
                place = topic, int(decoded["partition"]), int(decoded["offset"])
                assert decoded["reason"] and poison[place] == letter.value(), place
                letters[place] += 1
        assert letters.keys() <= poison.keys()
        if self.shape.delivery != AT_MOST:
            assert letters.keys() == poison.keys(), "dead letters are missing"
        if self.shape.delivery in (LETTERS_ONCE, AT_MOST):
            assert set(letters.values()) <= {1}, "dead letters came twice"
