"""Workers that take partitions over from dead and from paused ones, without a broker: a fake log and group.

The log, the group's places and all points at which a worker may die or sleep are drawn at random; the real
claim, the real search in the log and the real merger must count each row as `delivery` promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer.group.committed import (
    Committed,
    Places,
    metadata_of,
    offset_of,
    places_of,
)
from streamgauge.operators.consumer.log.log_scan import Tail
from streamgauge.operators.consumer.log.messages import decode, encode
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan, Plans
from streamgauge.operators.consumer.worker import partition_recovery
from streamgauge.operators.consumer.worker.delivery import AtLeastOnce, AtMostOnce
from streamgauge.operators.consumer.worker.partition_recovery import PartitionRecovery
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.chunked_records import Record
from streamgauge.operators.kafka.outgoing_message import Outgoing
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.position import Input

WHERE = Input("posts", 0)
ROWS = 120
PARTITIONS = 2
STREAM = (
    Stream.from_kafka("posts", value=json({"at": pl.Int64, "n": pl.Int64}), time=pl.from_epoch("at"))
    .group_by("n")
    .tumbling("1h", delay="1h")
    .agg(posts=count())
)
FRAME = pl.DataFrame({"at": np.full(ROWS, 1_767_225_600), "n": np.arange(ROWS)})


class Cluster:
    """The table topic, the group's place, and messages that paused workers have yet to send."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.log: list[list[Delta]] = [[] for _ in range(PARTITIONS)]
        self.place: Committed | None = None
        self.owner: object = None
        self.asleep: list[Outgoing] = []

    def wake(self) -> None:
        """Let paused workers send some of what they still have, at any time."""
        while self.asleep and self.random.random() < 0.4:
            self.append(self.asleep.pop(0))

    def ends(self, wanted: Sequence[Input]) -> dict[Input, int]:
        return {where: len(self.log[where.partition]) for where in wanted}

    def append(self, message: Outgoing) -> None:
        headers = {name: value or b"" for name, value in message.headers}
        self.log[message.partition].append(decode(Record(message.value or b"", headers, 0, "")))

    def tails(self, config: object, topic: str, starts: Mapping[int, int]) -> dict[int, Tail]:
        self.wake()
        return {
            t: Tail(0, len(self.log[t]), [replace(d, table=None) for d in self.log[t][start:]])
            for t, start in starts.items()
        }


class Member:
    """A worker's membership, which is lost once another takes its place."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        cluster.owner = self

    def committed(self, inputs: object, seconds: float) -> dict[Input, Places]:
        self.cluster.wake()
        return {WHERE: {} if self.cluster.place is None else {"": self.cluster.place}}

    def watermarks(self, where: Input, seconds: float) -> tuple[int, int]:
        return 0, ROWS

    def commit(self, places: Mapping[Input, Places]) -> None:
        assert self.cluster.owner is self
        place = places[WHERE]
        self.cluster.place = places_of(offset_of(place), metadata_of(place))[""]
        self.cluster.wake()


class Sender(AtLeastOnce):
    """Sends to the fake log."""

    def __init__(self, config: Any, membership: Any, table: str, log: Sequence[int], stopping: Any) -> None:
        self._membership, self.cluster = membership, membership.cluster
        self._table_topic, self._log = table, list(log)

    def _send(self, messages: Sequence[Outgoing]) -> None:
        for message in messages:
            self.cluster.append(message)
            self._log[message.partition] = len(self.cluster.log[message.partition])
            self.cluster.wake()

    def _commit(self, places: Mapping[Input, Places]) -> None:
        self._membership.commit(places)


class Hasty(Sender):
    """Sends to the fake log what is committed already."""

    deliver = AtMostOnce.deliver

    def _send_rows(self, rows: Any) -> None:
        assert not rows, "these streams send no rows on"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Cluster]:
    def make(seed: int) -> Cluster:
        made = Cluster(seed)
        monkeypatch.setattr(partition_recovery, "read_tail", made.tails)
        monkeypatch.setattr(
            partition_recovery,
            "log_ends",
            lambda admin, topic, partitions: {p: len(made.log[p]) for p in partitions},
        )
        monkeypatch.setattr(partition_recovery, "AtLeastOnce", Sender)
        monkeypatch.setattr(partition_recovery, "AtMostOnce", Hasty)
        return made

    return make


def work(cluster: Cluster, delivery: Any) -> None:
    """A worker's life: it takes the partition up, delivers a few times, and dies or falls asleep within."""
    random = cluster.random
    member: Any = Member(cluster)
    plan = Plan(STREAM, "group", "table", {"posts": 1}, PARTITIONS, RunOptions(delivery=delivery))
    accepted = PartitionRecovery(Plans.of([plan]), member, lambda: None, lambda: False)
    ends = accepted.places([WHERE])[""][WHERE]
    assert isinstance(accepted.delivery, Sender)
    progress = PartitionState(STREAM, *WHERE, ends.position.offset, replace(ends.position.time))
    cuts = [*ends.cuts]
    for _ in range(random.integers(1, 5)):
        stop = min(ROWS, progress.next_offset + int(random.integers(1, 25)))
        if cuts:
            stop = min(stop, cuts[0])
            cuts = [cut for cut in cuts if cut > stop]
        offsets = np.arange(progress.next_offset, stop)
        progress.add(FRAME[progress.next_offset : stop], None, offsets, stop, lambda rows, why: None)
        delta = replace(progress.delta(), epoch=accepted.epochs.get(WHERE, 0))
        messages = encode(delta, "table", PARTITIONS)
        places = {WHERE: {"": accepted.committed("", WHERE, delta.end)}}
        fate = random.random()
        if fate < 0.5:
            accepted.delivery.deliver(messages, places)
            continue
        if delivery == "at_most_once":
            accepted.delivery._commit(places)
        sent = int(random.integers(0, PARTITIONS + 1))
        accepted.delivery._send(messages[:sent])
        if fate < 0.8:  # paused: the rest comes some time later
            cluster.asleep += messages[sent:]
        return


def merged(cluster: Cluster, delivery: Any) -> tuple[list[int], int]:
    """How often each row counts, and the overlaps."""
    result = np.zeros(ROWS, np.int64)
    overlaps = 0
    for deltas in cluster.log:
        merger = Merger(STREAM, [WHERE], delivery)
        for offset, delta in enumerate(deltas):
            merger.offer(delta, offset)
        again = Merger(STREAM, [WHERE], delivery)
        again.restore(*merger.restore_point())
        assert again.state.epochs.keys() <= merger.state.epochs.keys()
        for table in merger.close_all():
            np.add.at(result, table.column("n").to_numpy(), table.column("posts").to_numpy())
        overlaps += merger.state.overlaps
        assert merger.state.account.balanced
    return result.tolist(), overlaps


def lived(cluster: Cluster, delivery: Any) -> None:
    while cluster.place is None or cluster.place.position.offset < ROWS:
        work(cluster, delivery)
    for message in cluster.asleep:
        cluster.append(message)


@pytest.mark.parametrize("block", [0, 1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 20))])
def test_effectively_once_counts_each_row_once_whoever_dies_or_sleeps(
    cluster: Callable[[int], Cluster], block: int
) -> None:
    stale = 0
    for seed in range(30 * block, 30 * block + 30):
        made = cluster(seed)
        lived(made, "effectively_once")
        assert merged(made, "effectively_once") == ([1] * ROWS, 0), seed
        epochs = [[d.epoch for d in deltas] for deltas in made.log]
        stale += sum(one < max(seen[:at], default=0) for seen in epochs for at, one in enumerate(seen))
    assert stale > 5  # and there were such that had to be left out


def test_at_least_once_loses_nothing_and_says_where_it_counted_twice(
    cluster: Callable[[int], Cluster],
) -> None:
    twice = 0
    for seed in range(40):
        made = cluster(seed)
        lived(made, "at_least_once")
        result, overlaps = merged(made, "at_least_once")
        assert min(result) == 1, seed
        assert (max(result) > 1) <= (overlaps > 0), seed
        twice += overlaps > 0
    assert twice > 1  # without claims, a paused worker's deltas do overlap its successor's


def test_at_most_once_counts_nothing_twice(cluster: Callable[[int], Cluster]) -> None:
    lost = 0
    for seed in range(40):
        made = cluster(seed)
        lived(made, "at_most_once")
        result, overlaps = merged(made, "at_most_once")
        assert (max(result), overlaps) == (1, 0), seed
        lost += result.count(0)
    assert lost > 100
