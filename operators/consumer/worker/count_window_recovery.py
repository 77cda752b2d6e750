"""Restoring a worker's count windows: how many rows each group has in its open window.

Its predecessor sent these numbers with every part of a window, and a merger keeps the parts of incomplete
windows in the table topic. So they are read from there, starting where the merger would resume, by the
merger's own rules for which deltas count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import pyarrow as pa
from confluent_kafka import Message

from ....sketches.core.columns.columns import as_array
from ...grouping.group_index import hash_keys
from ...kafka.chunked_records import ChunkAssembler
from ...kafka.topics import Admin
from ...sketching.delta import Delta
from ...sketching.open_counts import Counts, OpenCounts
from ...table.schema import BEGUN, UPTO, keys_of
from ...watermarks.position import Input
from ...windows.count import ByCount
from ..log.log_scan import Ends, log_ends, read_tail, read_through
from ..log.merger_state import EmittedWindows
from ..merge.log_folding import merge_message
from ..merge.merger import Merger
from ..merge.open_windows import Beginning, Due
from ..run_plan import Plan

Beginnings = list[tuple[int, OpenCounts]]
"""The state of groups' open windows, from certain offsets of a partition on."""


def open_counts(
    plan: Plan, ends: Mapping[Input, Ends], client: Callable[[], Admin]
) -> dict[Input, Beginnings]:
    """The state of groups' open windows: for each input partition, from certain offsets on.

    If there are several table partitions, one may hold more deltas than another (`Ends.cuts`): the state of
    its groups counts from where those end. Empty for streams without count windows.

    Raises `KafkaException` if brokers don't answer, or if a transaction stays open before the log's end;
    `DeltaError` for damaged deltas.
    """
    window = plan.stream.window
    if not isinstance(window, ByCount) or not ends:
        return {}
    topic, partitions = plan.table_topic, range(plan.table_partitions)
    last = log_ends(client(), topic, partitions)
    tails = read_tail(plan.config, topic, dict.fromkeys(partitions, 0))
    beginnings: dict[Input, Beginnings] = {where: [] for where in ends}
    mergers: dict[int, Merger] = {}
    windows: dict[int, LastCounts] = {}
    starts: dict[int, int] = {}
    gathers = {t: ChunkAssembler() for t in partitions}
    for t, tail in tails.items():
        windows[t] = own = LastCounts(window.rows, ends)
        mergers[t] = Merger(plan.stream, (), plan.options.delivery, windows=lambda own=own: own)  # type: ignore[misc]
        starts[t] = tail.begin
        if tail.snapshot is not None:
            mergers[t].restore(tail.snapshot.next_offset, tail.snapshot.state)
            starts[t] = tail.snapshot.next_offset

    def take(message: Message) -> None:
        t, offset = message.partition() or 0, message.offset() or 0
        merge_message(mergers[t], gathers[t], offset, message.value(), message.headers())

    read_through(plan.config, topic, starts, last, take)
    for t, merger in mergers.items():
        for where, end in ends.items():
            mark = merger.state.marks.get(where)
            reached = end.position.offset if mark is None else mark.position.offset
            since = reached if reached in end.cuts else end.position.offset
            beginnings[where].append((since, windows[t].counts[where].known()))
    return beginnings


class LastCounts:
    """Stores only how many rows each group has in its last window, for some input partitions.

    It folds in deltas as open windows do (see `OpenWindows`).
    """

    def __init__(self, size: int, inputs: Iterable[Input]) -> None:
        self._size = size
        self.counts = {where: Counts() for where in inputs}

    def merge(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """Record the last part of each group in a delta."""
        if delta.table is None or delta.input not in self.counts:
            return
        table = delta.table.sort_by(BEGUN)
        keys = [as_array(table.column(key)) for key in keys_of(table.schema)]
        rows, begun = (as_array(table.column(name)).to_numpy() for name in (UPTO, BEGUN))
        h1, h2 = hash_keys(keys, len(rows))
        self.counts[delta.input].note(OpenCounts(h1, h2, rows % self._size, begun))

    def close(self, closed_us: int, emitted: EmittedWindows) -> None:
        """Do nothing: no window closes here."""

    def due(self, due_us: int, emitted: EmittedWindows) -> Due | None:
        """Return None: nothing is emitted here."""
        return None

    def mark_emitted(self, due: Due, emitted: EmittedWindows, position: int) -> None:
        """Do nothing: nothing is emitted here."""

    def open_tables(self, emitted: EmittedWindows, since: int = -1) -> list[pa.Table]:
        """Return nothing: nothing is emitted here."""
        return []

    def origins(self) -> Collection[Beginning]:
        """Return nothing: nothing must be reread."""
        return ()

    def window_counts(self) -> tuple[int, int]:
        """The number of groups."""
        groups = sum(map(len, self.counts.values()))
        return groups, groups

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(counts.size for counts in self.counts.values())

    def largest(self) -> list[tuple[str, int]]:
        """Return nothing: nothing could be freed."""
        return []

    def spill(self) -> None:
        """Do nothing: nothing could be moved to disk."""
