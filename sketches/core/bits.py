"""Machine instructions that NumPy and Numba don't name: bits counted, bytes turned, 64 comparisons, fetching.

Those that read and write words of bytes are in `words`."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.np import arrayobj

from .jit import inner

_LINE = 64
"""Bytes that memory gives at a time."""


def instruction(build: Any) -> Any:
    """A function that only kernels can call; mypy sees no signature."""
    return intrinsic(build)


@instruction
def clz64(typingctx: Any, x: Any) -> Any:
    """Leading zero bits of a uint64; 64 for zero. Vectorises."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], cgutils.false_bit)

    return types.uint64(types.uint64), codegen


@instruction
def ctz64(typingctx: Any, x: Any) -> Any:
    """Trailing zero bits of a uint64; 64 for zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], cgutils.false_bit)

    return types.uint64(types.uint64), codegen


@instruction
def ones64(typingctx: Any, x: Any) -> Any:
    """Bits of a uint64 that are set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@instruction
def swapped64(typingctx: Any, x: Any) -> Any:
    """A uint64 with its eight bytes in the opposite order: big-endian words, by `load64` and `store64`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(args[0])

    return types.uint64(types.uint64), codegen


@instruction
def at_most(typingctx: Any, array: Any, at: Any, limit: Any) -> Any:
    """Which of ``array[at:at + 64]``, unsigned integers, are at most `limit`: a bit each, the first lowest.

    Unchecked: the caller makes sure that ``0 <= at`` and ``at + 64 <= len(array)``.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_value_type(signature.args[0].dtype)
        lanes = ir.VectorType(kind, 64)
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        here = builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer())
        values = builder.load(here, align=context.get_abi_sizeof(kind))
        one = builder.insert_element(ir.Constant(lanes, ir.Undefined), args[2], ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        limits = builder.shuffle_vector(one, ir.Constant(lanes, ir.Undefined), zeros)
        return builder.bitcast(builder.icmp_unsigned("<=", values, limits), ir.IntType(64))

    return types.uint64(array, types.int64, array.dtype), codegen


@instruction
def prefetch(typingctx: Any, array: Any, at: Any) -> Any:
    """Have the cache line of ``array[at]`` (one-dimensional) fetched for writing; never faults or waits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, i32(1), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


@inner
def prefetch_image(data, offsets, i):
    """Have image `i` of many, if there is one, fetched while the one before it is worked on."""
    if i + 1 < len(offsets):
        for at in range(offsets[i], offsets[i + 1], _LINE):
            prefetch(data, np.uint64(at))
