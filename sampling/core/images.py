"""Write and read samples' bytes, many at a time.

    offset  type    what
    0       2 x u8  "SG"
    2       u8      version, 1
    3       u8      family
    4       u8      items: 0 none, 1 int64, 2 double, 3 string, 4 binary, 5 Arrow IPC
    5       u8      1 where the random state is kept
    6       u16     0
    8       u32     k
    12      u32     items kept
    16      i64     rows seen
    24      f64     the family's parameter, 0.0 where it has none
    32      u64     MurmurHash3 of the image with zeros here
    40              random state (u64) and what is left of the jump (f64), where kept
                    priorities (f64), greatest first
                    times (i64, microseconds) in that order, where the family keeps them
                    items in that order: 8 bytes each; or their ends (u32), then their bytes;
                    or an Arrow IPC stream of one column

All little-endian. Equal samples have equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.groups.group_numbers import frozen
from ...sketches.core.hashing.hash import SEED, hash_bytes
from ...sketches.core.hashing.random import base_state, group_states
from ...sketches.core.protocol import SketchError
from ...sketches.core.values.image_columns import image_column
from . import image_kernels as kernels
from . import payloads
from .heaps import UNDRAWN

HEAD = np.dtype(
    [
        ("magic", "S2"),
        ("version", "u1"),
        ("family", "u1"),
        ("items", "u1"),
        ("seeded", "u1"),
        ("zero", "<u2"),
        ("k", "<u4"),
        ("size", "<u4"),
        ("seen", "<i8"),
        ("parameter", "<f8"),
        ("check", "<u8"),
    ]
)
STATE = np.dtype([("state", "<u8"), ("left", "<f8")])
MOST_K = 2**31 - 1
_CHECK_AT = HEAD.fields["check"][1]  # type: ignore[index]


SAMPLE = np.dtype(
    [("k", "i8"), ("size", "i8"), ("seen", "i8"), ("state", "u8"), ("left", "f8"), ("seeded", "i8")]
)
"""A sample without its items, with fields as in `heaps.HEAP`."""


def samples_of(n: int) -> np.ndarray:
    """Return `n` empty samples without a seed, each with its own random state."""
    samples = np.zeros(n, SAMPLE)
    samples["state"] = group_states(base_state("a sample", None), 0, n)
    samples["left"] = UNDRAWN
    return samples


@dataclass(frozen=True, slots=True)
class Parts:
    """Samples as columns: a `SAMPLE` for each, and for each of its items a priority, the item, perhaps a
    time."""

    samples: np.ndarray
    priority: np.ndarray
    items: pa.Array
    times: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Format:
    """The format of one family's images: its name for errors, its number in the bytes, its parameter."""

    name: str
    number: int
    parameter: float = 0.0
    bound: float = -1e-305
    """An upper limit of all priorities."""
    timed: bool = False
    """Whether the items' times are stored."""
    beyond_k: bool = False
    """Whether a sample may have more than k items."""

    def write(self, parts: Parts) -> pa.Array:
        """Return one image per sample, as `binary` (`large_binary` beyond 2 GiB)."""
        code = payloads.code_of(parts.items.type)
        samples = parts.samples
        size, seeded = samples["size"].copy(), samples["seeded"].copy()
        heads = np.zeros(len(samples), HEAD)
        heads["magic"], heads["version"], heads["family"] = b"SG", 1, self.number
        heads["items"] = np.where(size > 0, code, payloads.NONE)
        for name in ("seeded", "k", "size", "seen"):
            heads[name] = samples[name]
        heads["parameter"] = self.parameter
        states = np.zeros(len(heads), STATE)
        states["state"], states["left"] = samples["state"], samples["left"]
        ends, data, lengths = payloads.pack(parts.items, size)
        sections = [
            (heads, np.full(len(heads), HEAD.itemsize)),
            (states[seeded > 0], seeded * STATE.itemsize),
            (parts.priority, size * 8),
            (parts.times, size * 8 * self.timed),
            (ends, size * 4 if len(ends) else np.zeros_like(size)),
            (data, lengths),
        ]
        bounds = np.zeros(len(heads) + 1, np.int64)
        np.cumsum(sum(length for _, length in sections), out=bounds[1:])
        out = np.empty(bounds[-1], np.uint8)
        at = bounds[:-1].copy()
        for content, length in sections:
            kernels.scatter(frozen(content.view(np.uint8)), at, length, out)
            at += length
        checks = _checksums(bounds, out)
        kernels.scatter(frozen(checks.view(np.uint8)), bounds[:-1] + _CHECK_AT, np.full(len(heads), 8), out)
        return image_column(out, bounds)

    def read(self, bounds: np.ndarray, data: np.ndarray) -> Parts:
        """Read the samples of the images ``data[bounds[i]:bounds[i + 1]]``. Raises `SketchError` if
        invalid."""
        starts, lengths = bounds[:-1], np.diff(bounds)
        heads = self._heads(starts, lengths, bounds, data)
        samples = samples_of(len(heads))
        for name in ("seeded", "k", "size", "seen"):
            samples[name] = heads[name]
        size, seeded = samples["size"].copy(), samples["seeded"].copy()
        at = starts + HEAD.itemsize
        left_over = lengths - HEAD.itemsize - seeded * STATE.itemsize - (8 + 8 * self.timed) * size
        self._require(left_over >= 0, "is cut short")

        def section(length: np.ndarray, dtype: Any) -> np.ndarray:
            nonlocal at
            out = np.empty(int(length.sum()), np.uint8)
            kernels.gather(frozen(data), at, length, out)
            at = at + length
            return out.view(dtype)

        stored = section(seeded * STATE.itemsize, STATE)
        samples["state"][seeded > 0], samples["left"][seeded > 0] = stored["state"], stored["left"]
        self._require(~np.isnan(samples["left"]), "has a jump that is not a number")
        priority = section(size * 8, np.float64)
        self._require(self._in_order(priority, size), "has priorities out of order or range")
        times = section(size * 8 * self.timed, np.int64)
        codes = heads["items"][size > 0]
        if len(codes) and (codes != codes[0]).any():
            raise SketchError(f"{self.name}: samples of different types of items can't be merged")
        try:
            items = payloads.unpack(int(codes[0]) if len(codes) else payloads.NONE, size, left_over, section)
        except (ValueError, pa.ArrowException, OSError) as error:
            raise SketchError(f"{self.name}: the image's items can't be read: {error}") from error
        return Parts(samples, priority, items, times)

    def _in_order(self, priority: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return which samples' priorities are all finite, below the bound, and not ascending."""
        wrong = ~(np.isfinite(priority) & (priority < self.bound))
        sample = np.repeat(np.arange(len(size)), size)
        wrong[1:] |= (priority[1:] > priority[:-1]) & (sample[1:] == sample[:-1])
        return np.bincount(sample[wrong], minlength=len(size)) == 0

    def _heads(
        self, starts: np.ndarray, lengths: np.ndarray, bounds: np.ndarray, data: np.ndarray
    ) -> np.ndarray:
        """Return the validated headers of the images."""
        self._require(lengths >= HEAD.itemsize, f"is shorter than its head of {HEAD.itemsize} bytes")
        raw = np.empty(len(starts) * HEAD.itemsize, np.uint8)
        kernels.gather(frozen(data), starts, np.full(len(starts), HEAD.itemsize), raw)
        heads = raw.view(HEAD)
        self._require(heads["magic"] == b"SG", "doesn't begin with SG: it is not a streamgauge sample")
        self._require(heads["version"] == 1, "is of a version other than 1")
        self._require(heads["family"] == self.number, "is a sample of another family")
        blank = data.copy()
        eight = np.full(len(heads), 8)
        kernels.scatter(frozen(np.zeros(8 * len(heads), np.uint8)), starts + _CHECK_AT, eight, blank)
        self._require(
            heads["check"] == _checksums(bounds, blank),
            "has another checksum than its bytes: they were changed",
        )
        self._require(heads["parameter"] == self.parameter, f"has a parameter other than {self.parameter}")
        size, k, seen = heads["size"].astype(np.int64), heads["k"].astype(np.int64), heads["seen"]
        sound = (heads["zero"] == 0) & (heads["seeded"] <= 1) & (k >= 1) & (k <= MOST_K)
        sound &= (size <= seen) & ((size <= k) | self.beyond_k) & (heads["items"] <= payloads.IPC)
        sound &= (size > 0) == (heads["items"] != payloads.NONE)
        self._require(sound, "has a head that contradicts itself")
        return heads

    def _require(self, sound: np.ndarray, complaint: str) -> None:
        if not sound.all():
            which = f" (row {int(np.argmin(sound))})" if len(sound) > 1 else ""
            raise SketchError(f"{self.name}: the image{which} {complaint}")


def _checksums(bounds: np.ndarray, data: np.ndarray) -> np.ndarray:
    checks = np.empty(len(bounds) - 1, np.uint64)
    hash_bytes(bounds, data, SEED, checks, np.empty_like(checks))
    return checks


def parameter_of(image: np.ndarray) -> float:
    """Return the family's parameter in an image's header, unchecked; 0.0 if the header is incomplete."""
    return float(image[: HEAD.itemsize].view(HEAD)["parameter"][0]) if len(image) >= HEAD.itemsize else 0.0
