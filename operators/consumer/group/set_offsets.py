"""Offsets that no worker committed: set by ``kafka-consumer-groups``, a Kafka console, or `skip`.

The table topic records how far a group has counted. An offset behind that position skips nothing: the run
continues at the log's end. An offset ahead of it would skip messages and leave a hole in the log that no
merger can cross. So the run is refused before it writes anything, unless `skip` has requested that the
messages in between be skipped. Then the first delta covers them: it has no rows, and counts them as skipped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from ....sketches.core.errors import StreamgaugeError
from ...definition.stream import Stream
from ...kafka.topics import Admin, high_watermarks
from ...watermarks.position import Input, Position
from ..log.log_scan import Ends, Tail, follow
from .committed import Committed

log = logging.getLogger("streamgauge.kafka")


class OffsetsAhead(StreamgaugeError, ValueError):
    """A group's offset was set beyond what the group has counted, without a requested skip."""


def resume(stream: Stream, group: str, where: Input, place: Committed, logs: Mapping[int, Tail]) -> Ends:
    """The offset from which a stream resumes in a partition, from its commit and the whole log.

    Raises `OffsetsAhead` for a position that would skip messages.
    """
    offset = place.position.offset
    counted = None if place.fingerprint else counted_until(where, logs)
    if counted is None or offset == counted.position.offset:
        return follow(place.position, where, logs, place.moved)
    known = counted.position.offset
    if offset < known:
        log.warning(
            "the group %s has counted %s up to offset %d, and its offset was set back to %d: continuing at "
            "%d, so that no message counts twice; to count from another offset: streamgauge kafka groups "
            "reset %s",
            *(group, where, known, offset, known, group),
        )
        return follow(place.position, where, logs, place.moved)
    check_ahead(stream, group, where, place, known)
    if stream.reading.of_topic(where.topic).reading.looks_back:
        log.warning("ids last seen in %s before offset %d may be counted again after it", where, offset)
    log.warning("leaving out %s of %s, as requested by groups skip", _range(known, offset), where)
    # Earlier rows are not reread: rows before a gap are no guide to those after it.
    position = replace(counted.position, replay=known)
    return Ends(position, [cut for cut in counted.cuts if cut < offset], skip_to=offset)


def check_ahead(stream: Stream, group: str, where: Input, place: Committed, known: int) -> None:
    """Raise `OffsetsAhead` for a position that would skip messages after the `known` offset.

    This is allowed if the skip was requested and the stream doesn't join two streams.
    """
    offset = place.position.offset
    if place.fingerprint or offset <= known:
        return
    if not place.skipping:
        raise OffsetsAhead(
            f"the group {group!r} has counted {where} up to offset {known}, and its offset was set to "
            f"{offset} by another program, which would leave out {_range(known, offset)}. Nothing was "
            f"written. To leave nothing out, set the offset back to {known}; to leave them out and have "
            f"them counted as skipped, run: streamgauge kafka groups skip {group}"
        )
    if stream.reading.joined is not None:
        raise OffsetsAhead(
            f"{where}: {_range(known, offset)} can't be skipped, because the stream joins two streams and "
            f"earlier rows wait for partners among them. Set the offset back to {known}, or count again from "
            f"another place with: streamgauge kafka groups reset {group}"
        )


def check_within(client: Admin, group: str, places: Mapping[Input, Committed]) -> None:
    """Raise `OffsetsAhead` for a position beyond its partition's end that no worker committed."""
    by_hand = {where: place.position.offset for where, place in places.items() if not place.fingerprint}
    for where, end in high_watermarks(client, by_hand).items():
        if by_hand[where] > end:
            raise OffsetsAhead(
                f"the offset of the group {group!r} in {where} was set to {by_hand[where]} by another "
                f"program, and the log ends at {end}. Nothing was written. To continue with the next "
                f"message, set it to {end}, or run: streamgauge kafka groups skip {group} "
                f"--topic {where.topic} --partition {where.partition} --offset latest"
            )


def _range(known: int, offset: int) -> str:
    return f"{offset - known:,} offset{'s' * (offset - known > 1)} ({known} … {offset - 1})"


def counted_until(where: Input, logs: Mapping[int, Tail]) -> Ends | None:
    """The end of an input partition's deltas in the whole log; None if it has none.

    >>> counted_until(Input("posts", 0), {0: Tail()}) is None
    True
    """
    firsts = [delta.first_offset for tail in logs.values() for delta in tail.deltas if delta.input == where]
    ends = follow(Position(min(firsts, default=-1)), where, logs)
    return None if ends.position.offset < 0 else ends
