"""Machine instructions that NumPy and Numba lack: bit counts, byte swap, 64 comparisons at once, prefetch.

Instructions that read and write words of bytes are in `words`."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.np import arrayobj

from ..compilation.jit import inner

_LINE = 64
"""Bytes in a cache line."""


def instruction(build: Any) -> Any:
    """Define a function that only kernels can call; mypy sees no signature."""
    return intrinsic(build)


@instruction
def clz64(typingctx: Any, x: Any) -> Any:
    """Count the leading zero bits of a uint64; 64 for zero. Vectorises."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], cgutils.false_bit)

    return types.uint64(types.uint64), codegen


@instruction
def ctz64(typingctx: Any, x: Any) -> Any:
    """Count the trailing zero bits of a uint64; 64 for zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], cgutils.false_bit)

    return types.uint64(types.uint64), codegen


@instruction
def ones64(typingctx: Any, x: Any) -> Any:
    """Count the set bits of a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@instruction
def swapped64(typingctx: Any, x: Any) -> Any:
    """Reverse the eight bytes of a uint64; with `load64` and `store64`, this handles big-endian words."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(args[0])

    return types.uint64(types.uint64), codegen


@instruction
def at_most(typingctx: Any, array: Any, at: Any, limit: Any) -> Any:
    """Return a bit for each of ``array[at:at + 64]``, unsigned integers: whether it is at most `limit`.

    The first integer's bit is the lowest. Unchecked: the caller ensures ``0 <= at`` and
    ``at + 64 <= len(array)``.
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
    """Prefetch the cache line of ``array[at]`` (one-dimensional) for writing; never faults or waits."""

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
    """Prefetch image `i` of many, if it exists, while the previous one is processed."""
    if i + 1 < len(offsets):
        for at in range(offsets[i], offsets[i + 1], _LINE):
            prefetch(data, np.uint64(at))
