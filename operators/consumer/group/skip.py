"""Leave out messages of a group's input on purpose: those before an offset that is ahead of its counts.

The offset is committed with a mark. The group's next run compares it with its table topic (`set_offsets`),
and counts what lies between as skipped, in the delivery that takes the run there. So who dies in between
leaves a group that skips later, and open windows keep what they have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...kafka.settings import check_settings, servers
from ...kafka.topics import admin
from ...watermarks.position import Input, Position
from .committed import LONE, Committed, metadata_of, places_of
from .reset import Place, alter_offsets, check_empty, committed_offsets, offsets_at


def skip(
    group_id: str,
    to: Place | None = None,
    *,
    partitions: Collection[tuple[str, int]] = (),
    bootstrap_servers: str | Sequence[str] = "localhost:9092",
    config: Mapping[str, Any] | None = None,
) -> dict[Input, int]:
    """Have the next run of a group leave out the messages up to a place. Gives the offsets.

    `to` is as for `reset`; None takes the offsets as another program, such as ``kafka-consumer-groups``, has
    set them. `partitions` are those in which messages are skipped, all of the group's if none are named.
    The account counts what is left out as `skipped`; open windows keep what they hold. Streams that run
    together all skip the same.

    Raises `GroupInUse` while the group has members, and `ValueError` for an unknown group or partition, for a
    place that is behind what the group has counted, and if no offset was set by another program.
    """
    check_settings(config or {})
    client = admin({"bootstrap.servers": servers(bootstrap_servers), **(config or {})})
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
                "leave out: --partition posts:3 --to 1200, or --to latest"
            )
        ends = offsets_at(client, by_hand, {where: offsets[where][0] for where in by_hand})
    else:
        ends = offsets_at(client, wanted, to)
    for where, offset in ends.items():
        if where not in by_hand and offset < offsets[where][0]:
            raise ValueError(
                f"to must be at or after what the group has counted of {where}, offset {offsets[where][0]}, "
                f"got {offset}; to count messages again: streamgauge groups reset {group_id}"
            )
    marked = {}
    for where, offset in ends.items():
        known = next(iter(places[where].values()), Committed(Position(offset)))
        own = replace(known, position=Position(offset), fingerprint="", log=(), skipping=True)
        marked[where] = offset, metadata_of({LONE: own})
    alter_offsets(client, group_id, marked)
    return ends
