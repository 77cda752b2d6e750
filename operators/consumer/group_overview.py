"""What can be learned about a group from outside: its members, offsets, and table topics.

This needs neither a run nor the definition in Python. A user who may read the group, its input topics and
its table topics sees what its mergers see, because the log is folded the same way.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from ..kafka.client_config import LIBRARY_LOG, member_config
from ..kafka.faults import refused
from ..kafka.settings import servers
from ..kafka.topics import Admin, admin, described_group, end_offsets, high_watermarks
from ..sketching.account import Account
from ..watermarks.global_watermark import Mark, closing_times
from ..watermarks.position import Input
from ..windows.window import EARLIEST
from .group.committed import LONE
from .group.reset import committed_offsets
from .log.log_scan import Tail, read_tail
from .log.merger_state import LogState, read_state
from .merge.folded_log import first_snapshot, folded_log, folded_stream

_SECONDS = 30.0
_STAMP_SECONDS = 5.0
_TABLE = re.compile(r"(.+)\.table\.[0-9a-f]{16}")


@dataclass(frozen=True)
class GroupListed:
    """A group: `streams` are the streams of its table topics, by name; `state` is as brokers report it."""

    group: str
    state: str
    members: int
    topics: tuple[str, ...]
    streams: tuple[str, ...]
    lag: int | None


@dataclass(frozen=True)
class MemberOverview:
    """A member of a group, and the partitions that it reads."""

    client_id: str
    host: str
    partitions: tuple[str, ...]


@dataclass(frozen=True)
class PartitionOverview:
    """An input partition.

    `offset` is the group's committed offset, or None. `lag` is the number of unread messages; `held_back` of
    these can't be read before a transaction ends that has been open since `open_since` (milliseconds since
    1970).
    """

    topic: str
    partition: int
    offset: int | None
    end: int
    lag: int | None
    held_back: int
    open_since: int | None
    member: str


@dataclass(frozen=True)
class StreamOverview:
    """The content of a stream's table topic.

    Times are int64 microseconds since 1970, or None as long as there are none. `held_by` names the partition
    that holds back the watermark; it is empty for a stream that forwards its rows. For overlapping windows,
    `open_windows` counts their panes. `state_bytes` is the memory that a merger needs for the open windows.
    """

    name: str
    table_topic: str
    account: Account
    watermark_us: int | None
    held_by: str
    open_windows: int
    open_groups: int
    state_bytes: int


@dataclass(frozen=True)
class GroupOverview:
    """A group with its members, input partitions and streams; `warnings` list possible problems."""

    group: str
    state: str
    members: tuple[MemberOverview, ...]
    partitions: tuple[PartitionOverview, ...]
    streams: tuple[StreamOverview, ...]
    warnings: tuple[str, ...]


def list_groups(config: Mapping[str, Any]) -> list[GroupListed]:
    """The groups whose table topics this user can list."""
    client = _client(config)
    topics = client.list_topics(timeout=_SECONDS).topics
    listing = client.list_consumer_groups(request_timeout=_SECONDS).result(_SECONDS)
    states = {one.group_id: one.state.name.lower() for one in listing.valid}
    streams: dict[str, list[str]] = {}
    for topic in sorted(topics):
        if match := _TABLE.fullmatch(topic):
            group, name = _group_of(match[1], states)
            streams.setdefault(group, []).append(name)
    listed = []
    for group, names in streams.items():
        offsets = _offsets(client, group)
        known = [where for where in offsets if where.topic in topics]
        ends = high_watermarks(client, known)
        lag = sum(max(0, ends[where] - offsets[where]) for where in known) if known else None
        members = len(_described(client, group).members) if group in states else 0
        read = tuple(sorted({where.topic for where in offsets}))
        own = tuple(sorted({name for name in names if name != LONE}))
        listed.append(GroupListed(group, states.get(group, "unknown"), members, read, own, lag))
    return listed


def describe_group(config: Mapping[str, Any], group: str) -> GroupOverview:
    """Describe a group. Raises `ValueError` if it has neither offsets nor a table topic."""
    client = _client(config)
    topics = client.list_topics(timeout=_SECONDS).topics
    listing = client.list_consumer_groups(request_timeout=_SECONDS).result(_SECONDS)
    states = {one.group_id: one.state.name.lower() for one in listing.valid}
    tables = [
        (name, topic)
        for topic in sorted(topics)
        if (match := _TABLE.fullmatch(topic))
        for owner, name in [_group_of(match[1], states)]
        if owner == group
    ]
    offsets = _offsets(client, group) if group in states else {}
    if not tables and not offsets:
        raise ValueError(
            f"there is no group {group!r} with offsets or a table topic at {client.address}; "
            "`streamgauge kafka groups list` names those that exist"
        )
    members = _members(client, group) if group in states else ()
    read = {where.topic for where in offsets} | {
        place.partition("[")[0] for one in members for place in one.partitions
    }
    inputs = [Input(t, p) for t in sorted(read) if t in topics for p in sorted(topics[t].partitions)]
    streams = tuple(_stream(config, name, topic, topics[topic].partitions, inputs) for name, topic in tables)
    owners = {place: one.client_id for one in members for place in one.partitions}
    partitions = tuple(_partitions(client, config, inputs, offsets, owners))
    logs = [Input(topic, p) for _, topic in tables for p in sorted(topics[topic].partitions)]
    warnings = [
        _open_transaction(one)
        for one in (*partitions, *_partitions(client, config, logs, {}, {}))
        if one.held_back
    ]
    unowned = [str(where) for where in inputs if members and str(where) not in owners]
    if unowned:
        warnings.append(f"no member reads {', '.join(unowned)}")
    state = states.get(group, "unknown")
    return GroupOverview(group, state, members, partitions, streams, tuple(warnings))


def _client(config: Mapping[str, Any]) -> Admin:
    client = admin(
        {**config, "bootstrap.servers": servers(config.get("bootstrap.servers", "localhost:9092"))}
    )
    client.reach()
    return client


def _group_of(log_group: str, known: Collection[str]) -> tuple[str, str]:
    """The group that a table topic belongs to, and its stream's name, if several run together."""
    group, _, name = log_group.rpartition(".")
    return (group, name) if log_group not in known and group in known else (log_group, LONE)


def _offsets(client: Admin, group: str) -> dict[Input, int]:
    try:
        return {where: offset for where, (offset, _) in committed_offsets(client, group).items()}
    except ValueError:
        return {}


def _described(client: Admin, group: str) -> Any:
    try:
        return described_group(client, group).result(_SECONDS)
    except KafkaException as error:
        raise refused(error.args[0], f"describe the group {group!r}", group=group) from None


def _members(client: Admin, group: str) -> tuple[MemberOverview, ...]:
    return tuple(
        MemberOverview(
            member.client_id,
            member.host,
            tuple(str(Input(p.topic, p.partition)) for p in member.assignment.topic_partitions),
        )
        for member in _described(client, group).members
    )


def _partitions(
    client: Admin,
    config: Mapping[str, Any],
    inputs: Collection[Input],
    offsets: Mapping[Input, int],
    owners: Mapping[str, str],
) -> Iterable[PartitionOverview]:
    readable, ends = end_offsets(client, inputs), high_watermarks(client, inputs)
    for where in inputs:
        held_back = max(0, ends[where] - readable[where])
        offset = offsets.get(where)
        yield PartitionOverview(
            *where,
            offset=offset,
            end=ends[where],
            lag=None if offset is None else max(0, ends[where] - offset),
            held_back=held_back,
            open_since=_stamp(config, where, readable[where]) if held_back else None,
            member=owners.get(str(where), ""),
        )


def _stamp(config: Mapping[str, Any], where: Input, offset: int) -> int | None:
    """The timestamp of the message at an offset; it may belong to an open transaction."""
    settings = {**member_config(config, "streamgauge.look"), "isolation.level": "read_uncommitted"}
    consumer = Consumer(settings, logger=LIBRARY_LOG)
    try:
        consumer.assign([KafkaPartition(*where, offset)])
        deadline = time.monotonic() + _STAMP_SECONDS
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                return message.timestamp()[1]
        return None
    finally:
        consumer.close()


def _open_transaction(one: PartitionOverview) -> str:
    since, first = "", one.end - one.held_back
    if one.open_since is not None:
        since = f" for {max(0, int(time.time() - one.open_since / 1000)):,} s"
    return (
        f"a transaction on {one.topic}[{one.partition}] has been open{since} and holds back "
        f"{one.held_back:,} offset{'s' * (one.held_back > 1)} from {first} on: its producer still writes, "
        "or has died and the brokers end it after its transaction.timeout.ms; abort one that hangs with "
        f"kafka-transactions.sh abort --topic {one.topic} --partition {one.partition} --start-offset {first}"
    )


def _stream(
    config: Mapping[str, Any], name: str, topic: str, partitions: Iterable[int], inputs: Collection[Input]
) -> StreamOverview:
    """Fold a table topic, as a merger that takes it over does."""
    tails = read_tail(config, topic, dict.fromkeys(partitions, 0))
    if "to" in first_snapshot(topic, tails).definition:
        return _forwarding(name, topic, next(iter(tails.values())))
    stream = folded_stream(topic, tails)
    mine = {where for where in inputs if stream.reading.reads_topic(where.topic)}
    mergers = folded_log(config, stream, topic, tails, mine)
    states = [merger.state for merger in mergers.values()]
    counts = [merger.window_counts() for merger in mergers.values()]
    latest = max(states, key=lambda state: state.account.read)
    window = stream.window
    watermark = EARLIEST
    if window is not None and latest.marks.keys() >= mine:
        watermark = closing_times(latest.marks.values(), window, stream.closing_delay_us).final_us
    return StreamOverview(
        name,
        topic,
        latest.account,
        watermark if watermark > EARLIEST else None,
        held_by(latest.marks, mine, stream.closing_delay_us),
        sum(windows for windows, _ in counts),
        sum(groups for _, groups in counts),
        sum(merger.state_bytes for merger in mergers.values()),
    )


def _forwarding(name: str, topic: str, tail: Tail) -> StreamOverview:
    """The overview of a stream that forwards its rows: its log has offsets and counts, but no windows."""
    state = LogState() if tail.snapshot is None else read_state(tail.snapshot.state)[0]
    for delta in tail.deltas:
        mark = state.marks.get(delta.input)
        if mark is None or delta.first_offset >= mark.position.offset:
            state.marks[delta.input] = Mark(delta.end)
            state.account += delta.account
    return StreamOverview(name, topic, state.account, None, "", 0, 0, 0)


def held_by(marks: Mapping[Input, Mark], inputs: Collection[Input], delay_us: int) -> str:
    """Which partition holds back the watermark, in words.

    >>> held_by({}, [Input("posts", 0)], 0)
    'posts[0], from which no message was counted yet'
    >>> held_by({Input("posts", 0): Mark()}, [Input("posts", 0)], 0)
    'posts[0], which has no event time yet'
    """
    if unknown := sorted(set(inputs) - marks.keys()):
        return f"{unknown[0]}, from which no message was counted yet"
    awake = {where: mark.time.watermark(delay_us) for where, mark in marks.items() if not mark.idle}
    if not awake:
        return "no partition: all are silent"
    slowest = min(sorted(awake), key=lambda where: awake[where])
    return str(slowest) if awake[slowest] > EARLIEST else f"{slowest}, which has no event time yet"
