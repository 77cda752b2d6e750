"""The compression codes of CPC images, as tables in which a decoder looks up twelve bits at a time.

`cpc_codes.csv` contains the reference's tables: 22 prefix codes of bytes (16 for the steady state, 6 for the
time before) and one of the numbers 0 to 64, with each code's length in the upper 4 bits of an entry and the
code in the lower 12; and 16 orders of the 56 columns outside the window.

Source: datasketches-cpp `cpc/include/compression_data.hpp` and `cpc_compressor_impl.hpp`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

_BYTE_CODES = 22
_WRAP = 1 << 32


@cache
def _rows() -> list[np.ndarray]:
    lines = Path(__file__).with_name("cpc_codes.csv").read_text().splitlines()
    return [np.array(line.split(","), np.int64) for line in lines]


def _decoder(codes: np.ndarray) -> np.ndarray:
    """Return for each of 4096 bit patterns the code's length in the upper and its symbol in the lower 8
    bits."""
    table = np.zeros(4096, np.uint16)
    for symbol, entry in enumerate(codes.tolist()):
        length, bits = entry >> 12, entry & 0xFFF
        table[bits :: 1 << length] = length << 8 | symbol
    return table


@cache
def bytes_decoder(lg_k: int, coupons: int) -> np.ndarray:
    """Return the decoder of a window's bytes for this number of coupons."""
    return _decoder(_rows()[_phase(lg_k, coupons)])


@cache
def gaps_decoder() -> np.ndarray:
    """Return the decoder of the columns skipped in a row."""
    return _decoder(_rows()[_BYTE_CODES])


def columns_outside(lg_k: int, coupons: int, offset: int) -> np.ndarray:
    """Return the column for each of the 56 stored columns outside the window, once windows move."""
    order = _rows()[_BYTE_CODES + 1 + _phase(lg_k, coupons)]
    columns = np.empty(56, np.int64)
    columns[order] = (np.arange(56) + offset + 8) & 63
    return columns


def _phase(lg_k: int, coupons: int) -> int:
    """Return which code is in use. The reference multiplies in 32 bits, so a reader must do the same."""
    k = 1 << lg_k

    def below(times: int, c: int, limit: int) -> bool:
        return times * c % _WRAP < limit * k % _WRAP

    if not below(1000, coupons, 2375):
        return coupons >> (lg_k - 4) & 15
    thresholds = ((4, 3), (10, 11), (100, 132), (3, 5), (1000, 1965), (1000, 2275))
    for number, (times, limit) in enumerate(thresholds):
        if below(times, coupons, limit):
            return 16 + number
    return 6
