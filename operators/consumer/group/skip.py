"""Skip messages of a group's input on purpose: those before an offset that is ahead of its counts.

The offset is committed with a mark. The group's next run compares it with its table topic (`set_offsets`),
and counts the messages in between as skipped in its first delivery. So if a process dies in between, the
group skips later, and open windows keep their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...kafka.settings import check_settings, servers
from ...kafka.topics import Admin, admin
from ...watermarks.position import Input, Position
from ..log.log_scan import read_tail
from .committed import LONE, Committed, metadata_of, places_of
from .group_registry import table_topics_of
from .reset import Place, alter_offsets, check_empty, committed_offsets, offsets_at
from .set_offsets import counted_until

_SECONDS = 30.0


def skip(
    group_id: str,
    to: Place | None = None,
    *,
    partitions: Collection[tuple[str, int]] = (),
    bootstrap_servers: str | Sequence[str] = "localhost:9092",
    config: Mapping[str, Any] | None = None,
) -> dict[Input, int]:
    """Make the next run of a group skip the messages up to a position; returns the offsets.

    `to` is as for `reset`; None accepts the offsets that another program, such as ``kafka-consumer-groups``,
    has set. `partitions` are those in which messages are skipped; by default, all of the group's. The account
    counts these messages as `skipped`; open windows keep their rows. Streams that run together all skip the
    same messages.

    Raises `GroupInUse` while the group has members, and `ValueError` for an unknown group or partition, for a
    position behind what the group has counted, and if no other program has set an offset. In these cases
    nothing is written.
    """
    check_settings(config or {})
    settings = {"bootstrap.servers": servers(bootstrap_servers), **(config or {})}
    client = admin(settings)
    check_empty(client, group_id)
    offsets = committed_offsets(client, group_id)
    places = {where: places_of(*known) for where, known in offsets.items()}
    wanted = [Input(*where) for where in partitions] or sorted(places)
    if unknown := [where for where in wanted if where not in places]:
        raise ValueError(
            f"partitions must be among those that the group {group_id!r} has offsets of "
            f"({', '.join(map(str, sorted(places)))}), got {unknown[0]}"
        )
    by_hand = [where for where in wanted if not any(own.fingerprint for own in places[where].values())]
    if to is None:
        if not by_hand:
            raise ValueError(
                f"no offset of the group {group_id!r} was set by another program; say which messages to "
                "leave out: --topic posts --partition 3 --offset 1200, or --offset latest"
            )
        ends = offsets_at(client, by_hand, {where: offsets[where][0] for where in by_hand})
    else:
        ends = offsets_at(client, wanted, to)
    counted = _counted(client, settings, group_id, ends)
    for where in set(ends) - set(by_hand):
        counted[where] = max(counted.get(where, 0), offsets[where][0])
    for where, offset in sorted(ends.items()):
        if offset < (known_to := counted.get(where, 0)):
            raise ValueError(
                f"to must be at or after what the group has counted of {where}, offset {known_to}, got "
                f"{offset}. Nothing was written. To skip nothing there: streamgauge kafka groups skip "
                f"{group_id} --topic {where.topic} --partition {where.partition} --offset {known_to} (or a "
                f"later offset, to skip up to it); to count messages again: streamgauge kafka groups "
                f"reset {group_id}"
            )
    marked = {}
    for where, offset in ends.items():
        known = next(iter(places[where].values()), Committed(Position(offset)))
        own = replace(known, position=Position(offset), fingerprint="", log=(), skipping=True)
        marked[where] = offset, metadata_of({LONE: own})
    alter_offsets(client, group_id, marked)
    return ends


def _counted(
    client: Admin, settings: Mapping[str, Any], group_id: str, inputs: Collection[Input]
) -> dict[Input, int]:
    """The offsets up to which the table topics of a group count these inputs; other inputs are missing.

    The group's commits don't show it: they may be offsets that another program has set, or lie behind deltas
    that were sent and not committed.
    """
    topics = client.list_topics(timeout=_SECONDS).topics
    counted: dict[Input, int] = {}
    for table in table_topics_of(settings, group_id, topics):
        logs = read_tail(settings, table, dict.fromkeys(topics[table].partitions, 0))
        for where in inputs:
            if (ends := counted_until(where, logs)) is not None:
                counted[where] = max(counted.get(where, 0), ends.position.offset)
    return counted
