"""Sessions that may still get rows: partial sessions, put together as they close.

Partial sessions stay as they came, and only their times are looked at, until the watermark passes the end of
one, or until there are twice as many as when they were last put together: then those that belong together
(`sketching.sessions`) become one, sketches included. So a group's long session costs no merge a delta.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ....sketches.core.columns import as_array
from ...definition.windows import EARLIEST, Session
from ...sketching.delta import Delta
from ...sketching.grouping import hash_keys
from ...sketching.sessions import Stretches
from ...table.schema import BARRIER, END, START
from ...table.windows import edges
from ..log.state import Told
from .open_windows import Beginning, Due
from .parted_windows import PartedWindows

_KNOWN = {"h1": np.uint64, "h2": np.uint64, "first": np.int64, "last": np.int64, "barrier": np.int64}
"""What is known of each partial session: its keys' hash, and its times."""


class SessionWindows(PartedWindows):
    """The sessions of a partition of the table topic (see `OpenWindows`).

    Sessions are handed over by the step of the watermark that closes them, all in one table. Those that
    silence alone has closed are told for now when a part of them is new since they last were (`Told.quiet`),
    and once more when they close for good, so that who can't take a session back may wait for that.
    """

    def __init__(self, schema: pa.Schema, window: Session) -> None:
        super().__init__(schema, _KNOWN)
        self._gap = window.gap_us
        self._window = window
        self._closed = EARLIEST
        self._looked: tuple[int, int] | None = None

    def take(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
        """See `OpenWindows`."""
        table = delta.table
        assert table is not None
        starts, _ = edges(table)
        over = self._window.pane_starts(starts) + np.int64(2 * self._gap - 1)
        if (over <= closed_us).any():
            table = table.filter(pa.array(over > closed_us))
        rows = table.num_rows
        if not rows:
            return
        starts, ends = edges(table)
        h1, h2 = hash_keys([as_array(table.column(key)) for key in self._parts.keys], rows)
        known = {
            "h1": h1,
            "h2": h2,
            "first": starts,
            "last": ends - np.int64(self._gap),
            "barrier": np.maximum(table.column(BARRIER).to_numpy(), closed_us),
        }
        self._add(known, table.drop_columns([BARRIER]), origin, offset)
        self._looked = None
        if self._many:
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
            self._set_aside(due, at)
        self._drop(at)

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
            self._handed_over(told)
        else:
            told.quiet = due.end_us, position

    def filling(self, told: Told, since: int = -1) -> list[pa.Table]:
        """See `OpenWindows`."""
        closed = [ready.due.table() for ready in self._ready]
        chosen = np.arange(len(self._parts))
        if not len(chosen):
            return closed
        found, part = self._stretches(chosen).joined(self._gap)
        fresh = self._untold(chosen, part, found, told)
        if since >= 0:
            fresh &= self._arrived(chosen, part, found) >= since
        now = fresh[part]
        return closed + ([self._made(chosen[now], part[now], found)] if now.any() else [])

    def largest(self) -> list[tuple[str, int]]:
        """See `OpenWindows`."""
        count = len(self._parts)
        if not count:
            return []
        at = self._parts.at
        begin, end = np.datetime64(int(at["first"].min()), "us"), int(at["last"].max())
        told = f"{count:,} parts of sessions with rows from {begin} to {np.datetime64(end, 'us')}"
        return [(told, self.nbytes)]

    def spill(self) -> None:
        """See `OpenWindows`."""
        self._join()
        super().spill()

    def _stretches(self, chosen: np.ndarray) -> Stretches:
        """Some partial sessions, with their groups numbered."""
        at = self._parts.at
        h1, h2 = at["h1"][chosen], at["h2"][chosen]
        order = np.lexsort((h2, h1))
        new = np.concatenate([[True], (np.diff(h1[order]) != 0) | (np.diff(h2[order]) != 0)])
        own = np.empty(len(chosen), np.int64)
        own[order] = np.cumsum(new[: len(chosen)])
        return Stretches(own, *(at[name][chosen] for name in ("first", "last", "barrier")))

    def _ended(self, until_us: int) -> tuple[np.ndarray, Stretches, np.ndarray]:
        """The partial sessions of groups with one that ends by a time; what belongs together, and where."""
        if not len(self._parts):
            return np.empty(0, np.int64), Stretches.none(), np.empty(0, np.int64)
        at = self._parts.at
        ended = at["last"] + np.int64(self._gap) <= until_us
        if not ended.any():
            return np.empty(0, np.int64), Stretches.none(), np.empty(0, np.int64)
        chosen = np.flatnonzero(np.isin(at["h1"], at["h1"][ended]))
        return chosen, *self._stretches(chosen).joined(self._gap)

    def _untold(self, at: np.ndarray, part: np.ndarray, found: Stretches, told: Told) -> np.ndarray:
        """Which sessions were not handed over as they are now, when silence closed them."""
        until_us, position = told.quiet
        arrived = self._arrived(at, part, found)
        return (found.last + np.int64(self._gap) > until_us) | (arrived >= position)

    def _arrived(self, at: np.ndarray, part: np.ndarray, found: Stretches) -> np.ndarray:
        """The offset of the latest delta of each session."""
        arrived = np.full(len(found), -1)
        np.maximum.at(arrived, part, self._parts.at["arrived"][at])
        return arrived

    def _made(self, at: np.ndarray, part: np.ndarray, found: Stretches) -> pa.Table:
        """The table of some sessions, ordered by window and keys."""
        table = self._merged(at, part, found)
        return table.sort_by([(name, "ascending") for name in [START, END, *self._parts.keys]])

    def _merged(self, at: np.ndarray, part: np.ndarray, found: Stretches) -> pa.Table:
        """Partial sessions as one for each that belong together, in the order of `found`."""
        return self._parts.merged(at, part, found.first, found.last + np.int64(self._gap))

    def _join(self) -> None:
        """Put together what belongs together, as far as it is here."""
        everything = np.arange(len(self._parts))
        if not len(everything):
            return
        found, part = self._stretches(everything).joined(self._gap)
        table = self._merged(everything, part, found)
        known = {"first": found.first, "last": found.last, "barrier": found.barrier}
        self._parts.put_together(part, table, known)
