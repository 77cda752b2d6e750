"""Validate VarOpt images of longs, doubles or strings completely before the package reads them.

8 bytes: preamble longs (6 bits; 1 empty, 3 warming up, 4 full) and resize factor (2 bits), serial version
(2), family (13), flags (4 empty, 128 internal to a union), k (uint32). Unless empty: n (uint64), numbers of
heavy items h and reservoir items r (uint32 each), if full the reservoir's weight (double), the weights of the
heavy items (doubles), then the items: longs and doubles in 8 bytes, strings as their length (uint32) and
UTF-8.

Source: datasketches-cpp `sampling/include/var_opt_sketch_impl.hpp`; datasketches-java `ArrayOfStringsSerDe`.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from datasketches import PyObjectSerDe

MOST_K = 1 << 20
"""The largest k: the package allocates memory for k items immediately, whatever an image contains."""

_FAMILY, _EMPTY = 13, 4
MOST_ROWS, _MOST_WEIGHT = 1 << 48, 1e300


class _Numbers(PyObjectSerDe):
    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = struct.Struct(form)

    def get_size(self, item: Any) -> int:
        return 8

    def to_bytes(self, item: Any) -> bytes:
        return self._form.pack(item)

    def from_bytes(self, data: bytes, offset: int) -> tuple[Any, int]:
        return self._form.unpack_from(data, offset)[0], 8


class _Strings(PyObjectSerDe):
    """Serialises strings; the package's own class counts characters where other libraries count bytes."""

    def get_size(self, item: str) -> int:
        return 4 + len(item.encode())

    def to_bytes(self, item: str) -> bytes:
        text = item.encode()
        return struct.pack("<I", len(text)) + text

    def from_bytes(self, data: bytes, offset: int) -> tuple[str, int]:
        size = 4 + struct.unpack_from("<I", data, offset)[0]
        return data[offset + 4 : offset + size].decode(), size


FORMATS: dict[str, Any] = {"long": _Numbers("<q"), "double": _Numbers("<d"), "string": _Strings()}
"""The serialisers of each kind of items."""


def image_fault(data: bytes, kind: str) -> str:
    """Return what is wrong with a VarOpt image of items of that kind; None if it is valid."""
    if len(data) < 8:
        return "fewer bytes than its header needs"
    first, version, family, flags, k = struct.unpack_from("<BBBBI", data)
    longs = first & 63
    if version != 2 or family != _FAMILY or flags & ~_EMPTY:
        return "another version or family, or a union's inside"
    if not 1 <= k <= MOST_K:
        return f"k must lie from 1 to {MOST_K}, got {k}"
    if flags & _EMPTY:
        return "" if (longs, len(data)) == (1, 8) else "an empty sketch followed by more"
    if longs not in (3, 4) or len(data) < 8 * longs:
        return "it ends within its header"
    n, heavy, light = struct.unpack_from("<QII", data, 8)
    full = longs == 4
    if (heavy + light != k or not k < n < MOST_ROWS) if full else (light or not 0 < heavy == n <= k):
        return "numbers of items that k and n don't make"
    at = 8 * longs + 8 * heavy
    if len(data) < at:
        return "it ends within its weights"
    weights = np.frombuffer(data, "<f8", heavy, 8 * longs)
    if not ((weights > 0) & (weights < _MOST_WEIGHT)).all():
        return "a weight isn't positive"
    if full:
        rest = struct.unpack_from("<d", data, 24)[0]
        if not (light and 0 < rest < _MOST_WEIGHT):
            return "a reservoir without items or weight"
        parents = weights[(np.arange(1, heavy) - 1) // 2]
        if (parents > weights[1:]).any() or (heavy and weights[0] < rest / light * (1 - 1e-9)):
            return "its heavy items are out of order, or lighter than the reservoir's"
    return _items_fault(data[at:], heavy + light, kind)


def before_tie(data: bytes) -> bytes:
    """Return the image of a full sample from before the package refused a row, so that it can continue.

    A heavy item with the reservoir's average weight seems lighter if that average is rounded up. The package
    then counts every further row but refuses it, because the sample seems broken. Subtracting a share of
    1e-12 from the reservoir separates the two; it is far too small to be visible in any answer of a sample.
    """
    n, rest = struct.unpack_from("<Q8xd", data, 8)
    before, lighter = struct.pack("<Q", n - 1), struct.pack("<d", rest * (1 - 1e-12))
    return data[:8] + before + data[16:24] + lighter + data[32:]


def _items_fault(data: bytes, items: int, kind: str) -> str:
    if kind != "string":
        return "" if len(data) == 8 * items else "a length that isn't its items'"
    at = 0
    for _ in range(items):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if len(data) < at + 4 or len(data) < end:
            return "it ends within a string"
        try:
            data[at + 4 : end].decode()
        except UnicodeDecodeError:
            return "a string isn't UTF-8"
        at = end
    return "" if at == len(data) else "more bytes follow its last string"
