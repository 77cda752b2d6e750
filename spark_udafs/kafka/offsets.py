"""A streaming query's progress, as Spark's checkpoint stores it.

Spark logs the end of every micro-batch before it runs the batch, so that end determines a replay completely.
Besides the offsets it holds what was known about each partition when the batch was planned (its event time
and its account, up to some offset) and the watermark that the batch announces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...operators.kafka.source import TopicPartition
from ...operators.kept_form import form_of
from ...operators.sketching.account import Account
from ...operators.watermarks.partition_watermark import PartitionTime
from ...operators.watermarks.position import Position
from ...operators.windows.window import EARLIEST, StreamWindows

FORM = 2
"""The version of the format that `Offsets.to_json` writes."""
_TIME = len(PartitionTime().to_list())


@dataclass(frozen=True)
class Partner:
    """What is known about a joined partition, in addition to its own position, at an offset of its partner.

    `offset` is the partner's, `holds` says whether the partner's rows wait for this partition to show that
    they have no match, `heard` counts the ranges that had rows with an event time.
    """

    offset: int
    holds: bool
    heard: int


@dataclass(frozen=True)
class Known:
    """What is known about a partition up to a position: the outcome of its messages.

    It depends only on the messages before that position, so any worker that reads them gets the same result;
    in a join of two streams, it also depends on the partner partition's messages.
    """

    position: Position
    account: Account = field(default_factory=Account)
    partner: Partner | None = None

    @property
    def heard(self) -> int:
        """A number that grows whenever rows with an event time have come."""
        return self.account.counted + self.account.late if self.partner is None else self.partner.heard

    def floored(self, watermark_us: int) -> Known:
        """Return a copy with windows up to a watermark closed, whatever this partition has seen."""
        time = self.position.time
        if watermark_us <= time.closed_us:
            return self
        return replace(self, position=replace(self.position, time=replace(time, closed_us=watermark_us)))

    def moved(self, offset: int) -> Known:
        """Return a copy for another offset, with no messages between the two."""
        return replace(self, position=replace(self.position, offset=offset))

    def to_list(self) -> list[int]:
        """Convert to plain JSON."""
        position, partner = self.position, self.partner
        numbers = [position.offset, *self.account.to_dict().values(), *position.time.to_list()]
        if position.replay is not None:
            numbers.append(position.replay)
        if partner is not None:
            time = position.replay_time or position.time
            numbers += [partner.offset, int(partner.holds), partner.heard, *time.to_list()]
        return numbers

    @classmethod
    def from_list(cls, numbers: Iterable[int]) -> Known:
        """Convert from plain JSON."""
        offset, read, counted, filtered, late, dead, *rest = map(int, numbers)
        time, more = rest[:_TIME], rest[_TIME:]
        if len(time) != _TIME or len(more) not in (0, 1, 4 + _TIME):
            raise ValueError(f"a partition's event time must have {_TIME} numbers, got {len(rest)}")
        position = Position(offset, PartitionTime(*time), more[0] if more else None)
        account = Account(read, counted, filtered, late, dead)
        if len(more) < 2:
            return cls(position, account)
        _, other, holds, heard, *replay_time = more
        position = replace(position, replay_time=PartitionTime(*replay_time))
        return cls(position, account, Partner(other, bool(holds), heard))


@dataclass(frozen=True)
class Offsets:
    """One offset of a streaming query: the end of a micro-batch, and everything that determines its results.

    `ends` has the next offset to read of each partition and `begin` the first that the batch reads; `known`
    is what was known about them beforehand, usually at `begin`. `watermark_us` is the watermark that the
    batch announces: windows that end at or before it are complete. `topics` has the topics' ids, which change
    if a topic is recreated, and `definition` the packed definition (`definitions.pack`); checkpoints of
    earlier versions have neither. `clock_us` is the wall clock when the batch was planned, by which broken
    clocks are recognised whenever the batch runs. `lag` is the number of messages left for later batches.
    After the `last` batch of a query, no row of a join waits for a partner any more. `closed_us` is the end
    up to which a run, when asked to close at its end, has closed incomplete windows. `epochs` has the epochs
    of the leaders whose logs reach `ends`, as far as known; `truncated` is the number of messages that were
    read and that logs have lost since.

    >>> here = Offsets("q1", {("posts", 0): 12}, {("posts", 0): 7}, {("posts", 0): Known(Position(7))})
    >>> Offsets.from_json(here.to_json()) == here
    True
    """

    query: str
    ends: Mapping[TopicPartition, int]
    begin: Mapping[TopicPartition, int] = field(default_factory=dict)
    known: Mapping[TopicPartition, Known] = field(default_factory=dict)
    watermark_us: int = EARLIEST
    topics: Mapping[str, str] = field(default_factory=dict)
    definition: str | None = None
    clock_us: int = 0
    lag: int = 0
    last: bool = False
    closed_us: int = EARLIEST
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    truncated: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return what Spark logs; `offsets` has the format of Spark's own Kafka source."""
        fields: dict[str, Any] = {"form": FORM, "query": self.query, "offsets": _by_topic(self.ends)}
        if self.begin:
            fields["begin"] = _by_topic(self.begin)
        if self.known:
            fields["known"] = _by_topic({place: known.to_list() for place, known in self.known.items()})
            fields["watermark"] = self.watermark_us
            fields["clock"] = self.clock_us
            fields["lag"] = self.lag
        if self.last:
            fields["last"] = True
        if self.closed_us > EARLIEST:
            fields["closed"] = self.closed_us
        if self.epochs:
            fields["epochs"] = _by_topic(self.epochs)
        if self.truncated:
            fields["truncated"] = self.truncated
        if self.topics:
            fields["topics"] = dict(sorted(self.topics.items()))
        if self.definition is not None:
            fields["definition"] = self.definition
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Offsets:
        """Parse the result of `to_json`.

        Raises `ValueError` for the checkpoint of another source, `WrittenByNewer` for a newer format.
        """
        try:
            form_of(fields, FORM, "the checkpoint of the streaming query")
            begin, known = (_by_place(fields.get(name, {})) for name in ("begin", "known"))
            return cls(
                str(fields["query"]),
                _by_place(fields["offsets"]),
                begin,
                {place: Known.from_list(listed) for place, listed in known.items()},
                int(fields.get("watermark", EARLIEST)),
                dict(fields.get("topics", {})),
                fields.get("definition"),
                int(fields.get("clock", 0)),
                int(fields.get("lag", 0)),
                bool(fields.get("last", False)),
                int(fields.get("closed", EARLIEST)),
                _by_place(fields.get("epochs", {})),
                int(fields.get("truncated", 0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"the checkpoint doesn't hold offsets of streamgauge-kafka ({error!r}): {str(fields)[:200]}; "
                "give the query a checkpoint folder of its own"
            ) from None

    def account(self) -> Account:
        """Return the account of all messages when this batch was planned."""
        return sum((known.account for known in self.known.values()), Account(truncated=self.truncated))


def share(
    begin: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, int]:
    """Return the ends of a batch of about `limit` offsets, shared in proportion to each partition's backlog.

    A partition with anything to read gets at least one offset, so that none starves.

    >>> share({("t", 0): 0, ("t", 1): 0}, {("t", 0): 300, ("t", 1): 100}, 40)
    {('t', 0): 30, ('t', 1): 10}
    """
    waiting = {place: end - begin[place] for place, end in ends.items()}
    total = sum(waiting.values())
    if total <= limit:
        return dict(ends)
    return {
        place: begin[place] + min(size, max(1, size * limit // total) if size else 0)
        for place, size in waiting.items()
    }


def last_window_end(known: Mapping[TopicPartition, Known], window: StreamWindows) -> int:
    """Return the end of the last window that any partition has reached.

    A single row far ahead of its partition's time, from a wrong clock, doesn't count: its window stays open.
    """
    latest = (k.position.time.latest_us for k in known.values())
    seen = [time for time in latest if time > EARLIEST]
    return max((window.last_end(s) for s in seen), default=EARLIEST)


def _by_topic(places: Mapping[TopicPartition, Any]) -> dict[str, dict[str, Any]]:
    by_topic: dict[str, dict[str, Any]] = {}
    for (topic, partition), value in sorted(places.items()):
        by_topic.setdefault(topic, {})[str(partition)] = value
    return by_topic


def _by_place(topics: Mapping[str, Mapping[str, Any]]) -> dict[TopicPartition, Any]:
    return {(topic, int(p)): value for topic, ps in topics.items() for p, value in ps.items()}
