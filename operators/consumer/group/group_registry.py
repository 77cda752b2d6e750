"""Which streams a group has, according to its table topics.

A lone stream's table topic is ``<group>.table.<fingerprint>``; if several run together, each has
``<group>.<name>.table.<fingerprint>``. Another group may be called ``<group>.<name>``, so the name alone is
ambiguous: the topic's content shows whether its stream runs together with others, and with which.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from ...definition.definition_diff import DefinitionChanged
from ...kafka.client_config import LIBRARY_LOG, member_config
from ...kafka.faults import passing, refused
from ...kafka.retry import Retry
from ..log.log_scan import read_tail
from ..log.snapshots import Snapshot
from .committed import LONE, STREAM_NAME

_SECONDS = 30.0
_TRY_SECONDS = 3.0
_TRANSACTION_MS = 60_000
"""The longest that a worker's or merger's transaction lasts, unless "transaction.timeout.ms" is set."""


def committed_by(
    config: Mapping[str, Any], group: str, partitions: Sequence[KafkaPartition]
) -> list[KafkaPartition]:
    """What a group has committed for these partitions. Raises `KafkaException` if brokers don't answer.

    They don't answer while a transaction with such a commit is open. If a dead or stopped process left one
    open, this waits until it times out.
    """
    consumer = Consumer(member_config(config, group), logger=LIBRARY_LOG)
    lasting = int(config.get("transaction.timeout.ms", _TRANSACTION_MS)) / 1000
    deadline = time.monotonic() + lasting + _SECONDS
    patience = Retry(f"learn what the group {group} has committed", stopping=lambda: False)
    try:
        while True:
            try:
                committed = consumer.committed(list(partitions), timeout=_TRY_SECONDS)
                patience.done()
                return committed
            except KafkaException as error:
                # A user without permission on the group learns this only from the client's log; no
                # answer ever arrives.
                beside = consumer.poll(0.0)
                fault = (beside and beside.error()) or error.args[0]
                if not passing(fault) or time.monotonic() > deadline:
                    raise refused(fault, "read the group's positions", group=group) from None
                patience.failed(KafkaException(fault))  # or a new broker's coordinators are still loading
    finally:
        consumer.close()


def recorded_in(config: Mapping[str, Any], topic: str) -> Snapshot | None:
    """The snapshot in the first partition of a table topic; None if it has none."""
    merger_group = f"{topic.rpartition('.table.')[0]}.merger"
    place = committed_by(config, merger_group, [KafkaPartition(topic, 0)])[0]
    metadata = place.metadata or ""
    hint = int(metadata) if metadata.isdigit() else 0
    tail = read_tail(config, topic, {0: hint})[0]
    if tail.snapshot is None and hint:
        tail = read_tail(config, topic, {0: 0})[0]
    return tail.snapshot


def table_topics_of(config: Mapping[str, Any], group_id: str, topics: Collection[str]) -> list[str]:
    """The table topics of a group among `topics`: those of a lone stream, and of streams run together."""
    alone = re.compile(re.escape(f"{group_id}.table.") + "[0-9a-f]{16}")
    together = [topic for topic, _ in tables_together(config, group_id, topics)]
    return [topic for topic in topics if alone.fullmatch(topic)] + together


def tables_together(
    config: Mapping[str, Any], group_id: str, topics: Collection[str], but: Collection[str] = ()
) -> Iterator[tuple[str, Snapshot]]:
    """The table topics among `topics` whose streams run together in a group, with their snapshots.

    Topics named in `but` are not read.
    """
    pattern = re.compile(re.escape(f"{group_id}.") + rf"({STREAM_NAME})\.table\.[0-9a-f]{{16}}")
    for topic in sorted(topics):
        named = pattern.fullmatch(topic)
        if named is not None and named[1] not in but:
            recorded = recorded_in(config, topic)
            if recorded is not None and named[1] in recorded.together:
                yield topic, recorded


def other_streams(group_id: str, known: Collection[str], now: Collection[str]) -> DefinitionChanged:
    """The error for a group that has the streams `known` while the run has the streams `now`.

    >>> print(other_streams("posts", ["few", "many"], ["few", "all"]))
    the group 'posts' belongs to the streams 'few' and 'many' together, and can't continue with others ...
    """
    was = "a stream that runs by itself" if set(known) == {LONE} else f"the streams {_and(known)} together"
    changed = {
        "missing": sorted(set(known) - {*now, LONE}),
        "added": sorted(set(now) - {*known, LONE}),
    }
    details = ", ".join(f"{_and(names)} {what}" for what, names in changed.items() if names)
    others = f"others ({details})" if details else "others"
    return DefinitionChanged(
        f"the group {group_id!r} belongs to {was}, and can't continue with {others}: its counts match only "
        "its own offsets. Run the same streams again, or give these a group_id of their own"
    )


def _and(names: Collection[str]) -> str:
    return " and ".join(map(repr, sorted(names)))
