"""Reset a group: its offsets together with its merger's state.

Offsets and counts belong together: the table topic contains the counts up to the offsets, and each delta
names its range. So a reset first removes the group's table topics and the merger's position, and sets the
offsets last. If it dies in between, the group refuses to run until it is reset again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import OffsetSpec

from ....sketches.core.errors import StreamgaugeError
from ...kafka.faults import refused
from ...kafka.settings import check_settings, servers
from ...kafka.topics import (
    Admin,
    TopicError,
    admin,
    begin_offsets,
    described_group,
    end_offsets,
    partitions_of,
    remove,
)
from ...watermarks.position import Input, inputs_of
from .group_registry import recorded_in, table_topics_of

_SECONDS = 30.0

Place = Literal["earliest", "latest"] | datetime | int | Mapping[tuple[str, int], int]
"""Where a group resumes: an end of its topics, a time, one offset for all partitions, or one for each."""


class GroupInUse(StreamgaugeError, RuntimeError):
    """A group can't be reset while it has members."""


def reset(
    group_id: str,
    to: Place,
    *,
    bootstrap_servers: str | Sequence[str] = "localhost:9092",
    config: Mapping[str, Any] | None = None,
    topics: Sequence[str] = (),
) -> dict[Input, int]:
    """Set where the next run of a group counts from; returns the offsets.

    `to` is ``"earliest"``, ``"latest"``, a time (the first message with that timestamp or a later one; UTC
    unless it has a zone), one offset for every partition, or offsets by (topic, partition) for all
    partitions. `topics` are the group's input topics, if neither its offsets nor its table topic name
    them.

    Counts that were not delivered are dropped, including open windows, together with the positions that
    determine lateness: a window that begins before the new position contains only rows from there on.
    Delivered windows stay; if they are counted again, they are delivered again and replace the earlier ones
    by `window_start` and keys (`SketchesToParquet` and `SketchesToKafka` replace them automatically). Bad
    messages that are reread become dead letters again. The group may continue with another definition.
    Streams that run together are all reset.

    Raises `GroupInUse` while the group has members (static ones count until their session time-out),
    `TopicError` for topics that don't exist, `ValueError` for a position that is not in a topic or that
    leaves out partitions, and for an unknown group.

        reset("by-minute", datetime(2026, 6, 1, 12))
        # or: streamgauge kafka groups reset by-minute --offset 2026-06-01T12:00

    >>> import streamgauge as sg
    >>> sg.reset("by-minute", "yesterday")
    Traceback (most recent call last):
    ValueError: to must be "earliest", "latest", a datetime or an offset, got 'yesterday'
    """
    if not isinstance(to, (datetime, int, Mapping)) and to not in ("earliest", "latest"):
        raise ValueError(f'to must be "earliest", "latest", a datetime or an offset, got {to!r}')
    check_settings(config or {})
    settings = {"bootstrap.servers": servers(bootstrap_servers), **(config or {})}
    client = admin(settings)
    check_empty(client, group_id)
    known = client.list_topics(timeout=_SECONDS).topics
    gone = table_topics_of(settings, group_id, known)
    mergers = {f"{topic.rpartition('.table.')[0]}.merger" for topic in gone} | {f"{group_id}.merger"}
    for group in sorted(mergers):
        check_empty(client, group)
    names = list(topics) or sorted(_topics_read(client, settings, group_id, gone, known))
    if not names:
        raise ValueError(
            f"the group {group_id!r} has neither offsets nor a table topic: check its name, or name its "
            "input topics (topics=[...], --topic NAME)"
        )
    inputs = inputs_of({topic: partitions_of(client, topic) for topic in names})
    places = offsets_at(client, inputs, to)
    remove(client, gone, mergers)
    wait_until_gone(client, gone)
    alter_offsets(client, group_id, {where: (offset, "") for where, offset in places.items()})
    return places


def _topics_read(
    client: Admin, settings: Mapping[str, Any], group_id: str, tables: Sequence[str], known: Collection[str]
) -> set[str]:
    """The input topics of a group: those that its offsets or its table topics name.

    Offsets expire, and are deleted with their topic, even if it is recreated.
    """
    names = set[str]()
    with suppress(ValueError):
        names |= {where.topic for where in committed_offsets(client, group_id)}
    for table in tables:
        # Unreadable topics don't matter: they are about to be removed.
        with suppress(StreamgaugeError, KafkaException):
            recorded = recorded_in(settings, table)
            names |= set() if recorded is None else {topic for topic in recorded.sources if topic in known}
    return names


def alter_offsets(client: Admin, group_id: str, offsets: Mapping[Input, tuple[int, str]]) -> None:
    """Set the offsets of a group without members, each with its metadata."""
    places = [KafkaPartition(*where, offset, metadata) for where, (offset, metadata) in offsets.items()]
    wanted = ConsumerGroupTopicPartitions(group_id, places)
    try:
        client.alter_consumer_group_offsets([wanted], request_timeout=_SECONDS)[group_id].result(_SECONDS)
    except KafkaException as error:
        raise refused(error.args[0], f"set the offsets of the group {group_id!r}", group=group_id) from None


def check_empty(client: Admin, group: str) -> None:
    """Raise `GroupInUse` if a group has members, and whatever `Admin.reach` raises."""
    client.reach()
    try:
        members = described_group(client, group).result(_SECONDS).members
    except TimeoutError:
        raise TopicError(f"no broker described the group {group!r} in time; try again") from None
    except KafkaException as error:
        if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise refused(error.args[0], f"describe the group {group!r}", group=group) from None
        return
    if members:
        hosts = ", ".join(sorted({str(member.host) for member in members}))
        raise GroupInUse(
            f"the group {group!r} has members ({len(members)}, on {hosts}); stop its runs first. A member "
            "that died, or that has a group.instance.id, remains until its session.timeout.ms has passed"
        )


def committed_offsets(client: Admin, group_id: str) -> dict[Input, tuple[int, str]]:
    """The offsets that a group has committed, with their metadata. Raises `ValueError` if there are none."""
    requests = [ConsumerGroupTopicPartitions(group_id)]
    offsets: list[KafkaPartition] = []
    try:
        answer = client.list_consumer_group_offsets(requests, request_timeout=_SECONDS)[group_id]
        offsets = answer.result(_SECONDS).topic_partitions or []
    except KafkaException as error:
        if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise refused(error.args[0], f"read the offsets of {group_id!r}", group=group_id) from None
    if not any(place.offset >= 0 for place in offsets):
        raise ValueError(f"the group {group_id!r} has no offsets: check its name")
    return {
        Input(place.topic, place.partition): (place.offset, place.metadata or "")
        for place in offsets
        if place.offset >= 0
    }


def offsets_at(client: Admin, inputs: list[Input], to: Place) -> dict[Input, int]:
    """Resolve a position, as `reset` accepts it, to offsets in these partitions. Raises `ValueError`."""
    first, last = begin_offsets(client, inputs), end_offsets(client, inputs)
    if to == "earliest":
        return {where: first[where] for where in inputs}
    if to == "latest":
        return {where: last[where] for where in inputs}
    if isinstance(to, datetime):
        return _at(client, inputs, to, last)
    wanted = dict.fromkeys(inputs, to) if isinstance(to, int) else {Input(*w): at for w, at in to.items()}
    if missing := [where for where in inputs if where not in wanted]:
        raise ValueError(f"the offsets leave out {missing[0]}; name one for each partition")
    if unknown := [where for where in wanted if where not in first]:
        raise ValueError(f"{unknown[0]} is not a partition of the group's topics")
    for where, offset in wanted.items():
        if not first[where] <= offset <= last[where]:
            raise ValueError(
                f"offset {offset} is not in {where}, which holds {first[where]} to {last[where] - 1}; write "
                f"one from {first[where]} to {last[where]}"
            )
    return wanted


def _at(client: Admin, inputs: list[Input], time: datetime, last: Mapping[Input, int]) -> dict[Input, int]:
    """The first offsets with this timestamp or a later one; the end of partitions without one."""
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    requests = {KafkaPartition(*w): OffsetSpec.for_timestamp(int(zoned.timestamp() * 1000)) for w in inputs}
    try:
        answers = client.list_offsets(requests, request_timeout=_SECONDS)
        offsets = {Input(p.topic, p.partition): done.result(_SECONDS).offset for p, done in answers.items()}
    except (KafkaException, TimeoutError) as error:
        raise TopicError(f"no broker returned the offsets for the time {zoned}: {error}") from None
    return {where: last[where] if offsets[where] < 0 else offsets[where] for where in inputs}


def wait_until_gone(client: Admin, topics: list[str]) -> None:
    """Wait until no broker lists these table topics. Raises `TopicError` if they stay."""
    deadline = time.monotonic() + _SECONDS
    while left := set(topics) & set(client.list_topics(timeout=_SECONDS).topics):
        if time.monotonic() > deadline:
            raise TopicError(
                f"the table topic {min(left)!r} can't be deleted: this user needs the right DELETE on it. "
                "The group's offsets are unchanged"
            )
        time.sleep(0.05)
