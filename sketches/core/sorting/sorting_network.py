"""Sorting networks in vector registers, with which the kernels of KLL and REQ sort, thin and merge.

They are written in LLVM vectors of eight items, which compile to the machine's vectors of any size: no loops,
no branches, no detour through memory. Nothing here checks bounds; the calling kernels do.

Source: Batcher, "Sorting Networks and Their Applications", AFIPS 1968 (odd-even merge sort, bitonic merge).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic
from numba.np import arrayobj

COLUMNS, ROWS = 8, 32
CHUNK = 64
"""The number of items sorted or merged at once."""


def _comparators(n: int) -> list[tuple[int, int]]:
    """Return the pairs that an odd-even merge sort of `n` items (a power of two) compares, in order.

    >>> len(_comparators(32))
    191
    """
    pairs = []
    run = 1
    while run < n:
        step = run
        while step:
            for first in range(step % run, n - step, 2 * step):
                for i in range(first, min(first + step, n - step)):
                    if i // (2 * run) == (i + step) // (2 * run):
                        pairs.append((i, i + step))
            step //= 2
        run *= 2
    return pairs


class _Network:
    """Operations on rows of vectors in registers; each lane is a column."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.builder = builder
        item = signature.args[0].dtype
        self.kind = context.get_value_type(item)
        self.size = context.get_abi_sizeof(self.kind)
        self.less = builder.fcmp_ordered if isinstance(item, types.Float) else builder.icmp_signed
        self.args = args
        self.data = [
            arrayobj.make_array(kind)(context, builder, array).data if isinstance(kind, types.Array) else None
            for kind, array in zip(signature.args, args)
        ]

    def order(self, a: Any, b: Any) -> tuple[Any, Any]:
        first = self.less("<", a, b)
        return self.builder.select(first, a, b), self.builder.select(first, b, a)

    def place(self, array: int, row: int, lanes: int) -> Any:
        first = self.builder.bitcast(self.data[array], ir.VectorType(self.kind, lanes).as_pointer())
        return self.builder.gep(first, [ir.IntType(32)(row)])

    def load(self, array: int, rows: int) -> list[Any]:
        return [self.builder.load(self.place(array, r, COLUMNS), align=self.size) for r in range(rows)]

    def sort(self, rows: list[Any]) -> None:
        """Sort every column."""
        for i, j in _comparators(len(rows)):
            rows[i], rows[j] = self.order(rows[i], rows[j])

    def store(self, array: int, rows: list[Any], lanes: int) -> None:
        for r, row in enumerate(rows):
            self.builder.store(row, self.place(array, r, lanes), align=self.size)

    def part(self, row: Any, first: int, lanes: int) -> Any:
        return self.shuffled(row, list(range(first, first + lanes)))

    def reversed(self, row: Any) -> Any:
        return self.shuffled(row, [COLUMNS - 1 - lane for lane in range(COLUMNS)])

    def shuffled(self, row: Any, places: list[int]) -> Any:
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return self.builder.shuffle_vector(row, ir.Constant(row.type, ir.Undefined), lanes)

    def from_item(self, array: int, at: Any) -> Any:
        """Load eight items from index `at` on."""
        first = self.builder.gep(self.data[array], [at])
        return self.builder.load(
            self.builder.bitcast(first, ir.VectorType(self.kind, COLUMNS).as_pointer()), align=self.size
        )

    def from_both(self, a: Any, b: Any, places: list[int]) -> Any:
        """Select items of two rows: place 0 is the first of `a`, place 8 the first of `b`."""
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return self.builder.shuffle_vector(a, b, lanes)

    def transposed(self, rows: list[Any]) -> list[Any]:
        """Transpose eight rows of eight."""
        for step in (4, 2, 1):
            firsts = [i if not i & step else COLUMNS + i - step for i in range(COLUMNS)]
            for r in range(COLUMNS):
                if not r & step:
                    a, b = rows[r], rows[r + step]
                    rows[r] = self.from_both(a, b, firsts)
                    rows[r + step] = self.from_both(a, b, [place + step for place in firsts])
        return rows

    def within_rows(self, rows: list[Any]) -> list[Any]:
        """Apply the last three steps of a bitonic merge, within each row of eight.

        It handles two rows at a time and compares their lower places with their upper ones, so that no
        comparison is made twice. Places track where each item of the two rows is.
        """
        for r in range(0, len(rows), 2):
            a, b = rows[r : r + 2]
            held = list(range(2 * COLUMNS))
            for step in (4, 2, 1):
                lower = [place for place in held if not place & step]
                upper = [place + step for place in lower]
                a, b = self.order(*(self.from_both(a, b, [held.index(i) for i in half])
                                    for half in (lower, upper)))  # fmt: skip
                held = lower + upper
            for at, first in enumerate((0, COLUMNS)):
                places = [held.index(first + i) for i in range(COLUMNS)]
                rows[r + at] = self.from_both(a, b, places)
        return rows

    def bitonic(self, rows: list[Any]) -> list[Any]:
        """Sort rows that form a bitonic sequence: items ascend and then descend, or a rotation of that."""
        step = len(rows) // 2
        while step:
            for r in range(len(rows)):
                if not r & step:
                    rows[r], rows[r + step] = self.order(rows[r], rows[r + step])
            step //= 2
        return self.within_rows(rows)

    def merge(self, rows: list[Any], lanes: int) -> list[Any]:
        """Merge each of the first `lanes` sorted columns with one of as many others, by a bitonic merge.

        The lower half of each merged column is where the first column was, the upper half beside it.
        """
        n = len(rows)
        exchanged = [*range(lanes, 2 * lanes), *range(lanes)]
        first = [*range(lanes), *range(2 * lanes, 3 * lanes)]
        second = [place + lanes for place in first]
        for i in range(n // 2):
            # The first column ascends, and the second, from its end, descends.
            low, high = self.order(rows[i], self.shuffled(rows[n - 1 - i], exchanged))
            rows[i], rows[n - 1 - i] = self.from_both(low, high, first), self.from_both(low, high, second)
        step = n // 2
        while step:
            for i in range(n):
                if not i & step:
                    rows[i], rows[i + step] = self.order(rows[i], rows[i + step])
            step //= 2
        return rows

    def unfolded(self, rows: list[Any], lanes: int) -> list[Any]:
        """Return the rows of merged columns in order; the columns' halves lie side by side."""
        return [self.part(row, first, lanes) for first in (0, lanes) for row in rows]

    def halve(self, rows: list[Any], lanes: int, coin: int) -> list[Any]:
        """Keep one of every two rows of merged columns; a coin, from number `coin` on, decides per column."""
        which = ir.Constant(ir.VectorType(ir.IntType(1), 2 * lanes), ir.Undefined)
        for lane in range(2 * lanes):
            bit = self.builder.lshr(self.args[1], self.args[1].type(coin + lane % lanes))
            bit = self.builder.trunc(bit, ir.IntType(1))
            which = self.builder.insert_element(which, bit, ir.IntType(32)(lane))
        return [self.builder.select(which, rows[i], rows[i + 1]) for i in range(0, len(rows), 2)]


def _instruction(build: Any) -> Any:
    """Define a function that only kernels can call; mypy sees no signature."""
    return intrinsic(build)


@_instruction
def sort_chunk(typingctx: Any, chunk: Any, out: Any) -> Any:
    """Sort the first 64 items of `chunk` into `out`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        network = _Network(context, builder, signature, args)
        rows = network.load(0, CHUNK // COLUMNS)
        network.sort(rows)
        rows = network.transposed(rows)
        for run in (1, 2, 4):
            for at in range(0, COLUMNS, 2 * run):
                falling = [network.reversed(row) for row in rows[at + run : at + 2 * run][::-1]]
                rows[at : at + 2 * run] = network.bitonic(rows[at : at + run] + falling)
        network.store(1, rows, COLUMNS)
        return context.get_dummy_value()

    return types.void(chunk, out), codegen


@_instruction
def thin_block(typingctx: Any, block: Any, coins: Any, pairs: Any, fours: Any) -> Any:
    """Thin 256 items to 128, as two sorted columns side by side in `pairs`, and to 64, sorted, in `fours`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        network = _Network(context, builder, signature, args)
        rows = network.load(0, ROWS)
        network.sort(rows)
        rows = network.halve(network.merge(rows, 4), 4, 0)
        rows = network.merge(network.unfolded(rows, 4), 2)
        network.store(2, network.unfolded(rows, 2), 2)
        rows = network.merge(network.unfolded(network.halve(rows, 2, 4), 2), 1)
        network.store(3, network.unfolded(rows, 1), 1)
        return context.get_dummy_value()

    return types.void(block, types.uint64, pairs, fours), codegen


@_instruction
def merge_chunk(
    typingctx: Any, a: Any, i: Any, from_a: Any, b: Any, j: Any, others: Any, top: Any, out: Any
) -> Any:
    """Merge ``a[i:i + taken]`` and ``b[j:j + others]``, 64 items at most, into the first of `out`'s 64.

    All 64 items from ``a[i]`` and ``b[j]`` on are read; unused places are filled with `top`, which is at
    least the largest item.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        network = _Network(context, builder, signature, args)
        i64 = ir.IntType(64)
        lanes = ir.VectorType(i64, COLUMNS)

        def spread(x: Any) -> Any:
            one = builder.insert_element(ir.Constant(ir.VectorType(x.type, COLUMNS), ir.Undefined), x,
                                         ir.IntType(32)(0))  # fmt: skip
            return network.shuffled(one, [0] * COLUMNS)

        ends, starts = spread(args[2]), spread(builder.sub(i64(CHUNK), args[5]))
        filler = spread(args[6])
        rows = []
        for first in range(0, CHUNK, COLUMNS):
            numbers = ir.Constant(lanes, list(range(first, first + COLUMNS)))
            ours = network.from_item(0, builder.add(args[1], i64(first)))
            last = builder.add(args[4], i64(CHUNK - COLUMNS - first))
            theirs = network.reversed(network.from_item(3, last))
            row = builder.select(builder.icmp_signed(">=", numbers, starts), theirs, filler)
            rows.append(builder.select(builder.icmp_signed("<", numbers, ends), ours, row))
        network.store(7, network.bitonic(rows), COLUMNS)
        return context.get_dummy_value()

    kinds = (a, types.int64, types.int64, b, types.int64, types.int64, a.dtype, out)
    return types.void(*kinds), codegen
