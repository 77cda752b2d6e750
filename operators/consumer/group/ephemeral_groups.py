"""Runs without a group_id: their names, and cleaning up after runs that died.

Such a run removes its table topic and its groups when it ends. If it was killed, the next run without a
group_id on the same topic removes them, once nothing can be using them any more.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from confluent_kafka import KafkaError, KafkaException

from ...kafka.topics import Admin, described_group, remove
from .committed import STREAM_NAME

log = logging.getLogger("streamgauge.kafka")

LEAST_AGE = timedelta(days=1)
"""A younger run may be alive without members: it may be starting, or on a sleeping laptop."""

_LONGEST = 135
"""Kafka allows names of 249 characters, and a table topic's name is longer than its group's."""
_SECONDS = 10.0


def group_name(topic: str, now: datetime) -> str:
    """A generated group name; permissions on names that start with the topic's name cover it.

    >>> group_name("posts", datetime(2026, 11, 22, 0, 5, 1, tzinfo=UTC))[:-8]
    'posts.streamgauge-20261122T000501-'
    """
    return f"{topic[:_LONGEST]}.streamgauge-{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"


def old_groups(topics: Iterable[str], topic: str, now: datetime) -> dict[str, str]:
    """Find groups of runs of `topic` that are older than `LEAST_AGE`, by their table topics in `topics`.

    >>> known = ["posts.streamgauge-20261120T000501-0123abcd.table.8e93", "posts.table.1", "posts"]
    >>> later = datetime(2026, 11, 22, tzinfo=UTC)
    >>> list(old_groups(known, "posts", later).values())
    ['posts.streamgauge-20261120T000501-0123abcd']
    >>> list(old_groups([known[0].replace(".table", ".tags.table")], "posts", later).values())
    ['posts.streamgauge-20261120T000501-0123abcd']
    >>> old_groups(known, "posts", datetime(2026, 11, 20, 23, tzinfo=UTC)), old_groups(known, "post", later)
    ({}, {})
    """
    run = re.escape(topic[:_LONGEST]) + r"\.streamgauge-(\d{8}T\d{6})-[0-9a-f]{8}"
    ours = re.compile(rf"{run}(?=(?:\.{STREAM_NAME})?\.table\.)")
    groups = {}
    for name in topics:
        if (named := ours.match(name)) is None:
            continue
        began = datetime.strptime(named[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        if now - began >= LEAST_AGE:
            groups[name] = named[0]
    return groups


def remove_leftovers(client: Admin, topic: str, now: datetime) -> None:
    """Remove what old runs of `topic` without a group_id left behind, if their groups have no members.

    If brokers don't answer or don't allow it, nothing is removed.
    """
    try:
        known = client.list_topics(timeout=_SECONDS).topics
        for table, group in old_groups(known, topic, now).items():
            groups = [group, f"{table.rpartition('.table.')[0]}.merger"]
            if not any(_has_members(client, one) for one in groups):
                log.info("removing the leftovers of the run %s", group)
                remove(client, [table], groups)
    except (KafkaException, TimeoutError) as error:
        log.debug("what earlier runs left was not looked for: %s", error)


def _has_members(client: Admin, group: str) -> bool:
    try:
        description = described_group(client, group).result(_SECONDS)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return False
        raise
    return bool(description.members)
