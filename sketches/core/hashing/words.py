"""Little-endian words in byte arrays, by which all families' kernels read and write images.

Each access is one machine instruction, at any index, aligned or not. Nothing is checked: the caller ensures
that the word lies within the array, since images are measured before they are read.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.np import arrayobj

from .bits import instruction


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any, bits: int) -> Any:
    """Return the address of ``array[at]`` as a word's address."""
    data = arrayobj.make_array(kind)(context, builder, array).data
    first = builder.bitcast(data, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(first, [at]), ir.IntType(bits).as_pointer())


def _reader(word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here = _place(context, builder, signature.args[0], args[0], args[1], word.bitwidth)
        return builder.load(here, align=1)

    def load(typingctx: Any, data: Any, at: Any) -> Any:
        return word(data, types.int64), codegen

    load.__doc__ = f"``data[at:at + {word.bitwidth // 8}]`` of a uint8 array as one {word}."
    return instruction(load)


def _writer(word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here = _place(context, builder, signature.args[0], args[0], args[1], word.bitwidth)
        builder.store(args[2], here, align=1)
        return context.get_dummy_value()

    def store(typingctx: Any, data: Any, at: Any, number: Any) -> Any:
        return types.void(data, types.int64, word), codegen

    store.__doc__ = f"Write a number's lowest {word.bitwidth // 8} bytes to ``data[at]`` of a uint8 array on."
    return instruction(store)


load16, load32, load64 = (_reader(word) for word in (types.uint16, types.uint32, types.uint64))
store16, store32, store64 = (_writer(word) for word in (types.uint16, types.uint32, types.uint64))
