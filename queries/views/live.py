"""A table followed live: folds in deltas, and returns views of all its windows, open ones included.

It folds like the merging worker (`consumer.merge.merger`), so its answers equal those of the run's own
tables. It is thread-safe.
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
    """A table's state at one moment: the next offset of each partition of its log, closed windows, gaps."""

    places: Mapping[int, Place]
    windows: tuple[ServedWindow, ...]
    gaps: Mapping[int, tuple[Gap, ...]]


class LiveTable:
    """The windows of a group's table, as far as its log was passed to `merge_message`.

    Querying it raises `NotReady` until `begin` has been called with its stream.
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
        """Its stream, once known."""
        return self._stream

    def waiting(self, what: str) -> None:
        """Set the reason why nothing is known of the table yet."""
        self._waiting = what

    def begin(
        self,
        stream: DescribedStream,
        places: Mapping[int, Place | None],
        inputs: Collection[Any],
        known_us: Mapping[int, int],
        delivery: DeliveryName = "exactly_once",
    ) -> None:
        """Begin, or continue, with a merger for each partition of the log at its offset (None: its
        beginning).

        `inputs` are the input partitions: no window closes before a delta of each has arrived. Windows that
        were emitted and deleted before an offset are missing here, except those that end by `known_us`.
        `delivery` is that of the run.
        """
        with self._lock:
            self._stream, self._schema = stream, schema_of(stream)
            for partition, place in places.items():
                merger = Merger(stream, inputs, delivery)
                if place is not None:
                    offset, state = place
                    known, emitted = read_state(state)
                    # Provisionally emitted windows are complete in the log, and are needed here.
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
        """Forget everything, to begin with another log."""
        with self._lock:
            self._forget()
            self._changed()

    def merge_message(self, partition: int, offset: int, value: bytes | None, headers: Any) -> None:
        """Fold in a message of the log. Raises `DeltaError` if it is damaged or out of order."""
        merger = self._mergers[partition]
        with self._lock:
            if merge_message(merger, self._gathers[partition], offset, value, headers) is None:
                return
            # Windows that only silence has closed may get more rows: they stay open here.
            while (groups := merger.due()) is not None and merger.final:
                self._kept.add_table(partition, groups.table)
                merger.mark_emitted()
            self._open[partition] = None
            self._changed()

    def add_closed(self, windows: Iterable[ServedWindow]) -> None:
        """Add closed windows from elsewhere than the log of deltas."""
        with self._lock:
            for window in windows:
                self._kept.add(window)
            self._changed()

    def update_lag(self, lag: int | None, stale: Stale | None = None) -> None:
        """Set the number of unread messages in the log, and whether it is followed; 0 makes it ready."""
        with self._lock:
            ready = self._ready or lag == 0
            if (lag, stale, ready) != (self._lag, self._stale, self._ready):
                status = ready, stale is None
                same = status == (self._ready, self._stale is None)
                self._lag, self._stale, self._ready, self._view = lag, stale, ready, None
                if not same:
                    self._changed()

    def known(self) -> KnownTable:
        """A consistent copy of everything that can be stored for a later server."""
        with self._lock:
            places = {partition: merger.restore_point() for partition, merger in self._mergers.items()}
            gaps = {partition: tuple(gaps) for partition, gaps in self._gaps.items()}
            return KnownTable(places, tuple(self._kept), gaps)

    def wanting(self) -> dict[int, tuple[int, int]]:
        """The spans of missing windows, by partition: after which end, and up to which, they are needed."""
        with self._lock:
            spans = {}
            for partition, gaps in self._gaps.items():
                until = max((gap.until for gap in gaps), default=EARLIEST)
                since = min((gap.since for gap in gaps), default=EARLIEST)
                if until > since:
                    spans[partition] = max(since, until - self._keep_us), until
            return spans

    def backfill(self, partition: int, table: pa.Table) -> None:
        """Add closed windows that the log no longer has; the missing span ends with the first of them."""
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
        """Add gaps that were known before."""
        with self._lock:
            for partition, more in gaps.items():
                self._gaps[partition] = [*self._gaps.get(partition, ()), *more]

    def view(self) -> TableView:
        """The current table. Raises `NotReady` while nothing is known of it."""
        with self._lock:
            if self._schema is None:
                raise NotReady(self._waiting)
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
            # Each partition of the log has the whole group's account.
            "account": None if account is None else account.to_dict(),
        }

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from any thread after each change; returns a function that ends this."""
        return self._watchers.add(changed)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

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
            why = "to free memory" if self._kept.for_room else "because they are older than --keep"
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
