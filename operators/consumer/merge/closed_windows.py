"""The closed windows of a run: in memory, then on disk; an endless run drops the oldest."""

from __future__ import annotations

import pyarrow as pa

from ...table.final import with_final
from ...table.window_groups import WindowGroups, as_few
from ...table.windows import declared_windows, not_covered
from .on_disk import on_disk

MEMORY_BYTES = 64 * 1024 * 1024
"""Memory limit for closed windows; beyond it, they go to a temporary file (in TMPDIR)."""

KEPT_BYTES = 1024 * 1024 * 1024
"""Limit for the windows of an endless run in memory and on disk; the oldest are dropped."""


_Key = tuple[int, object]
"""A partition of the table topic, and the start of the windows that it closed."""


class ClosedWindows:
    """The groups of closed windows, in the order they closed; a repeated window replaces the first.

    Groups stay as objects until the table is requested or they are moved to disk. Windows that closed
    together are stored together, as long as none of them can be here already. A session that is emitted
    again, longer, replaces the sessions of its keys that it covers. `most` is the number of windows to keep;
    None keeps all of them, whatever their size.

    >>> from ...table.schema import END, START
    >>> closed = ClosedWindows(pa.schema([(START, pa.int64()), (END, pa.int64())]), most=2)
    >>> for start in (1, 2, 3, 3):
    ...     closed.add(0, WindowGroups.of_table(pa.table({START: [start], END: [start + 1]})))
    >>> closed.table().to_pylist()
    [{'window_start': 2, 'window_end': 3}, {'window_start': 3, 'window_end': 4}]
    """

    def __init__(
        self,
        schema: pa.Schema,
        most: int | None,
        memory_bytes: int = MEMORY_BYTES,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._schema = schema
        self._most = most
        self._memory_bytes = memory_bytes
        self._kept_bytes = kept_bytes
        self._windows: dict[_Key, WindowGroups] = {}
        self._sizes: dict[_Key, int] = {}
        self._spilled: set[_Key] = set()
        self._many: dict[_Key, int] = {}
        self._latest: dict[int, int] = {}
        self._held = self._stored = self._added = self._count = 0
        windows = declared_windows(schema)
        self._merging = windows is not None and windows.merging
        self._loose = windows is not None and not windows.common_edges
        self._not_final: set[_Key] = set()

    def add(self, partition: int, groups: WindowGroups) -> None:
        """Add windows that a partition of the table topic has closed."""
        for part in self._replacing(partition, groups):
            self._add(partition, part)

    def _replacing(self, partition: int, groups: WindowGroups) -> list[WindowGroups]:
        """Divide windows so that they can replace stored ones: new ones together, others one by one."""
        if self._loose or not len(groups):
            return [groups]
        first, last = int(groups.starts[0]), int(groups.starts[-1])
        latest = self._latest.get(partition, first - 1)
        self._latest[partition] = max(last, latest)
        if first > latest:
            return [groups]
        if self._many:
            self._part_all()
        return groups.windows()

    def _part_all(self) -> None:
        """Store each window by itself, in the same order."""
        held, self._windows = self._windows, {}
        for key, groups in held.items():
            if key not in self._many:
                self._windows[key] = groups
                continue
            final, spilled = key not in self._not_final, key in self._spilled
            self._windows[key] = groups
            self._drop(key)
            for own, one in _each(key, groups):
                self._keep(own, one, final)
                if spilled:
                    self._held -= self._sizes[own]
                    self._stored += self._sizes[own]
                    self._spilled.add(own)

    def _add(self, partition: int, groups: WindowGroups) -> None:
        key = self._key(partition, groups)
        self._drop(key)
        if self._merging:
            for other, left in _without(self._windows, self._not_final, partition, groups).items():
                self._drop(other)
                self._keep(other, left, False)
        self._keep(key, groups.alone(), groups.final)
        if self._held > self._memory_bytes:
            self._spill()
        while self._most is not None and self._count > 1 and self._too_much(self._most):
            self._drop_oldest(self._most)

    def table(self, filling: list[tuple[int, pa.Table]] | None = None) -> pa.Table:
        """All windows as one table, in order, with the open ones in `filling`; windows on disk stay there."""
        windows = dict(self._windows)
        if self._many and (filling or len({partition for partition, _ in windows}) > 1):
            windows = dict(
                one for of in windows.items() for one in (_each(*of) if of[0] in self._many else [of])
            )
        for partition, table in filling or ():
            groups = WindowGroups.of_table(table)
            if self._merging:
                windows |= _without(windows, self._not_final, partition, groups)
            windows[self._key(partition, groups)] = groups
        if not windows:
            return self._schema.empty_table()
        ordered = (windows[key] for key in sorted(windows, key=lambda key: (key[1], key[0])))
        table = pa.concat_tables(groups.table for groups in as_few(ordered))
        return with_final(table, not filling and not self._not_final)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the groups in memory."""
        return self._held

    def _key(self, partition: int, groups: WindowGroups) -> _Key:
        first, end = int(groups.starts[0]), int(groups.ends[0])
        self._added += 1
        # Windows without common edges that closed together have no common start.
        return partition, (first, self._added if self._loose else end)

    def _keep(self, key: _Key, groups: WindowGroups, final: bool | None) -> None:
        if len(groups):
            self._windows[key] = groups
            self._sizes[key] = groups.nbytes
            self._held += self._sizes[key]
            self._count += 1
            if not self._loose and (count := len(groups.windows())) > 1:
                self._many[key] = count
                self._count += count - 1
            if not final:
                self._not_final.add(key)

    def _spill(self) -> None:
        """Move what is in memory to disk."""
        fresh = {key: groups.table for key, groups in self._windows.items() if key not in self._spilled}
        for key, table in on_disk(fresh).items():
            self._windows[key] = WindowGroups.of_table(table)
            self._sizes[key] = table.nbytes
            self._stored += table.nbytes
        self._spilled.update(fresh)
        self._held = 0

    def _too_much(self, most: int) -> bool:
        return self._count > most or self._held + self._stored > self._kept_bytes

    def _drop_oldest(self, most: int) -> None:
        """Drop the oldest window, or, from windows stored together, as many as exceed the limit."""
        key = next(iter(self._windows))
        count, groups = self._many.get(key, 1), self._windows[key]
        left = min(count - 1, most - (self._count - count))
        if left < 1:
            self._drop(key)
            return
        rest = groups.slice(len(groups) - sum(map(len, groups.windows()[-left:])), len(groups))
        freed = self._sizes[key] - rest.nbytes
        self._windows[key], self._sizes[key] = rest, rest.nbytes
        if key in self._spilled:
            self._stored -= freed
        else:
            self._held -= freed
        self._count -= count - left
        self._many[key] = left
        if left == 1:
            del self._many[key]

    def _drop(self, key: _Key) -> None:
        self._not_final.discard(key)
        if self._windows.pop(key, None) is None:
            return
        self._count -= self._many.pop(key, 1)
        if key in self._spilled:
            self._spilled.remove(key)
            self._stored -= self._sizes.pop(key)
        else:
            self._held -= self._sizes.pop(key)


def _each(key: _Key, groups: WindowGroups) -> list[tuple[_Key, WindowGroups]]:
    """Split windows that are stored together, with a key for each."""
    return [((key[0], (int(one.starts[0]), int(one.ends[0]))), one) for one in groups.windows()]


def _without(
    windows: dict[_Key, WindowGroups], chosen: set[_Key], partition: int, later: WindowGroups
) -> dict[_Key, WindowGroups]:
    """Those of a partition's `chosen` windows that lose sessions to later windows, with their rest."""
    remaining = {}
    for key in chosen:
        if key[0] == partition and key in windows:
            table = windows[key].table
            kept = not_covered(table, later.table)
            if not kept.all():
                remaining[key] = WindowGroups.of_table(table.filter(pa.array(kept)))
    return remaining
