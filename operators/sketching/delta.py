"""What a sketching worker sends: the sketches of a range of one input partition's offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ..watermarks.idle_timer import Rest
from ..watermarks.partition_watermark import PartitionTime
from ..watermarks.position import Input, Position
from .account import Account
from .forwarded_rows import ForwardedRow


@dataclass(frozen=True)
class Delta:
    """The sketches of the messages `first_offset` … `next_offset` − 1 of an input partition.

    A range may be empty (both are equal), to report that the partition is silent. `time` is the partition's
    event time after these messages, `rest` its silence (None: there may be unread messages), `messages` how
    many messages were counted by the start of their pane (int64 microseconds). `more` means that others
    follow that were sent together with this delta. With several table partitions each gets its own groups in
    `table` (None: no rows), and everything else is the same. `source` is the input topic's id, which changes
    if the topic is deleted and recreated; empty if brokers have no ids. `replay` and `replay_time` are those
    of its end position; they are committed, not sent. `epoch` is the number of the claim under which it was
    sent, 0 without one; deltas after a higher claim don't count (`worker.partition_recovery`). `sent` are
    rows that are forwarded with it. A `provisional` delta covers no offsets: its rows have no partner in a
    join if nothing follows, and count only at the end of a bounded run. `leader_epoch` is that of its end
    position. If a log was truncated, a delta goes back: its `next_offset`, from which the log now has other
    messages, lies before its `first_offset`, and the account says how many messages were lost.
    """

    fingerprint: str
    topic: str
    partition: int
    first_offset: int
    next_offset: int
    table: pa.Table | None
    time: PartitionTime = field(default_factory=PartitionTime)
    rest: Rest | None = None
    more: bool = False
    account: Account = field(default_factory=Account)
    messages: Mapping[int, int] = field(default_factory=dict)
    source: str = ""
    replay: int | None = None
    epoch: int = 0
    replay_time: PartitionTime | None = None
    sent: tuple[ForwardedRow, ...] = ()
    provisional: bool = False
    leader_epoch: int = -1

    @property
    def input(self) -> Input:
        """The input partition."""
        return Input(self.topic, self.partition)

    @property
    def end(self) -> Position:
        """The position of its partition after it."""
        return Position(self.next_offset, self.time, self.replay, self.replay_time, self.leader_epoch)

    @property
    def range_text(self) -> str:
        """Its range, for error messages."""
        return f"{self.input} {self.first_offset}…{self.next_offset}"
