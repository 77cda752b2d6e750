"""One table followed live: deltas in, a view of all its windows out, open ones included.

It folds as the merging worker does (`consumer.merge.merger`), so that its answers are those of the run's own
tables. Threads may share it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...operators.consumer.log.merger_state import EmittedWindows, read_state, state_json
from ...operators.consumer.merge.log_folding import merge_message
from ...operators.consumer.merge.merger import Merger
from ...operators.consumer.options import DeliveryName
from ...operators.definition.described_stream import DescribedStream
from ...operators.kafka.chunked_records import ChunkAssembler
from ...operators.table.schema import schema_of
from ...operators.windows.window import EARLIEST
from .log_start import Place
from .view import Gap, NotReady, ServedWindow, Stale, TableView, new_version, windows_of
from .watchers import Watchers
from .window_retention import MOST_BYTES, WindowRetention

DAY_US = 86_400_000_000


@dataclass(frozen=True)
class KnownTable:
    """What a table knows at one moment: where each partition of its log goes on, closed windows, gaps."""

    places: Mapping[int, Place]
    windows: tuple[ServedWindow, ...]
    gaps: Mapping[int, tuple[Gap, ...]]


class LiveTable:
    """The windows of a group's table, as far as its log was given to `merge_message`.

    Before `begin` has said which stream it is of, asking it raises `NotReady`.
    """

    def __init__(self, name: str, keep_us: int = DAY_US, most_bytes: int = MOST_BYTES) -> None:
        self.name = name
        self._lock = threading.RLock()
        self._watchers = Watchers()
        self._keep_us, self._most_bytes = keep_us, most_bytes
        self._forget()

    def _forget(self) -> None:
        self._kept = WindowRetention(self._keep_us, self._most_bytes)
        self._mergers: dict[int, Merger] = {}
        self._gathers: dict[int, ChunkAssembler] = {}
        self._gaps: dict[int, list[Gap]] = {}
        self._open: dict[int, list[ServedWindow] | None] = {}
        self._stream: DescribedStream | None = None
        self._schema: pa.Schema | None = None
        self._view: TableView | None = None
        self._version = new_version()
        self._stale: Stale | None = None
        self._lag: int | None = None
        self._ready = False
        self._waiting = "its table topic is being looked for"

    @property
    def stream(self) -> DescribedStream | None:
        """The stream that it is of, once that is known."""
        return self._stream

    def waiting(self, what: str) -> None:
        """Say what stands in the way while nothing is known of the table."""
        self._waiting = what

    def begin(
        self,
        stream: DescribedStream,
        places: Mapping[int, Place | None],
        inputs: Collection[Any],
        known_us: Mapping[int, int],
        delivery: DeliveryName = "exactly_once",
    ) -> None:
        """Begin, or go on, with a merger for each partition of the log at its place (None: its beginning).

        `inputs` are the input partitions: no window closes before a delta of each has come. Windows that were
        emitted and deleted before a place are missing here, but for those that end by `known_us`. `delivery`
        is that of the run.
        """
        with self._lock:
            self._stream, self._schema = stream, schema_of(stream)
            for partition, place in places.items():
                merger = Merger(stream, inputs, delivery)
                if place is not None:
                    offset, state = place
                    known, emitted = read_state(state)
                    # Those that were handed over for now are whole in the log, and are wanted here.
                    merger.restore(offset, state_json(known, EmittedWindows(emitted.until_us)))
                    since = known_us.get(partition, EARLIEST)
                    if emitted.until_us > since:
                        gap = Gap(since, emitted.until_us, "they were closed before the table topic was read")
                        self._gaps[partition] = [*self._gaps.get(partition, ()), gap]
                self._mergers[partition] = merger
                self._gathers[partition] = ChunkAssembler()
                self._open[partition] = None
            self._changed()

    def forget(self) -> None:
        """Forget all, to begin again with another log."""
        with self._lock:
            self._forget()
            self._changed()

    def merge_message(self, partition: int, offset: int, value: bytes | None, headers: Any) -> None:
        """Take in a message of the log. Raises `DeltaError` for one that is damaged or out of order."""
        merger = self._mergers[partition]
        with self._lock:
            if merge_message(merger, self._gathers[partition], offset, value, headers) is None:
                return
            # Those that silence alone has closed may get more rows: they stay open here.
            while (groups := merger.due()) is not None and merger.final:
                self._kept.add_table(partition, groups.table)
                merger.mark_emitted()
            self._open[partition] = None
            self._changed()

    def add_closed(self, windows: Iterable[ServedWindow]) -> None:
        """Take in closed windows from elsewhere than the log of deltas."""
        with self._lock:
            for window in windows:
                self._kept.add(window)
            self._changed()

    def update_lag(self, lag: int | None, stale: Stale | None = None) -> None:
        """Say how many messages wait in the log, and whether it is followed; `lag` 0 makes it ready."""
        with self._lock:
            ready = self._ready or lag == 0
            if (lag, stale, ready) != (self._lag, self._stale, self._ready):
                status = ready, stale is None
                same = status == (self._ready, self._stale is None)
                self._lag, self._stale, self._ready, self._view = lag, stale, ready, None
                if not same:
                    self._changed()

    def known(self) -> KnownTable:
        """All of it that can be kept for a later server: consistent with itself."""
        with self._lock:
            places = {partition: merger.restore_point() for partition, merger in self._mergers.items()}
            gaps = {partition: tuple(gaps) for partition, gaps in self._gaps.items()}
            return KnownTable(places, tuple(self._kept), gaps)

    def wanting(self) -> dict[int, tuple[int, int]]:
        """Of each partition that misses windows: after which end, and up to which, they are wanted."""
        with self._lock:
            spans = {}
            for partition, gaps in self._gaps.items():
                until = max((gap.until for gap in gaps), default=EARLIEST)
                since = min((gap.since for gap in gaps), default=EARLIEST)
                if until > since:
                    spans[partition] = max(since, until - self._keep_us), until
            return spans

    def backfill(self, partition: int, table: pa.Table) -> None:
        """Take in closed windows that the log has no more; what is missing ends with the first of them."""
        with self._lock:
            for window in windows_of(partition, table):
                self._kept.add(window)
                self._gaps[partition] = [
                    gap if gap.until <= window.start else Gap(gap.since, window.start, gap.why)
                    for gap in self._gaps.get(partition, ())
                    if gap.since < window.start
                ]
            self._changed()

    def add_gaps(self, gaps: Mapping[int, Iterable[Gap]]) -> None:
        """Note gaps that were known before."""
        with self._lock:
            for partition, more in gaps.items():
                self._gaps[partition] = [*self._gaps.get(partition, ()), *more]

    def view(self) -> TableView:
        """The table now. Raises `NotReady` while nothing is known of it."""
        with self._lock:
            if self._schema is None:
                raise NotReady(f"the table {self.name!r} can't answer yet: {self._waiting}")
            if self._view is None:
                self._view = self._make_view(self._schema)
            return self._view

    def describe(self) -> dict[str, Any]:
        """Where it comes from, as plain JSON."""
        if self._stream is None:
            return {"source": {"group": self.name}, "waiting": self._waiting}
        account = next((merger.state.account for merger in list(self._mergers.values())), None)
        return {
            "source": {"group": self.name},
            "definition": self._stream.definition(),
            # Each partition of the log has that of the whole group.
            "account": None if account is None else account.to_dict(),
        }

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from any thread after each change; gives what ends that."""
        return self._watchers.add(changed)

    def close(self) -> None:
        """Nothing is to be let go of."""

    def _make_view(self, schema: pa.Schema) -> TableView:
        windows = list(self._kept)
        for partition, merger in self._mergers.items():
            if self._open[partition] is None:
                self._open[partition] = [
                    window
                    for table in merger.close_all()
                    for window in windows_of(partition, table, open=True)
                ]
            windows += self._open[partition] or ()
        ordered = sorted(windows, key=lambda w: (w.start, w.end, w.partition))
        distinct = {gap for of_partition in self._gaps.values() for gap in of_partition}
        gaps = sorted(distinct, key=lambda gap: gap.since)
        if self._kept.dropped_us > EARLIEST:
            why = "for want of room" if self._kept.for_room else "as they are older than what is kept"
            gaps.append(Gap(EARLIEST, self._kept.dropped_us, f"they were dropped {why}"))
        final = min((merger.state.closed_us for merger in self._mergers.values()), default=EARLIEST)
        return TableView(
            self.name,
            schema,
            tuple(ordered),
            self._version,
            final,
            tuple(gaps),
            self._stale,
            self._lag,
            self._ready,
        )

    def _changed(self) -> None:
        self._version, self._view = new_version(), None
        self._watchers.changed()
