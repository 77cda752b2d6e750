"""Sessions that may still get rows: partial sessions, put together as they close.

Partial sessions stay as they came, and only their times are looked at, until the watermark passes the end of
one, or until there are twice as many as when they were last put together: then those that belong together
(`sketching.sessions`) become one, sketches included. So a group's long session costs no merge a delta.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ....sketches.core.columns import as_array
from ....sketches.core.held import held_bytes
from ...definition.windows import EARLIEST, Session
from ...sketching.grouping import hash_keys
from ...sketching.sessions import Stretches
from ...table.schema import BARRIER, END, START, TIME_TYPE, aggregates_of, keys_of
from ...table.windows import edges
from ..log.state import LogState, Told
from .on_disk import on_disk
from .open_windows import Beginning, Due

_FEW = 10_000
_MOST_ORIGINS = 64
"""Places of the log that are remembered to begin again at: an earlier one than need be does no harm."""

_COLUMNS = ("h1", "h2", "first", "last", "barrier", "origin", "arrived", "chunk", "row")
"""What is known of each partial session: its keys' hash, its times, the offsets of its origin and its latest
delta, and where its sketches are."""


@dataclass(slots=True)
class _Ready:
    """The sessions that one step of the watermark closed for good."""

    due: Due
    origin: int


class SessionWindows:
    """The sessions of a partition of the table topic (see `OpenWindows`).

    Sessions are handed over by the step of the watermark that closes them, all in one table. Those that
    silence alone has closed are told for now when a part of them is new since they last were (`Told.quiet`),
    and once more when they close for good, so that who can't take a session back may wait for that.
    """

    def __init__(self, schema: pa.Schema, window: Session) -> None:
        self._schema = schema
        self._gap = window.gap_us
        self._window = window
        self._keys, self._aggregates = keys_of(schema), aggregates_of(schema)
        self._at = {name: np.empty(0, np.uint64 if name in ("h1", "h2") else np.int64) for name in _COLUMNS}
        self._fresh: list[dict[str, np.ndarray]] = []
        self._chunks: dict[int, pa.Table] = {}
        self._next_chunk = 0
        self._stored: set[int] = set()
        self._joined = 0
        self._origins: dict[int, LogState] = {}
        self._ready: deque[_Ready] = deque()
        self._closed = EARLIEST
        self._looked: tuple[int, int] | None = None

    def take(self, table: pa.Table, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """See `OpenWindows`."""
        starts, _ = edges(table)
        over = self._window.pane_starts(starts) + np.int64(2 * self._gap - 1)
        if (over <= closed_us).any():
            table = table.filter(pa.array(over > closed_us))
        rows = table.num_rows
        if not rows:
            return
        starts, ends = edges(table)
        h1, h2 = hash_keys([as_array(table.column(key)) for key in self._keys], rows)
        begin = self._remember(origin())
        chunk = self._keep(table.drop_columns([BARRIER]))
        self._fresh.append(
            {
                "h1": h1,
                "h2": h2,
                "first": starts,
                "last": ends - np.int64(self._gap),
                "barrier": np.maximum(table.column(BARRIER).to_numpy(), closed_us),
                "origin": np.full(rows, begin),
                "arrived": np.full(rows, offset),
                "chunk": np.full(rows, chunk),
                "row": np.arange(rows),
            }
        )
        self._looked = None
        if self._length() > 2 * self._joined + _FEW:
            self._join()

    def close(self, closed_us: int, told: Told) -> None:
        """See `OpenWindows`."""
        if closed_us <= self._closed:
            return
        self._closed = closed_us
        chosen, found, part = self._ended(closed_us)
        if not len(chosen):
            return
        closing = (found.last + np.int64(self._gap) <= closed_us)[part]
        if not closing.any():
            return
        self._looked = None
        at, numbers = chosen[closing], part[closing]
        if closed_us > told.until_us:
            table = self._made(at, numbers, found)
            due = Due(closed_us, True, lambda: table)
            self._ready.append(_Ready(due, int(self._at["origin"][at].min())))
        kept = np.ones(self._length(), bool)
        kept[at] = False
        self._at = {name: column[kept] for name, column in self._at.items()}
        self._joined = min(self._joined, self._length())
        self._forget()

    def due(self, due_us: int, told: Told) -> Due | None:
        """See `OpenWindows`."""
        if self._ready:
            return self._ready[0].due
        if due_us <= self._closed or self._looked == (due_us, told.quiet[1]):
            return None
        chosen, found, part = self._ended(due_us)
        ended = found.last + np.int64(self._gap) <= due_us
        now = (ended & self._untold(chosen, part, found, told))[part] if len(chosen) else np.empty(0, bool)
        if not now.any():
            self._looked = due_us, told.quiet[1]
            return None
        return Due(due_us, False, lambda: self._made(chosen[now], part[now], found))

    def note(self, due: Due, told: Told, position: int) -> None:
        """See `OpenWindows`."""
        if due.final:
            told.until_us = max(told.until_us, self._ready.popleft().due.end_us)
            self._forget()
        else:
            told.quiet = due.end_us, position

    def filling(self, told: Told, since: int = -1) -> list[pa.Table]:
        """See `OpenWindows`."""
        closed = [ready.due.table() for ready in self._ready]
        chosen = np.arange(self._length())
        if not len(chosen):
            return closed
        found, part = self._stretches(chosen).joined(self._gap)
        fresh = self._untold(chosen, part, found, told)
        if since >= 0:
            fresh &= self._arrived(chosen, part, found) >= since
        now = fresh[part]
        return closed + ([self._made(chosen[now], part[now], found)] if now.any() else [])

    def origins(self) -> Iterable[Beginning]:
        """See `OpenWindows`."""
        return [Beginning(offset, before) for offset, before in self._origins.items()]

    def held(self) -> tuple[int, int]:
        """See `OpenWindows`."""
        return self._length(), self._length()

    @property
    def nbytes(self) -> int:
        """See `OpenWindows`."""
        chunks = [table for chunk, table in self._chunks.items() if chunk not in self._stored]
        return held_bytes(self._at, self._fresh, chunks)

    def largest(self) -> list[tuple[str, int]]:
        """See `OpenWindows`."""
        if not self._length():
            return []
        begin, end = np.datetime64(int(self._at["first"].min()), "us"), int(self._at["last"].max())
        told = f"{self._length():,} parts of sessions with rows from {begin} to {np.datetime64(end, 'us')}"
        return [(told, self.nbytes)]

    def spill(self) -> None:
        """See `OpenWindows`."""
        self._join()
        self._chunks = on_disk(self._chunks)
        self._stored = set(self._chunks)

    def _length(self) -> int:
        """How many partial sessions there are, all of them in `_at`."""
        if self._fresh:
            parts = [self._at, *self._fresh]
            self._at = {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}
            self._fresh = []
        return len(self._at["h1"])

    def _keep(self, table: pa.Table) -> int:
        self._chunks[self._next_chunk] = table
        self._next_chunk += 1
        return self._next_chunk - 1

    def _remember(self, origin: Beginning) -> int:
        """Keep a place of the log to begin again at; gives the offset that stands for it."""
        if origin.offset not in self._origins:
            self._origins[origin.offset] = origin.before
            if len(self._origins) > _MOST_ORIGINS:
                self._length()
                kept = np.array(sorted(self._origins)[::2])
                column = self._at["origin"]
                self._at["origin"] = kept[np.searchsorted(kept, column, "right") - 1]
                for ready in self._ready:
                    ready.origin = int(kept[np.searchsorted(kept, ready.origin, "right") - 1])
                self._origins = {int(offset): self._origins[int(offset)] for offset in kept}
        return max(offset for offset in self._origins if offset <= origin.offset)

    def _forget(self) -> None:
        """Drop sketches and origins that no session needs any more."""
        self._length()
        chunks = set(np.unique(self._at["chunk"]).tolist())
        self._chunks = {chunk: table for chunk, table in self._chunks.items() if chunk in chunks}
        needed = {ready.origin for ready in self._ready} | set(np.unique(self._at["origin"]).tolist())
        self._origins = {offset: before for offset, before in self._origins.items() if offset in needed}

    def _stretches(self, chosen: np.ndarray) -> Stretches:
        """Some partial sessions, with their groups numbered."""
        h1, h2 = self._at["h1"][chosen], self._at["h2"][chosen]
        order = np.lexsort((h2, h1))
        new = np.concatenate([[True], (np.diff(h1[order]) != 0) | (np.diff(h2[order]) != 0)])
        own = np.empty(len(chosen), np.int64)
        own[order] = np.cumsum(new[: len(chosen)])
        return Stretches(own, *(self._at[name][chosen] for name in ("first", "last", "barrier")))

    def _ended(self, until_us: int) -> tuple[np.ndarray, Stretches, np.ndarray]:
        """The partial sessions of groups with one that ends by a time; what belongs together, and where."""
        if not self._length():
            return np.empty(0, np.int64), Stretches.none(), np.empty(0, np.int64)
        ended = self._at["last"] + np.int64(self._gap) <= until_us
        if not ended.any():
            return np.empty(0, np.int64), Stretches.none(), np.empty(0, np.int64)
        chosen = np.flatnonzero(np.isin(self._at["h1"], self._at["h1"][ended]))
        return chosen, *self._stretches(chosen).joined(self._gap)

    def _untold(self, at: np.ndarray, part: np.ndarray, found: Stretches, told: Told) -> np.ndarray:
        """Which sessions were not handed over as they are now, when silence closed them."""
        until_us, position = told.quiet
        arrived = self._arrived(at, part, found)
        return (found.last + np.int64(self._gap) > until_us) | (arrived >= position)

    def _arrived(self, at: np.ndarray, part: np.ndarray, found: Stretches) -> np.ndarray:
        """The offset of the latest delta of each session."""
        arrived = np.full(len(found), -1)
        np.maximum.at(arrived, part, self._at["arrived"][at])
        return arrived

    def _made(self, at: np.ndarray, part: np.ndarray, found: Stretches) -> pa.Table:
        """The table of some sessions, ordered by window and keys."""
        table = self._merged(at, part, found)
        return table.sort_by([(name, "ascending") for name in [START, END, *self._keys]])

    def _merged(self, at: np.ndarray, part: np.ndarray, found: Stretches) -> pa.Table:
        """Partial sessions as one for each that belong together, in the order of `found`."""
        chosen, numbers = np.unique(part, return_inverse=True)
        firsts = np.full(len(chosen), len(at))
        np.minimum.at(firsts, numbers, np.arange(len(at)))
        rows = self._rows(at)
        starts, ends = found.first[chosen], found.last[chosen] + np.int64(self._gap)
        columns = [pa.array(time, pa.int64()).view(TIME_TYPE) for time in (starts, ends)]
        columns += [as_array(rows.column(key)).take(pa.array(firsts)) for key in self._keys]
        for name, asked in self._aggregates.items():
            if len(chosen) == len(at):
                columns.append(as_array(rows.column(name)).take(pa.array(firsts)))
                continue
            groups = asked.groups(len(chosen), seed=int(starts[0]) & 0xFFFF_FFFF)
            groups.merge(numbers, as_array(rows.column(name)))
            columns.append(groups.to_arrow())
        fields = zip(columns, self._schema.types)
        cast = [column.cast(kind) if column.type != kind else column for column, kind in fields]
        return pa.Table.from_arrays(cast, schema=self._schema)

    def _rows(self, at: np.ndarray) -> pa.Table:
        """The sketches of some partial sessions, in their order."""
        chunk, row = self._at["chunk"][at], self._at["row"][at]
        order = np.argsort(chunk, kind="stable")
        parts = [
            self._chunks[int(number)].take(pa.array(row[order[chunk[order] == number]]))
            for number in np.unique(chunk)
        ]
        table = pa.concat_tables(parts).combine_chunks() if parts else self._schema.empty_table()
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return table.take(pa.array(back))

    def _join(self) -> None:
        """Put together what belongs together, as far as it is here."""
        everything = np.arange(self._length())
        if not len(everything):
            return
        found, part = self._stretches(everything).joined(self._gap)
        table = self._merged(everything, part, found)
        firsts = np.full(len(found), len(part))
        np.minimum.at(firsts, part, everything)
        joined = {name: column[firsts] for name, column in self._at.items()}
        for name, ufunc in (("origin", np.minimum), ("arrived", np.maximum)):
            ufunc.at(joined[name], part, self._at[name])
        self._chunks = {}
        joined |= {"first": found.first, "last": found.last, "barrier": found.barrier}
        joined |= {"chunk": np.full(len(found), self._keep(table)), "row": np.arange(len(found))}
        self._at, self._joined = joined, len(found)
