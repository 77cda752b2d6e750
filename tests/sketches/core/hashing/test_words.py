"""Words of 2, 4 and 8 bytes at every place, against Python's own."""

import numpy as np
import pytest

from streamgauge.sketches.core.compilation.jit import kernel
from streamgauge.sketches.core.hashing.words import load16, load32, load64, store16, store32, store64


@kernel
def _read(data, at):
    return load16(data, at), load32(data, at), load64(data, at)


@kernel
def _write(data, at, number):
    store16(data, at, number)
    store32(data, at + 2, number)
    store64(data, at + 6, number)


@pytest.mark.parametrize("at", range(9))
def test_words_are_little_endian_at_any_place(at):
    data = np.random.default_rng(at).integers(0, 256, 32, np.uint8)
    expected = tuple(int.from_bytes(data[at : at + size].tobytes(), "little") for size in (2, 4, 8))
    assert tuple(map(int, _read(data, at))) == expected


@pytest.mark.parametrize("number", [0, 1, -2, 2**63 - 1, -(2**63), 0x0123456789ABCDEF])
def test_a_number_is_cut_to_the_words_size_and_nothing_beside_it_is_touched(number):
    data = np.full(20, 0xAA, np.uint8)
    _write(data, 3, np.int64(number))
    words = b"".join((number % (1 << 8 * size)).to_bytes(size, "little") for size in (2, 4, 8))
    assert data.tobytes() == b"\xaa" * 3 + words + b"\xaa" * 3
