"""Reading and writing bytes at addresses inside kernels, which Numba's arrays can't do.

An address is an int64. Callers must check bounds.
"""

from __future__ import annotations

from typing import Any

import numba.extending
from llvmlite import ir
from numba.core import cgutils, types

intrinsic: Any = numba.extending.intrinsic  # its own types are those of the body, not of the call


def _load(bits, result):
    """The body of an intrinsic: the integer with so many bits at an address, which need not be aligned."""

    def code(context, builder, signature, arguments):
        at = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
        return builder.load(at, align=1)

    return result(types.int64), code


@intrinsic
def load8(typingctx, address):
    """The byte at an address."""
    return _load(8, types.uint8)


@intrinsic
def load32(typingctx, address):
    """The int32 at an address."""
    return _load(32, types.int32)


@intrinsic
def load64(typingctx, address):
    """The int64, or address, at an address."""
    return _load(64, types.int64)


@intrinsic
def load_word(typingctx, address):
    """Eight bytes at an address, the first one lowest, as uint64."""
    return _load(64, types.uint64)


@intrinsic
def copy(typingctx, to, origin, count):
    """Copy `count` bytes between addresses; they must not overlap."""

    def code(context, builder, signature, arguments):
        byte = ir.IntType(8).as_pointer()
        to, origin = (builder.inttoptr(a, byte) for a in arguments[:2])
        cgutils.raw_memcpy(builder, to, origin, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), code


@intrinsic
def trailing_zeros(typingctx, word):
    """The number of trailing zero bits of a uint64; 64 for 0."""

    def code(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), code


@intrinsic
def string_marks(typingctx, address):
    """One bit per byte for the 32 bytes at an address, in their order.

    The lower 32 bits mark quotes, backslashes and control characters; the upper 32 bits mark bytes above 127.
    """

    def code(context, builder, signature, arguments):
        vector = ir.VectorType(ir.IntType(8), 32)

        def marks(order, number):
            return compare(order, data, ir.Constant(vector, [number] * 32))

        def bits(marked):
            return builder.zext(builder.bitcast(marked, ir.IntType(32)), ir.IntType(64))

        compare = builder.icmp_unsigned
        data = builder.load(builder.inttoptr(arguments[0], vector.as_pointer()), align=1)
        ends = builder.or_(builder.or_(marks("==", 34), marks("==", 92)), marks("<", 32))
        return builder.or_(bits(ends), builder.shl(bits(marks(">", 127)), ir.Constant(ir.IntType(64), 32)))

    return types.uint64(types.int64), code


@intrinsic
def bits_of(typingctx, number):
    """A double's 64 bits."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), code


@intrinsic
def store8(typingctx, address, value):
    """Write the lowest byte of an int64."""

    def code(context, builder, signature, arguments):
        byte = ir.IntType(8)
        to = builder.inttoptr(arguments[0], byte.as_pointer())
        builder.store(builder.trunc(arguments[1], byte), to)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@intrinsic
def store64(typingctx, address, value):
    """Write an int64."""

    def code(context, builder, signature, arguments):
        to = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store(arguments[1], to, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code
