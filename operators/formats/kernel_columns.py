"""What kernels that read many flat messages share: memory for cells, columns of these, and rows in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from .decode import Decoded
from .messages import Messages

_MOST_BYTES = (1 << 31) - 1
"""Views have offsets of 31 bits."""


def words_of(dtype: pa.DataType) -> int:
    """The number of 8-byte words of a cell: two for a view of a string or bytes."""
    return 2 if pa.types.is_string(dtype) or pa.types.is_binary(dtype) else 1


def column(dtype: pa.DataType, cells: np.ndarray, present: np.ndarray, lines: np.ndarray) -> pa.Array:
    """The cells of a column (int64), of which `present` are not null, as an array.

    Views of strings and bytes point into `lines`. Nothing is copied if Arrow has the same layout.
    """
    n = len(present)
    nulls = n - int(np.count_nonzero(present))
    if pa.types.is_boolean(dtype):
        return pa.array(cells[:n] != 0, mask=present == 0 if nulls else None)
    valid = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    values = cells[: words_of(dtype) * n]
    buffers = [valid, pa.py_buffer(values)]
    if words_of(dtype) == 2:
        dtype = pa.string_view() if pa.types.is_string(dtype) else pa.binary_view()
        buffers.append(pa.py_buffer(lines))
    elif dtype.bit_width == 32:
        buffers[1] = pa.py_buffer(values.astype(np.int32))
    return pa.Array.from_buffers(dtype, n, buffers, null_count=nulls)


class Scanned(NamedTuple):
    """What a kernel has read: the cells of each column, with a byte per row that is 0 for null.

    `rows` are the numbers of the rows' messages, `doubtful` those of the messages that it didn't accept.
    """

    columns: dict[str, tuple[np.ndarray, np.ndarray]]
    rows: np.ndarray
    doubtful: np.ndarray


def scanned(
    kernel: Callable[..., tuple[int, int]],
    table: np.ndarray,
    columns: Mapping[str, tuple[int, int]],
    messages: Messages,
    numbers: np.ndarray,
    begin: int,
) -> Scanned:
    """Read some messages from byte `begin` on by a kernel, `avro.scan.scan` or `protobuf.scan.scan`.

    `table` has a row for each field. The last two words in it are the addresses of the column's cells and of
    its bytes for null; they are set in a copy. `columns` have a field each, and the number of 8-byte words of
    a cell. All messages are doubtful if they are larger than views can point to.
    """
    too_large = messages.lines.size > _MOST_BYTES
    doubtful, numbers = (numbers, numbers[:0]) if too_large else (numbers[:0], numbers)
    n, table, base = len(numbers), table.copy(), messages.lines.ctypes.data
    cells = {name: np.empty(n * words, np.int64) for name, (_, words) in columns.items()}
    present = dict(zip(columns, np.empty((len(columns), n), np.uint8)))
    for name, (field, _) in columns.items():
        table[field, -2:] = cells[name].ctypes.data, present[name].ctypes.data
    rows, doubted = np.empty((2, n), np.int64)
    good, bad = kernel(
        messages.starts, messages.ends, numbers, begin, len(table), table.ctypes.data, base,
        base + messages.lines.size, rows, doubted,
    )  # fmt: skip
    made = {name: (cells[name], present[name][:good]) for name in columns}
    return Scanned(made, rows[:good], np.concatenate([doubtful, doubted[:bad]]))


def together(
    messages: Messages,
    batches: Sequence[tuple[pl.DataFrame, np.ndarray]],
    rest: np.ndarray,
    read_each: Callable[[Messages], Decoded],
) -> Decoded:
    """All rows in the order of the messages: those of `batches`, and those that `read_each` reads one by one.

    Each batch has the numbers of its messages; `rest` has the numbers of all others.
    """
    if not batches:
        return read_each(messages)
    others = read_each(messages.select(rest)) if rest.size else None
    frames, rows = [frame for frame, _ in batches], [numbers for _, numbers in batches]
    if others is not None and others.frame.height:
        frames.append(others.frame)
        rows.append(rest if others.rows is None else rest[others.rows])
    frame, numbers = frames[0], rows[0]
    if len(frames) > 1:
        numbers = np.concatenate(rows)
        order = np.argsort(numbers)
        frame, numbers = pl.concat(frames)[order], numbers[order]
    if others is None or not others.refused.size:
        return Decoded(frame)
    return Decoded(frame, numbers, rest[others.refused], others.reasons)
