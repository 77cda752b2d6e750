"""MurmurHash3's arithmetic on 16 values at once, written as processor vectors.

For a loop over single values, LLVM chooses the width: half of AVX-512's, and one vector at a time, which then
waits for five dependent multiplications of up to 15 cycles each. Sixteen values in step keep two to four
vectors in flight: this is two to four times faster on Cascade Lake, takes half the time with AVX2, and
compiles faster than a loop to be vectorised. Rotations use an intrinsic: written as shifts they become a
further multiplication. ARM's NEON can't multiply 64-bit vectors, so there, and wherever vectors aren't known
to pay, it is a loop over the 16 values.

Arrays are uint64 or int64; each instruction reads and writes ``array[at:at + LANES]``, unchecked.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np import arrayobj

from .bits import instruction

LANES = 16
"""Values at a time; arrays for hashes have room for a multiple."""
_VECTORS = platform.machine().lower() in ("x86_64", "amd64")

_WORD = ir.IntType(64)
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


class _Lanes:
    """The arithmetic of one intrinsic, on a vector or on a single value."""

    def __init__(self, builder: Any, kind: Any, places: list[Any]) -> None:
        self._builder, self._kind, self._places = builder, kind, places

    def load(self, array: int) -> Any:
        return self._builder.load(self._places[array], align=8)

    def store(self, array: int, words: Any) -> None:
        self._builder.store(words, self._places[array], align=8)

    def constant(self, number: int) -> Any:
        same = [number] * LANES
        return ir.Constant(self._kind, same if isinstance(self._kind, ir.VectorType) else number)

    def all(self, word: Any) -> Any:
        """Return the same word in all lanes."""
        if not isinstance(self._kind, ir.VectorType):
            return word
        one = self._builder.insert_element(ir.Constant(self._kind, ir.Undefined), word, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self._builder.shuffle_vector(one, ir.Constant(self._kind, ir.Undefined), zeros)

    def rotated(self, words: Any, by: int) -> Any:
        name = f"llvm.fshl.v{LANES}i64" if isinstance(self._kind, ir.VectorType) else "llvm.fshl.i64"
        kind = ir.FunctionType(self._kind, [self._kind] * 3)
        rotate = cgutils.get_or_insert_function(self._builder.module, kind, name)
        return self._builder.call(rotate, [words, words, self.constant(by)])

    def times(self, words: Any, number: int) -> Any:
        return self._builder.mul(words, self.constant(number))

    def sum(self, one: Any, other: Any) -> Any:
        return self._builder.add(one, other)

    def xor(self, one: Any, other: Any) -> Any:
        return self._builder.xor(one, other)

    def where(self, at_least: int, words: Any, one: Any, other: Any) -> Any:
        """Return `one` in lanes where a signed word is at least `at_least`, else `other`."""
        chosen = self._builder.icmp_signed(">=", words, self.constant(at_least))
        return self._builder.select(chosen, one, other)

    def first(self, h1: Any, k1: Any) -> Any:
        """Mix a word into the first half."""
        return self.xor(h1, self.times(self.rotated(self.times(k1, _C1), 31), _C2))

    def second(self, h2: Any, k2: Any) -> Any:
        """Mix a word into the second half."""
        return self.xor(h2, self.times(self.rotated(self.times(k2, _C2), 33), _C1))

    def body(self, h1: Any, h2: Any, k1: Any, k2: Any) -> tuple[Any, Any]:
        """Mix in 16 whole bytes."""
        h1 = self.sum(self.rotated(self.first(h1, k1), 27), h2)
        h1 = self.sum(self.times(h1, 5), self.constant(0x52DCE729))
        h2 = self.sum(self.rotated(self.second(h2, k2), 31), h1)
        return h1, self.sum(self.times(h2, 5), self.constant(0x38495AB5))

    def finished(self, h1: Any, h2: Any, length: Any) -> tuple[Any, Any]:
        """Finish: mix both halves with the length and each other."""
        h1, h2 = self.xor(h1, length), self.xor(h2, length)
        h1 = self.sum(h1, h2)
        h1, h2 = self._final(h1), self._final(self.sum(h2, h1))
        h1 = self.sum(h1, h2)
        return h1, self.sum(h2, h1)

    def _final(self, words: Any) -> Any:
        words = self.times(self._shifted(words), 0xFF51AFD7ED558CCD)
        return self._shifted(self.times(self._shifted(words), 0xC4CEB9FE1A85EC53))

    def _shifted(self, words: Any) -> Any:
        return self.xor(words, self._builder.lshr(words, self.constant(33)))


def _on_lanes(arrays: int, step: Callable[..., None]) -> Callable[..., Any]:
    """Build an intrinsic that runs `step` on all lanes; its arguments are arrays, the index, and words."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = [
            builder.bitcast(arrayobj.make_array(kind)(context, builder, array).data, _WORD.as_pointer())
            for kind, array in zip(signature.args[:arrays], args[:arrays], strict=True)
        ]
        at, *words = args[arrays:]
        if _VECTORS:
            kind = ir.VectorType(_WORD, LANES)
            places = [builder.bitcast(builder.gep(first, [at]), kind.as_pointer()) for first in data]
            step(_Lanes(builder, kind, places), *words)
        else:
            with cgutils.for_range(builder, _WORD(LANES)) as loop:
                here = builder.add(at, loop.index)
                step(_Lanes(builder, _WORD, [builder.gep(first, [here]) for first in data]), *words)
        return context.get_dummy_value()

    return codegen


@instruction
def hash_numbers(typingctx: Any, numbers: Any, h1: Any, h2: Any, at: Any, seed: Any) -> Any:
    """Hash 8-byte numbers."""

    def step(lanes: _Lanes, seed: Any) -> None:
        same = lanes.all(seed)
        halves = lanes.finished(lanes.first(same, lanes.load(0)), same, lanes.constant(8))
        lanes.store(1, halves[0])
        lanes.store(2, halves[1])

    return types.void(numbers, h1, h2, types.int64, types.uint64), _on_lanes(3, step)


@instruction
def mix_bodies(typingctx: Any, lengths: Any, k1: Any, k2: Any, h1: Any, h2: Any, at: Any, body: Any) -> Any:
    """Mix words `k1` and `k2` into the hashes of strings that have block number `body`."""

    def step(lanes: _Lanes, body: Any) -> None:
        before = lanes.load(3), lanes.load(4)
        after = lanes.body(*before, lanes.load(1), lanes.load(2))
        room = lanes._builder.sub(lanes.load(0), lanes.all(lanes._builder.shl(body, _WORD(4))))
        for half in range(2):
            lanes.store(3 + half, lanes.where(16, room, after[half], before[half]))

    return types.void(lengths, k1, k2, h1, h2, types.int64, types.int64), _on_lanes(5, step)


@instruction
def mix_tails(typingctx: Any, lengths: Any, k1: Any, k2: Any, h1: Any, h2: Any, at: Any) -> Any:
    """Mix in the strings' tails, 0 to 15 bytes in words `k1` and `k2`, and finish their hashes."""

    def step(lanes: _Lanes) -> None:
        first, second = lanes.first(lanes.load(3), lanes.load(1)), lanes.second(lanes.load(4), lanes.load(2))
        for half, words in enumerate(lanes.finished(first, second, lanes.load(0))):
            lanes.store(3 + half, words)

    return types.void(lengths, k1, k2, h1, h2, types.int64), _on_lanes(5, step)
