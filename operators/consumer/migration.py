"""Give a group a changed definition, from where the windows of its old one have closed.

A changed definition that touches the state can't continue with open windows. But emitted windows are
complete, and everything else is in the input from some offset on. So the new definition begins in a table
topic of its own, with a snapshot that records two things. Windows up to the **end** of the emitted ones are
closed for good. Each input partition resumes at its **start**, an offset before which there is no row of a
later window. Rows after it that belong to closed windows are late, so no window gets a row twice.

If both definitions treat rows alike (source, event time, steps), the start follows from the old table topic:
it is where the deltas of the oldest open window begin. Otherwise, rows that the old definition filtered out
may be anywhere, and reading begins with the first message, or at the caller's `start`.

The order makes each step repeatable: create the new table topic, set the offsets, and finally delete the old
table topic. A group with both table topics refuses to run under either definition, until the migration has
been run again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ..definition.definition_diff import DefinitionChanged, differences
from ..definition.lasting_state import goes_on
from ..definition.stream import Stream
from ..kafka.topics import Admin, admin, begin_offsets, ensure_topic, id_of, remove
from ..watermarks.global_watermark import Mark
from ..watermarks.partition_watermark import PartitionTime
from ..watermarks.position import Input, Position, inputs_of
from ..windows.paned import Paned
from ..windows.window import EARLIEST
from .group.committed import LONE, Committed, metadata_of, places_of
from .group.group_registry import tables_together
from .group.group_state_check import write_to_log
from .group.input_topics import InputTopics, input_topics
from .group.reset import (
    Place,
    alter_offsets,
    check_empty,
    committed_offsets,
    offsets_at,
    wait_until_gone,
)
from .log.log_scan import Tail, follow, read_tail
from .log.merger_state import EmittedWindows, LogState, read_state, state_json
from .log.messages import TOPIC_CONFIG, log_group, table_topic
from .log.snapshots import Snapshot
from .merge.folded_log import first_snapshot, folded_log, folded_stream
from .merge.merger import Merger

log = logging.getLogger("streamgauge.kafka")

_SECONDS = 30.0
_APART = "give the changed stream a group_id of its own, and stop the old one when the new one has caught up"


@dataclass(frozen=True)
class Migration:
    """The plan or the result of a migration.

    `changes` describes how the definitions differ. `end` is the end of the last window that the old
    definition emitted (None if there was none); windows that end later belong to the new definition. `starts`
    are the offsets at which it begins to read.
    """

    group: str
    changes: tuple[str, ...]
    end: datetime | None
    starts: Mapping[Input, int]
    table_topic: str


def migrate(group_id: str, stream: Stream, *, start: Place | None = None, dry_run: bool = False) -> Migration:
    """Give a group another definition, from where the windows of its old one have closed.

    The next run of the group with `stream` counts all later windows from their first row on, so no window of
    either definition lacks a row or counts one twice. Its account begins at zero at its start offsets, and
    counts rows as late that it rereads and that belong to windows of the old definition. Windows that the old
    definition emitted before they closed are emitted again. The group's old table topic is deleted.

    If the definitions differ in their source or in steps, rows that the old one filtered out may count now.
    Then the topics are read from their first message on, or from `start` (as `to` in `reset`), a position
    before which there is no row of a window that is still open. With `dry_run` nothing is changed.

    Raises `GroupInUse` while the group has members, and `ValueError` for definitions that can't follow each
    other: joined streams, sessions and windows by count, another event time, other topics, windows that would
    begin before those of the old one have ended; and for a change with which the group can continue by
    itself.

        sg.migrate("by-minute", posts)    # or: streamgauge kafka groups migrate by-minute streams:posts

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> sg.migrate("by-minute", sg.Stream.from_kafka("posts", value=sg.json({"n": pl.Int64})))
    Traceback (most recent call last):
    ValueError: the stream has no aggregates yet; add .tumbling("1m").agg(posts=count()), or send its \
rows with .rows_to_kafka("topic")
    """
    stream.reading.check_on_brokers()
    sources = stream.complete().reading.kafka_sources
    config = sources[0].settings
    client = admin(config)
    check_empty(client, group_id)
    check_empty(client, f"{group_id}.merger")
    topics = set(client.list_topics(timeout=_SECONDS).topics)
    if together := [topic for topic, _ in tables_together(config, group_id, topics)]:
        raise ValueError(
            f"the group {group_id!r} is of streams that run together ({len(together)} table topics), which "
            f"can't be migrated; {_APART}"
        )
    places = {where: places_of(*known)[LONE] for where, known in committed_offsets(client, group_id).items()}
    tables = _table_topics(group_id, topics)
    old = _old_topic(group_id, tables, {place.fingerprint for place in places.values()})
    partitions = sorted(client.list_topics(old, timeout=_SECONDS).topics[old].partitions)
    tails = read_tail(config, old, dict.fromkeys(partitions, 0))
    snapshot = first_snapshot(old, tails)
    before, after = snapshot.definition, stream.definition()
    if goes_on(before, after) and tables != {old}:  # a migration to it was interrupted before its last step
        remove(client, tables - {old}, [])
        wait_until_gone(client, list(tables - {old}))
        known = {where: place.position.offset for where, place in places.items()}
        return Migration(group_id, (), None, known, old)
    fingerprint = _new_fingerprint(stream, snapshot.fingerprint)
    own = table_topic(group_id, fingerprint)
    changes = differences(before, after)
    _check_successor(group_id, before, after)
    read = input_topics(client, sources)
    _check_topics(before, read)
    inputs = inputs_of(read.partitions)
    if stream.sending is not None:
        end_us, positions = EARLIEST, _ends_of_log(tails, places, inputs)
    else:
        end_us, positions = _closed(config, old, tails, stream, places, inputs)
    if stream.sending is None and _rows(before) != _rows(after):
        positions = _earlier(client, stream, positions, tails, start, end_us)
    elif start is not None:
        raise ValueError(
            "start must be left out: both definitions treat rows alike, so the group's table topic says "
            "exactly where the new one starts"
        )
    end = None if end_us == EARLIEST else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=end_us)
    starts = {where: position.offset for where, position in sorted(positions.items())}
    migration = Migration(group_id, tuple(changes), end, starts, own)
    if dry_run:
        return migration
    if own in topics:  # left by an interrupted migration
        remove(client, [own], [])
        wait_until_gone(client, [own])
    ensure_topic(client, own, len(partitions), TOPIC_CONFIG)
    state = LogState({where: Mark(position) for where, position in positions.items()})
    state.closed_us = state.due_us = end_us
    kept = state_json(state, EmittedWindows(end_us))
    first = Snapshot(fingerprint, read.ids, 0, kept, after, described=stream.fingerprint())
    for partition in partitions:
        write_to_log(config, group_id, first.outgoing(own, partition))
    table_id = id_of(client, own)
    committed = {
        where: (
            position.offset,
            metadata_of({LONE: Committed(position, (), fingerprint, read.ids[where.topic], table_id)}),
        )
        for where, position in positions.items()
    }
    alter_offsets(client, group_id, committed)
    gone = (tables | {old}) - {own}
    remove(client, gone, [])
    wait_until_gone(client, list(gone))
    log.info("the group %s continues with another definition: %s", group_id, "; ".join(changes))
    return migration


def _table_topics(group_id: str, topics: set[str]) -> set[str]:
    """The table topics of a group, one for each of its definitions whose topic was not removed."""
    pattern = re.compile(re.escape(f"{log_group(group_id, LONE)}.table.") + "[0-9a-f]{16}")
    return {topic for topic in topics if pattern.fullmatch(topic)}


def _old_topic(group_id: str, tables: set[str], fingerprints: set[str]) -> str:
    """The table topic of the group's definition."""
    committed = {table_topic(group_id, one) for one in fingerprints if one} & tables
    if len(old := committed or tables) != 1:
        raise ValueError(
            f"the group {group_id!r} has {len(old) or 'no'} table topic{'s' * (len(old) > 1)} that a new "
            "definition could follow: start the changed stream, or count again from a place with: "
            f"streamgauge kafka groups reset {group_id}"
        )
    return next(iter(old))


def _new_fingerprint(stream: Stream, old: str) -> str:
    """The fingerprint under which the new definition starts: its own, unless the old one has the same.

    Fingerprints differ if tables can't be merged. Two definitions that compute the same table from
    differently treated rows have one fingerprint, and need separate table topics.
    """
    own = stream.fingerprint()
    if own != old:
        return own
    text = json.dumps([own, stream.definition()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_successor(group_id: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a definition that can't start where another one's windows have closed."""
    if before.get("version") != after.get("version"):
        raise DefinitionChanged("; ".join(differences(before, after)))
    if goes_on(before, after):
        raise ValueError(
            f"the group {group_id!r} continues with its open windows under this definition: nothing needs to "
            "be migrated; start its run"
        )
    for definition in (before, after):
        source = definition.get("source") or {}
        if "joined" in source or any("joined" in (part.get("source") or {}) for part in _parts(definition)):
            raise ValueError(
                f"a join has no single place in its input at which its windows have closed; {_APART}"
            )
    if bool(before.get("to")) != bool(after.get("to")):
        raise ValueError(f"one definition has windows and the other sends its rows on; {_APART}")
    if _times(before) != _times(after):
        raise ValueError(
            f"the event time changed, so the windows of the two definitions can't be compared; {_APART}"
        )


def _parts(definition: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(definition.get("parts") or ())


def _times(definition: Mapping[str, Any]) -> Any:
    return definition.get("time"), [part.get("time") for part in _parts(definition)]


def _rows(definition: Mapping[str, Any]) -> Any:
    """Everything that determines which rows exist, and when."""
    whole = [(one.get("source"), one.get("time"), one.get("steps")) for one in _parts(definition)]
    return definition.get("source"), definition.get("time"), definition.get("steps"), whole


def _check_topics(before: Mapping[str, Any], read: InputTopics) -> None:
    source = before.get("source") or {}
    parts = [source, *(source.get("merged") or ())]
    names = [part.get("topic") for part in parts if part.get("topic")]
    known = {name for topic in names for name in (topic if isinstance(topic, list) else [topic])}
    plain = {name for name in known if not name.startswith("^")}
    if not any(name.startswith("^") for name in known) and plain != set(read.partitions):
        raise ValueError(
            f"the group reads {', '.join(sorted(known))}, and the new definition "
            f"{', '.join(sorted(read.partitions))}; {_APART}"
        )


def _ends_of_log(
    tails: Mapping[int, Tail], places: Mapping[Input, Committed], inputs: list[Input]
) -> dict[Input, Position]:
    """The end of a log without windows, by input partition."""
    begins = {
        where: min((d.first_offset for tail in tails.values() for d in tail.deltas if d.input == where),
                   default=-1)
        for where in inputs
    }  # fmt: skip
    known = {
        where: places[where].position if where in places else Position(begins[where]) for where in inputs
    }
    ends = {where: follow(position, where, tails).position for where, position in known.items()}
    return {where: position for where, position in ends.items() if position.offset >= 0}


def _closed(
    config: Mapping[str, Any],
    topic: str,
    tails: Mapping[int, Tail],
    stream: Stream,
    places: Mapping[Input, Committed],
    inputs: list[Input],
) -> tuple[int, dict[Input, Position]]:
    """The end of the last emitted window, and where reading must start to cover all later ones."""
    old = folded_stream(topic, tails)
    for window in (old.window, stream.window):
        if not isinstance(window, Paned):
            kind = "none" if window is None else window.kind
            raise ValueError(
                f"windows of the kind {kind!r} don't end at times where another definition could begin; "
                f"{_APART}"
            )
    mine = [where for where in inputs if old.reading.reads_topic(where.topic)]
    mergers = folded_log(config, old, topic, tails, mine)
    assert isinstance(old.window, Paned) and isinstance(stream.window, Paned)
    ends = {_handed_over_until(merger, old.window) for merger in mergers.values()}
    if len(ends) > 1:
        raise ValueError(
            f"not all partitions of {topic!r} have handed over the same windows: start a run of the old "
            'definition with until="latest" once more, or ' + _APART
        )
    end_us = ends.pop()
    if end_us > EARLIEST:
        _check_windows(old.window, stream.window, end_us)
    return end_us, _starts(mergers, tails, places, inputs)


def _handed_over_until(merger: Merger, window: Paned) -> int:
    """The end of the last of a merger's windows up to which all were emitted."""
    pending = merger.due() is not None and merger.final
    emitted_us = read_state(merger.restore_point()[1])[1].until_us
    closed_us = merger.state.closed_us
    if pending or closed_us == EARLIEST:
        return emitted_us
    return max(emitted_us, window.first_end(closed_us) - window.every_us)


def _check_windows(old: Paned, new: Paned, end_us: int) -> None:
    """Raise `ValueError` if a window of the new definition would need rows that are already deleted.

    Rows of emitted windows are gone from the table topic, so the first window that ends later must begin
    where the first open window of the old definition does, or after it.
    """
    first, first_old = new.start_of(new.first_end(end_us)), old.start_of(old.first_end(end_us))
    if first >= first_old:
        return
    closed, begins = (datetime.fromtimestamp(us / 1e6, UTC) for us in (end_us, first))
    raise ValueError(
        f"the windows of the old definition have closed up to {closed:%Y-%m-%d %H:%M:%S}, and the first "
        f"window of the new one that ends later begins at {begins:%Y-%m-%d %H:%M:%S}: it would share rows "
        "with windows that were handed over. Run the old definition until its windows have closed up to "
        f"where one of the new ones begins, or {_APART}"
    )


def _starts(
    mergers: Mapping[int, Merger],
    tails: Mapping[int, Tail],
    places: Mapping[Input, Committed],
    inputs: list[Input],
) -> dict[Input, Position]:
    """The start of the deltas of the oldest open window, by input partition."""
    positions: dict[Input, Position] = {}
    for partition, merger in mergers.items():
        marks = read_state(merger.restore_point()[1])[0].marks
        for where in inputs:
            firsts = [d.first_offset for d in tails[partition].deltas if d.input == where]
            if where in marks:
                known = marks[where].position
            elif firsts:
                known = Position(min(firsts), PartitionTime())
            elif where in places:
                known = replace(places[where].position, leader_epoch=-1)
            else:
                continue
            if where not in positions or known.offset < positions[where].offset:
                positions[where] = replace(known, replay=None, replay_time=None)
    return positions


def _earlier(
    client: Admin,
    stream: Stream,
    positions: Mapping[Input, Position],
    tails: Mapping[int, Tail],
    start: Place | None,
    end_us: int,
) -> dict[Input, Position]:
    """Where reading must start if rows may count now that the old definition filtered out."""
    inputs = sorted(positions)
    deltas = [delta for tail in tails.values() for delta in tail.deltas]
    firsts = {
        where: min((d.first_offset for d in deltas if d.input == where), default=positions[where].offset)
        for where in inputs
        if all(tail.begin == 0 for tail in tails.values())
    }
    if start is not None:
        offsets = offsets_at(client, inputs, start)
    elif firsts:
        # Nothing was trimmed, so the log shows where the group started.
        offsets = firsts
    elif stream.time is None and end_us > EARLIEST:
        assert isinstance(stream.window, Paned)
        first_us = stream.window.start_of(stream.window.first_end(end_us))
        offsets = offsets_at(client, inputs, datetime.fromtimestamp(first_us / 1e6, UTC))
    else:
        offsets = begin_offsets(client, inputs)
    for where, offset in offsets.items():
        if start is not None and offset > positions[where].offset:
            raise ValueError(
                f"start must be at or before the first row of an open window, offset "
                f"{positions[where].offset} of {where}, got {offset}"
            )
    return {
        where: Position(offset) if offset < positions[where].offset else positions[where]
        for where, offset in offsets.items()
    }
