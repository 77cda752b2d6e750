"""Sessions that may still get rows: partial sessions, merged as they close.

Partial sessions stay as they came, and only their times are examined, until the watermark passes the end of
a session, or until there are twice as many as after the last merge: then those that belong together (`rows`)
are merged, sketches included. So a group's long session doesn't cost a merge per delta.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ....sketches.core.columns.columns import as_array
from ...grouping.group_index import hash_keys
from ...grouping.key_index import KeyIndex
from ...sketching.delta import Delta
from ...sketching.session_rows import Stretches
from ...table.schema import BARRIER, END, START
from ...table.window_groups import WindowGroups
from ...table.windows import edges
from ...windows.session import Session
from ...windows.window import EARLIEST
from ..log.merger_state import EmittedWindows
from .open_windows import Beginning, Due
from .partial_windows_base import PartialWindowsBase

_KNOWN = {"h1": np.uint64, "h2": np.uint64, "first": np.int64, "last": np.int64, "barrier": np.int64}
"""The columns of a partial session: the hash of the keys that define sessions, and its times."""
_GROUP = {"k1": np.uint64, "k2": np.uint64}
"""The hash of all keys, if only some of them define sessions."""


class OpenSession(PartialWindowsBase):
    """The sessions of a partition of the table topic (see `OpenWindows`).

    Sessions are emitted when the watermark advances and closes them, all in one table. Those that only
    silence has closed are emitted provisionally when they have new parts (`EmittedWindows.idle_sessions`). If
    the merger `confirms`, they are emitted once more when they close for good, for sinks that can't recall a
    session.
    """

    def __init__(self, schema: pa.Schema, window: Session, confirms: bool = False) -> None:
        super().__init__(schema, _KNOWN if window.by is None else {**_KNOWN, **_GROUP})
        self._gap = window.gap_us
        self._window = window
        self._closed = EARLIEST
        self._last_due: tuple[int, int] | None = None

    def merge(self, delta: Delta, origin: Callable[[], Beginning], offset: int, closed_us: int) -> None:
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
        keys = {key: as_array(table.column(key)) for key in self._parts.keys}
        by = self._window.by
        h1, h2 = hash_keys(list(keys.values()) if by is None else [keys[key] for key in by], rows)
        known = {
            "h1": h1,
            "h2": h2,
            "first": starts,
            "last": ends - np.int64(self._gap),
            "barrier": np.maximum(table.column(BARRIER).to_numpy(), closed_us + 1),
        }
        if by is not None:
            known |= dict(zip(_GROUP, hash_keys(list(keys.values()), rows)))
        self._add(known, table.drop_columns([BARRIER]), origin, offset)
        self._last_due = None
        if self._many:
            self._join()

    def close(self, closed_us: int, emitted: EmittedWindows) -> None:
        """See `OpenWindows`."""
        if closed_us <= self._closed:
            return
        self._closed = closed_us
        chosen, sessions, part = self._ended(closed_us)
        if not len(chosen):
            return
        closing = (sessions.last + np.int64(self._gap) <= closed_us)[part]
        if not closing.any():
            return
        self._last_due = None
        at, numbers = chosen[closing], part[closing]
        if closed_us > emitted.until_us:
            table = self._session_table(at, numbers, sessions)
            due = Due(closed_us, True, lambda: WindowGroups.of_table(table))
            self._add_ready(due, at)
        self._drop(at)

    def due(self, due_us: int, emitted: EmittedWindows) -> Due | None:
        """See `OpenWindows`."""
        if self._ready:
            return self._ready[0].due
        if due_us <= self._closed or self._last_due == (due_us, emitted.idle_sessions[1]):
            return None
        chosen, sessions, part = self._ended(due_us)
        ended = sessions.last + np.int64(self._gap) <= due_us
        now = (
            (ended & self._unemitted(chosen, part, sessions, emitted))[part]
            if len(chosen)
            else np.empty(0, bool)
        )
        if not now.any():
            self._last_due = due_us, emitted.idle_sessions[1]
            return None
        return Due(
            due_us,
            False,
            lambda: WindowGroups.of_table(self._session_table(chosen[now], part[now], sessions)),
        )

    def mark_emitted(self, due: Due, emitted: EmittedWindows, position: int) -> None:
        """See `OpenWindows`."""
        if due.final:
            self._mark_first_emitted(emitted)
        else:
            emitted.idle_sessions = due.end_us, position

    def open_tables(self, emitted: EmittedWindows, since: int = -1) -> list[pa.Table]:
        """See `OpenWindows`."""
        closed = [ready.due.groups().table for ready in self._ready]
        chosen = np.arange(len(self._parts))
        if not len(chosen):
            return closed
        sessions, part = self._stretches(chosen).joined(self._gap)
        fresh = self._unemitted(chosen, part, sessions, emitted)
        if since >= 0:
            fresh &= self._arrived(chosen, part, sessions) >= since
        now = fresh[part]
        return closed + ([self._session_table(chosen[now], part[now], sessions)] if now.any() else [])

    def largest(self) -> list[tuple[str, int]]:
        """See `OpenWindows`."""
        count = len(self._parts)
        if not count:
            return []
        at = self._parts.at
        begin, end = np.datetime64(int(at["first"].min()), "us"), int(at["last"].max())
        description = f"{count:,} parts of sessions with rows from {begin} to {np.datetime64(end, 'us')}"
        return [(description, self.nbytes)]

    def spill(self) -> None:
        """See `OpenWindows`."""
        self._join()
        super().spill()

    def _stretches(self, chosen: np.ndarray) -> Stretches:
        """Some partial sessions, with numbers for the keys that have sessions of their own."""
        at = self._parts.at
        h1, h2 = at["h1"][chosen], at["h2"][chosen]
        own, _ = KeyIndex().number(h1, h2)
        return Stretches(own, *(at[name][chosen] for name in ("first", "last", "barrier")))

    def _ended(self, until_us: int) -> tuple[np.ndarray, Stretches, np.ndarray]:
        """The partial sessions of keys with one that ends by `until_us`; their sessions; which each is in."""
        if not len(self._parts):
            return np.empty(0, np.int64), Stretches.none(), np.empty(0, np.int64)
        at = self._parts.at
        ended = at["last"] + np.int64(self._gap) <= until_us
        if not ended.any():
            return np.empty(0, np.int64), Stretches.none(), np.empty(0, np.int64)
        chosen = np.flatnonzero(np.isin(at["h1"], at["h1"][ended]))
        return chosen, *self._stretches(chosen).joined(self._gap)

    def _unemitted(
        self, at: np.ndarray, part: np.ndarray, sessions: Stretches, emitted: EmittedWindows
    ) -> np.ndarray:
        """Which sessions were not emitted in their current form when silence closed them."""
        until_us, position = emitted.idle_sessions
        arrived = self._arrived(at, part, sessions)
        return (sessions.last + np.int64(self._gap) > until_us) | (arrived >= position)

    def _arrived(self, at: np.ndarray, part: np.ndarray, sessions: Stretches) -> np.ndarray:
        """The offset of the latest delta of each session."""
        arrived = np.full(len(sessions), -1)
        np.maximum.at(arrived, part, self._parts.at["arrived"][at])
        return arrived

    def _session_table(self, at: np.ndarray, part: np.ndarray, sessions: Stretches) -> pa.Table:
        """The table of some sessions, ordered by window and keys."""
        table, _, _ = self._merged(at, part, sessions)
        return table.sort_by([(name, "ascending") for name in [START, END, *self._parts.keys]])

    def _merged(
        self, at: np.ndarray, part: np.ndarray, sessions: Stretches
    ) -> tuple[pa.Table, np.ndarray, np.ndarray]:
        """One row per session and group, which row each partial session is in, and each row's session."""
        if self._window.by is None:
            row, session = part, np.arange(len(sessions))
        else:
            k1, k2 = (self._parts.at[name][at] for name in _GROUP)
            order = np.lexsort((k2, k1, part))
            new = np.any([np.diff(one[order]) != 0 for one in (part, k1, k2)], axis=0)
            row = np.empty(len(at), np.int64)
            row[order] = np.cumsum(np.concatenate([[0], new]))
            session = part[order][np.flatnonzero(np.concatenate([[True], new]))]
        starts, ends = sessions.first[session], sessions.last[session] + np.int64(self._gap)
        return self._parts.merged(at, row, starts, ends), row, session

    def _join(self) -> None:
        """Merge the partial sessions that belong together so far."""
        everything = np.arange(len(self._parts))
        if not len(everything):
            return
        sessions, part = self._stretches(everything).joined(self._gap)
        table, row, session = self._merged(everything, part, sessions)
        known = {name: getattr(sessions, name)[session] for name in ("first", "last", "barrier")}
        self._parts.compact(row, table, known)
