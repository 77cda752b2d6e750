"""The JSON kernel's output as Arrow columns: strings without a copy, and times parsed from strings."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..messages import Messages
from ..reasons import Reason
from ..text.values import as_times
from .rows import SKIP_WORDS, SKIPS_KEPT, parse
from .scanner import DEEPEST
from .schema import (
    BOOL,
    DOUBLE,
    ENDS,
    POOL,
    POOL_PRESENT,
    PRESENT,
    RAW,
    STARTS,
    STRING,
    STRUCT,
    TOP,
    UINT,
    VALUES,
    Layout,
    Node,
)
from .values import ABSENT, BASE, LATER, LIMIT, OPEN, SKIPS, STACK, STATE_WORDS, TEXT, TEXT_TOP

_NUMBER = re.compile(rb"-?[0-9.eE+-]+")


class Columns:
    """A parsed batch. `rows` are the good messages; each of `refused` has a message's number, the reason, the
    position of the fault and the node. `late` maps the number of a good row to a reason if a value turns out
    to be invalid only when `column` converts it to a time or a double.
    """

    def __init__(self, layout: Layout, messages: Messages) -> None:
        n, nodes, size = len(messages), len(layout.nodes), messages.lines.size
        self._layout = layout
        self._nodes = layout.nodes
        self._lines = messages.lines
        # The operating system provides memory only for the parts that are written.
        self._present = np.zeros((nodes, n), np.uint8)
        self._views = np.zeros((layout.strings, n, 2), np.int64)
        self._numbers = np.zeros((layout.numbers, n), np.int64)
        self._starts, self._ends = np.zeros((2, layout.lists, n), np.int64)
        self._pool = np.empty((layout.lists, size // 2 + 1, 2), np.int64)
        self._pool_present = np.empty((layout.lists, size // 2 + 1), np.uint8)
        self._table = layout.table.copy()
        self._point()
        text, stack, open_objects, skips = (
            np.empty(size, np.uint8),
            np.empty(DEEPEST, np.uint8),
            np.empty(nodes, np.int64),
            np.zeros((SKIPS_KEPT, SKIP_WORDS), np.int64),
        )
        state = np.zeros(STATE_WORDS, np.int64)
        state[[BASE, LIMIT]] = messages.lines.ctypes.data, messages.lines.ctypes.data + size
        state[[TEXT, TEXT_TOP]] = text.ctypes.data
        state[[STACK, OPEN, SKIPS]] = stack.ctypes.data, open_objects.ctypes.data, skips.ctypes.data
        row, refused = np.empty(n, np.int64), np.empty((n, 4), np.int64)
        self._good, bad = parse(
            messages.starts,
            messages.ends,
            messages.is_null,
            nodes,
            nodes if layout.lists else 0,
            self._table.ctypes.data,
            state.ctypes.data,
            row,
            refused,
        )
        self.rows, self.refused = row[: self._good], refused[:bad]
        self._buffers = [pa.py_buffer(messages.lines), pa.py_buffer(text[: state[TEXT_TOP] - state[TEXT]])]
        self.late: dict[int, str] = {}

    def _point(self) -> None:
        """Write the addresses of the cells into the kernel's table."""
        for at, (row, node) in enumerate(zip(self._table, self._nodes)):
            row[PRESENT] = self._present[at].ctypes.data
            if node.is_list:
                row[STARTS], row[ENDS] = (
                    self._starts[node.slot].ctypes.data,
                    self._ends[node.slot].ctypes.data,
                )
                row[POOL] = self._pool[node.slot].ctypes.data
                row[POOL_PRESENT] = self._pool_present[node.slot].ctypes.data
            elif node.kind != STRUCT:
                cells = self._views if node.kind in (STRING, RAW) else self._numbers
                row[VALUES] = cells[node.slot].ctypes.data

    def column(self, at: int) -> pa.Array:
        """The column for a node."""
        node = self._nodes[at]
        present = self._present[at, : self._good]
        if node.is_list:
            return self._list(node, int(self._table[at, TOP]), present)
        if node.kind == STRUCT:
            return self._struct(node, present)
        if node.kind in (STRING, RAW):
            views = self._views[node.slot, : self._good]
            return self._finished(node, node.dtype, self._strings(node.kind, views, present))
        numbers = self._numbers[node.slot, : self._good]
        if node.kind == DOUBLE:
            self._read_late(node, numbers, present, np.arange(self._good))
        return self._finished(node, node.dtype, _numbers(node.kind, numbers, present))

    def _struct(self, node: Node, present: np.ndarray) -> pa.Array:
        children = [self.column(at) for at in node.children]
        names = [self._nodes[at].name for at in node.children]
        mask = pa.array(present == ABSENT) if (present == ABSENT).any() else None
        if not children:
            kind = pa.struct([])
            return pa.array([None if p == ABSENT else {} for p in present.tolist()], kind)
        fields = [pa.field(name, child.type) for name, child in zip(names, children)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)

    def _list(self, node: Node, fill: int, present: np.ndarray) -> pa.Array:
        slot = node.slot
        there = present != ABSENT
        ends = np.zeros(self._good + 1, np.int64)
        np.maximum.accumulate(np.where(there, self._ends[slot, : self._good], 0), out=ends[1:])
        pool, pool_present = self._pool[slot, :fill], self._pool_present[slot, :fill]
        inner: Any = node.dtype.inner  # type: ignore[attr-defined]
        if node.kind in (STRING, RAW):
            elements = self._strings(node.kind, pool, pool_present)
        else:
            numbers = np.ascontiguousarray(pool[:, 0])
            if node.kind == DOUBLE:
                owner = np.searchsorted(ends[1:], np.arange(fill), side="right")
                self._read_late(node, numbers, pool_present, owner)
            elements = _numbers(node.kind, numbers, pool_present)
        elements = self._finished(node, inner, elements)
        mask = None if there.all() else pa.array(~there)
        return pa.LargeListArray.from_arrays(pa.array(ends), elements, mask=mask)

    def _strings(self, kind: int, views: np.ndarray, present: np.ndarray) -> pa.Array:
        arrow = pa.string_view() if kind == STRING else pa.binary_view()
        nulls, valid = _validity(present)
        buffers = [valid, pa.py_buffer(views), *self._buffers]
        return pa.Array.from_buffers(arrow, len(views), buffers, null_count=nulls)

    def _read_late(self, node: Node, numbers: np.ndarray, present: np.ndarray, rows: np.ndarray) -> None:
        """Parse, with Python, doubles with too many digits, or too large, for simple rounding."""
        late = np.flatnonzero(present == LATER)
        text = memoryview(self._lines)  # type: ignore[arg-type]
        for i, at in zip(late.tolist(), numbers[late].tolist()):
            match = _NUMBER.match(text, at)
            value = float(match[0]) if match else float("nan")
            numbers[i] = np.float64(value).view(np.int64)
            if not np.isfinite(value):
                shown = match[0][:40].decode() if match else ""
                path = self._path(node)
                reason = f'"{path}" is {shown}, out of the range of Float64'
                self.late.setdefault(int(rows[i]), Reason(f'"{path}" is out of the range of Float64', reason))

    def _path(self, node: Node) -> str:
        return self._layout.path(self._nodes.index(node))

    def _finished(self, node: Node, dtype: Any, column: pa.Array) -> pa.Array:
        """Cast to the requested type: narrower numbers, times."""
        if dtype in (pl.String, pl.Binary, pl.Int64, pl.UInt64, pl.Float64, pl.Boolean):
            return column
        series = pl.from_arrow(column)
        assert isinstance(series, pl.Series)
        if not dtype.is_temporal():
            return series.cast(dtype).to_arrow()
        parsed = as_times(series, dtype)
        unread = (parsed.is_null() & series.is_not_null()).to_numpy()
        for row in np.flatnonzero(unread).tolist():
            path = self._path(node)
            text = f'"{path}" is {series[row][:60]!r}, not {dtype} in ISO 8601'
            self.late.setdefault(row, Reason(f'"{path}" is not {dtype} in ISO 8601', text))
        return parsed.to_arrow()


def _numbers(kind: int, numbers: np.ndarray, present: np.ndarray) -> pa.Array:
    nulls, valid = _validity(present)
    if kind == BOOL:
        return pa.array(numbers != 0, mask=(present == ABSENT) if nulls else None)
    arrow = {DOUBLE: pa.float64(), UINT: pa.uint64()}.get(kind, pa.int64())
    return pa.Array.from_buffers(arrow, len(numbers), [valid, pa.py_buffer(numbers)], null_count=nulls)


def _validity(present: np.ndarray) -> tuple[int, pa.Buffer | None]:
    nulls = int(np.count_nonzero(present == ABSENT))
    if not nulls:
        return 0, None
    return nulls, pa.py_buffer(np.packbits(present != ABSENT, bitorder="little"))
