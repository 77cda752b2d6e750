"""The offsets from which a worker resumes in assigned partitions, and how it avoids counting messages twice.

A partition resumes at the group's committed offset, unless the log may contain deltas that were sent and
never committed: with "at_least_once" and "effectively_once" the worker finds them there and continues after
them. But a predecessor that was only paused may send another delta after that. So with "effectively_once" a
worker first **claims** its partitions, in three steps, all of which are necessary:

1. It commits the position again with the next higher `epoch`. Brokers refuse this from a process that is no
   longer a member, so epochs grow from owner to owner.
2. It sends an empty delta with that epoch to each partition of the table topic. Mergers drop deltas after it
   that have a lower epoch.
3. It reads the log up to there. This includes everything that its predecessors sent before; what they send
from
   now on does not count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException

from ...definition.definition_diff import DefinitionChanged
from ...kafka.client_config import EARLIER
from ...kafka.reader import LogTruncated, ReadError
from ...kafka.topics import Admin
from ...sketching.delta import Delta
from ...watermarks.position import Input, Position
from ..group.committed import LONE, Committed, Places
from ..group.membership import Membership
from ..group.set_offsets import resume
from ..log.log_scan import Ends, Tail, highest_claim, log_ends, read_tail
from ..log.messages import encode
from ..run_plan import Plan, Plans
from .delivery import AtLeastOnce, AtMostOnce, Delivery, ExactlyOnce

log = logging.getLogger("streamgauge.kafka")

_ANSWER_SECONDS = 10.0
_CUT_IDS = (
    "%s was trimmed: ids last seen at its offsets %s … %s may be counted twice; set the topic's retention "
    "to more than the time that deduplicate() looks back"
)
_CUT_ROWS = (
    "%s was trimmed: rows at its offsets %s … %s find no more partners; set the topic's retention to more "
    "than the time that join() looks back"
)


def counted_and_gone(
    error: LogTruncated, counted: int, choice: str = 'write truncated="continue"'
) -> LogTruncated:
    """The error for a group that has counted a partition beyond the end of its log."""
    if error.end is None:
        lost = f"it is unknown which of the messages counted up to offset {counted} no longer exist"
        advice = "give the run a new group_id, or reset the group, to count what the log has now"
    else:
        lost = (
            f"{counted - error.end:,} messages that were counted (offsets {error.end} … {counted - 1}) no "
            "longer exist"
        )
        advice = f"to continue from offset {error.end}, with them in the counts and in the account, {choice}"
    return LogTruncated(error.where, counted, error.end, error.epoch, f"{lost}; {advice}")


class PartitionRecovery:
    """Finds the positions of a worker's partitions, and creates the delivery for its results.

    `ids` are those of the input topics, to which more may be added. `epochs` are the claims under which the
    worker has its partitions, if its delivery makes claims; only that of a lone stream does.
    """

    def __init__(
        self,
        plans: Plans,
        membership: Membership,
        admin: Callable[[], Admin],
        stopping: Callable[[], bool],
        ids: Mapping[str, str] | None = None,
    ) -> None:
        self._plans = plans
        self._plan = plans.first
        self._membership = membership
        self._admin = admin
        self._stopping = stopping
        self._ids = plans.topic_ids if ids is None else ids
        self._fingerprints = {name: plan.stream.fingerprint() for name, plan in plans.by_name.items()}
        self.delivery: Delivery | None = None
        self.epochs: dict[Input, int] = {}
        self._behind: dict[Input, tuple[int, Committed]] = {}

    def prepare(self) -> None:
        """With "exactly_once", end the transaction in which a predecessor was killed.

        Until then brokers don't return the positions that it committed.
        """
        plan = self._plan
        if plan.options.delivery == "exactly_once":
            self.delivery = ExactlyOnce(
                plan.config, self._membership, self._stopping, plan.transactional_id or None
            )

    def places(self, inputs: Iterable[Input]) -> dict[str, dict[Input, Ends]]:
        """The offset from which each stream resumes in the newly assigned partitions that it reads.

        Raises `KafkaException` if brokers don't answer, `MembershipLost` if others have the partitions by
        now, `ReadError` if unread messages were deleted, `DefinitionChanged` if the commits belong to other
        streams.
        """
        known = self._membership.committed(inputs, _ANSWER_SECONDS)
        lows = {where: self._membership.watermarks(where, _ANSWER_SECONDS)[0] for where in known}
        by_stream = {}
        for name, plan in self._plans.by_name.items():
            mine = [where for where in known if plan.stream.reading.reads_topic(where.topic)]
            places = {where: self._place(plan, where, known[where], lows[where]) for where in mine}
            exactly = plan.options.delivery == "exactly_once"
            ends = self._exactly(plan, places) if exactly else self._behind_log(places)
            for where, end in ends.items():
                # They were deleted unread, and the run continues without them as requested: the account has
                # them.
                if plan.stream.reading.joined is None and end.position.offset < lows[where]:
                    end.skip_to = max(end.skip_to or 0, lows[where])
            by_stream[name] = ends
        return by_stream

    def committed(self, name: str, where: Input, position: Position) -> Committed:
        """What to commit for a stream in one of the worker's partitions."""
        epoch = self.epochs.get(where, 0)
        current = replace(
            self._committed(self._plans.by_name[name], where, position), epoch=epoch, moved=epoch
        )
        end, recovered = self._behind.get(where, (0, current))
        if position.offset >= end:
            return current
        # Part of the log covers more: a successor must find that again, from the same position.
        return replace(current, log=recovered.log, moved=recovered.moved)

    def _place(self, plan: Plan, where: Input, known: Places, low: int) -> Committed:
        """The offset from which a stream resumes in a partition that begins at `low`."""
        place = known.get(plan.name) or known.get(LONE)
        if place is None and known:
            raise DefinitionChanged(
                f"the group {plan.group_id!r} has committed {where} without the stream {plan.name!r}: a run "
                "of other streams is active at the same time; give one of them another group_id"
            )
        if place is None:
            place = self._committed(plan, where, Position(low))
        elif place.position.offset < low:
            self._gone(where, place.position.offset, low)
        replay = self._replay(plan, where, place.position, low)
        return replace(place, position=replace(place.position, replay=replay))

    def _committed(self, plan: Plan, where: Input, position: Position) -> Committed:
        ids = self._ids.get(where.topic, ""), plan.table_id
        return Committed(position, (), self._fingerprints[plan.name], *ids)

    def _exactly(self, plan: Plan, places: Mapping[Input, Committed]) -> dict[Input, Ends]:
        if all(place.fingerprint for place in places.values()):
            return {where: Ends(place.position) for where, place in places.items()}
        logs = self._whole_log(plan)
        return {where: self._resume(plan, where, place, logs) for where, place in places.items()}

    def _whole_log(self, plan: Plan) -> Mapping[int, Tail]:
        return read_tail(plan.config, plan.table_topic, dict.fromkeys(range(plan.table_partitions), 0))

    def _resume(self, plan: Plan, where: Input, place: Committed, logs: Mapping[int, Tail]) -> Ends:
        return resume(plan.stream, plan.group_id, where, place, logs)

    def _behind_log(self, places: Mapping[Input, Committed]) -> dict[Input, Ends]:
        """Positions after deltas that are in the log but were never committed."""
        plan = self._plan
        starts = {
            t: min((place.log[t] if t < len(place.log) else 0) for place in places.values())
            for t in range(plan.table_partitions)
        }
        logs = self._tails(starts)
        # Offsets that would skip messages without a request are refused before anything is written.
        ends = {w: self._resume(plan, w, place, logs) for w, place in places.items()}
        if self.delivery is None:
            way = AtMostOnce if plan.options.delivery == "at_most_once" else AtLeastOnce
            known = [logs[t].end for t in range(plan.table_partitions)]
            self.delivery = way(plan.config, self._membership, plan.table_topic, known, self._stopping)
        if plan.options.delivery == "effectively_once":
            self._claim(places, logs, ends)
            logs = self._tails(starts)
            ends = {w: self._resume(plan, w, place, logs) for w, place in places.items()}
        log = tuple(starts[t] for t in range(plan.table_partitions))
        for where, place in places.items():
            self._behind[where] = max(ends[where].cuts, default=0), replace(place, log=log)
        return ends

    def _claim(
        self, places: Mapping[Input, Committed], logs: Mapping[int, Tail], ends: Mapping[Input, Ends]
    ) -> None:
        """Take partitions over from their last worker, so that nothing it still sends counts."""
        plan = self._plan
        assert isinstance(self.delivery, AtLeastOnce)
        epochs = {w: max(place.epoch, highest_claim(w, logs)) + 1 for w, place in places.items()}
        messages = []
        for where, place in places.items():
            # An offset that skips messages is ahead of the log, in which a claim must leave no hole.
            at = place.position if ends[where].skip_to is None else ends[where].position
            empty = Delta(
                fingerprint=self._fingerprints[plan.name],
                topic=where.topic,
                partition=where.partition,
                first_offset=at.offset,
                next_offset=at.offset,
                table=None,
                time=at.time,
                source=self._ids.get(where.topic, ""),
                epoch=epochs[where],
            )
            messages += encode(empty, plan.table_topic, plan.table_partitions, split_keys=plan.split_keys)
        marked = {w: {plan.name: replace(place, epoch=epochs[w])} for w, place in places.items()}
        self.delivery.claim(messages, marked)
        self.epochs |= epochs

    def _tails(self, starts: Mapping[int, int]) -> dict[int, Tail]:
        """The log up to its current end, waiting for transactions that are still open."""
        plan = self._plan
        ends = log_ends(self._admin(), plan.table_topic, starts)
        logs = read_tail(plan.config, plan.table_topic, starts)
        if any(logs[partition].end < end for partition, end in ends.items()):
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, f"a transaction on {plan.table_topic} is still open")
            )
        return logs

    def _replay(self, plan: Plan, where: Input, position: Position, low: int) -> int:
        """The offset from which rows before a position must be reread; the partition begins at `low`."""
        if not plan.stream.reading.of_topic(where.topic).reading.looks_back:
            return position.offset
        wanted = low if position.replay is None else position.replay
        if wanted < low:
            joined = plan.stream.reading.joined is not None
            log.warning(_CUT_ROWS if joined else _CUT_IDS, where, wanted, min(low, position.offset) - 1)
        return max(low, wanted)

    def _gone(self, where: Input, offset: int, low: int) -> None:
        problem = (
            f"{low - offset:,} messages of {where} were deleted before they were read "
            f"(offsets {offset} … {low - 1})"
        )
        if self._plan.config.get("auto.offset.reset") not in EARLIER:
            raise ReadError(f'{problem}; to continue without them, set "auto.offset.reset" to "earliest"')
        log.warning("%s; continuing without them", problem)
