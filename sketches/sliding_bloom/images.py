"""Bytes of a filter that forgets, little-endian:

    byte  0  b"SBLM"
          4  version, 1
          5  the kind of the items (`core.values.item_kinds`), b"1" where it isn't known
          6  form: 0 all cells, 1 those that are set
          7  0
          8  uint64 window, microseconds
         16  uint64 capacity
         24  float64 false positives at capacity
         32  int32 seed
         36  uint32 blocks of 256 cells
         40  int64 the latest time, microseconds since 1970; −2^63 if nothing was seen
         48  uint32 cells that are set
         52  uint32 CRC-32 of the bytes before and after
         56  form 0: the cells, uint8; form 1: the places of those that are set, uint32, in ascending order,
             then the cells, uint8

A cell holds 0, or the number of the last time step that set it, where 1 is the first step of the latest
time's window (`cells`). A sketch is written in form 1 if that takes fewer bytes, so equal sketches have equal
bytes.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from ..bloom.shape import shape
from ..core.protocol import SketchError
from ..core.values.item_kinds import code_of, kind_of_code
from .cells import CELLS, NEVER, first_step, width_of

NAME = "SlidingBloom"
_HEAD = struct.Struct("<4sBcBBQQdiIqI")
_CHECK = struct.Struct("<I")
_START = _HEAD.size + _CHECK.size
_MAGIC, _VERSION, _UNKNOWN = b"SBLM", 1, b"1"
_LONGEST, _FARTHEST = 10**18, 1 << 62
_LARGEST = 1 << 30
_A_PLACE = 5
"""The bytes of a cell written with its place."""


class Parameters(NamedTuple):
    """What two filters must share to be merged."""

    capacity: int
    fpp: float
    window: int
    seed: int

    @property
    def blocks(self) -> int:
        """The number of blocks for the rate. Raises `SketchError` if the filter would be too large."""
        blocks = shape(self.capacity, self.fpp, "blocked", NAME).words // 8
        if blocks * CELLS > _LARGEST:
            raise SketchError(
                f"{NAME}: capacity {self.capacity} at fpp {self.fpp} takes {blocks * CELLS} bytes, at most "
                f"{_LARGEST} are allowed"
            )
        return blocks

    def __str__(self) -> str:
        return (
            f"capacity={self.capacity}, fpp={self.fpp:g}, window={self.window / 1e6:g} and seed={self.seed}"
        )


class Image(NamedTuple):
    """The content of an image; set cells with their places."""

    parameters: Parameters
    latest: int
    places: np.ndarray  # int64
    steps: np.ndarray  # uint8
    item_kind: str | None = None

    def cells(self) -> np.ndarray:
        """All cells."""
        cells = np.zeros(self.parameters.blocks * CELLS, np.uint8)
        cells[self.places] = self.steps
        return cells


def write(image: Image) -> bytes:
    """Return the bytes of a filter."""
    parameters, n = image.parameters, len(image.places)
    item_kind = None if image.latest == NEVER else image.item_kind
    size = parameters.blocks * CELLS
    few = _A_PLACE * n < size
    body = image.places.astype("<u4").tobytes() + image.steps.tobytes() if few else image.cells().tobytes()
    head = _HEAD.pack(
        _MAGIC,
        _VERSION,
        code_of(item_kind, _UNKNOWN),
        int(few),
        0,
        parameters.window,
        parameters.capacity,
        parameters.fpp,
        parameters.seed,
        parameters.blocks,
        image.latest,
        n,
    )
    return head + _CHECK.pack(zlib.crc32(body, zlib.crc32(head))) + body


def parse(data: Any) -> Image:
    """Parse a filter's bytes. Raises `SketchError` for anything else."""
    data = memoryview(data).cast("B")
    if len(data) < _START or data[:4] != _MAGIC or data[4] != _VERSION:
        raise SketchError(f"{NAME}: the bytes ({len(data)}) are not a filter of version {_VERSION}")
    if _CHECK.unpack_from(data, _HEAD.size)[0] != zlib.crc32(data[_START:], zlib.crc32(data[: _HEAD.size])):
        raise SketchError(f"{NAME}: the check sum is wrong; the bytes ({len(data)}) are damaged")
    _, _, kind, few, zero, window, capacity, fpp, seed, blocks, latest, n = _HEAD.unpack_from(data)
    if few > 1 or zero or not 1 <= window <= _LONGEST or capacity < 1 or not 0 < fpp < 1:
        raise SketchError(f"{NAME}: window {window} µs, capacity {capacity}, fpp {fpp} don't make a filter")
    parameters = Parameters(capacity, fpp, window, seed)
    size, body = blocks * CELLS, len(data) - _START
    fewer = _A_PLACE * n < size
    if blocks != parameters.blocks or few != fewer or body != (_A_PLACE * n if few else size):
        raise SketchError(f"{NAME}: {n} cells of {blocks} blocks are not what {len(data)} bytes hold")
    if few:
        places = np.frombuffer(data, "<u4", n, _START).astype(np.int64)
        steps = np.frombuffer(data, np.uint8, n, _START + 4 * n)
        ordered = n == 0 or (np.diff(places).min(initial=1) > 0 and places[-1] < size)
    else:
        cells = np.frombuffer(data, np.uint8, size, _START)
        places = np.flatnonzero(cells)
        steps, ordered = cells[places], len(places) == n
    if not ordered or not steps.all():
        raise SketchError(f"{NAME}: the cells are impossible or not in order")
    if latest == NEVER:
        fine = not n
    else:
        last = latest // width_of(window) - first_step(latest, window) + 1
        fine = abs(latest) <= _FARTHEST and steps.max(initial=0) <= last
    if not fine:
        raise SketchError(f"{NAME}: a cell was set after the latest time, {latest} µs")
    return Image(parameters, latest, places, steps, kind_of_code(kind[0], _UNKNOWN, NAME))
