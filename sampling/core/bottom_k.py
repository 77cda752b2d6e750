"""The common part of all samples of k items by priority, single or in groups: merging, bytes, answers.

A family only defines how its rows enter (`_update`); the k items with the greatest priorities stay, whatever
the priorities mean. A single sample is stored as one group.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import date, datetime, time, timedelta
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from ...sketches.core.answers import finite
from ...sketches.core.groups.group_numbers import as_groups
from ...sketches.core.limits import MOST_ROWS, refuse_beyond
from ...sketches.core.parameters import real, whole
from ...sketches.core.protocol import Groups, Sketch, SketchError
from ...sketches.core.values.image_columns import as_images
from .images import MOST_K, Format, Parts, parameter_of
from .items import Rows, as_rows


def checked_k(k: Any, family: str) -> int:
    """Validate `k` and return an int. Raises `SketchError`."""
    return whole(family, "k", k, 1, MOST_K)


def check_confidence(confidence: Any) -> float:
    """Validate a confidence and return a float. Raises `SketchError` unless it is between 0 and 1."""
    return real("sample", "confidence", confidence, 0.0, 1.0, within=True)


class Store(Protocol):
    """The store of samples by group number: `Pool`, or a store with more data per item."""

    k: int

    @property
    def heaps(self) -> np.ndarray:
        """A `heaps.HEAP` record per group."""

    def __len__(self) -> int: ...

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty."""

    def merge(self, groups: np.ndarray, parts: Parts, family: str) -> None:
        """Merge whole samples into their groups."""

    def parts(self, groups: np.ndarray) -> Parts:
        """Return the samples of these groups."""


class BottomKGroups(Groups):
    """Many samples of one family; the family's single class states the promise."""

    _format: Format

    _pool: Store

    @property
    def k(self) -> int:
        """The most items per group."""
        return self._pool.k

    @property
    def n(self) -> np.ndarray:
        """The number of rows that each group has seen (int64)."""
        return self._pool.heaps["seen"].copy()

    def __len__(self) -> int:
        return len(self._pool)

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        self._pool.resize(n)

    def _update_groups(self, groups: Any, values: Any, **inputs: Any) -> None:
        """Add values, with the inputs of a family's `update`, to their groups."""
        rows = as_rows(values)
        numbers = as_groups(groups, rows.length, len(self))
        numbers = rows.per_item(numbers, "group number")
        refuse_beyond(MOST_ROWS, self._format.name, self._pool.heaps["seen"], numbers)
        self._update(numbers, rows, inputs)

    @abstractmethod
    def _update(self, groups: np.ndarray | None, rows: Rows, inputs: dict[str, Any]) -> None:
        """Add rows to their groups, or all to group 0 if `groups` is None."""

    def merge(self, groups: Any, column: pa.Array) -> None:
        """Merge samples; if two differ in k, the smaller k wins. Raises `SketchError` for other bytes."""
        numbers, images = as_images(groups, column, len(self), self._format.name)
        if len(images):
            self._merge(numbers, self._format.read(images.offsets, images.data))

    def _merge(self, groups: np.ndarray, parts: Parts) -> None:
        refuse_beyond(MOST_ROWS, self._format.name, self.n, groups, parts.samples["seen"])
        self._pool.merge(groups, parts, self._format.name)

    def to_arrow(self) -> pa.Array:
        """Return each group's sample in bytes, as `binary`."""
        return self._format.write(self._pool.parts(np.arange(len(self))))

    def __getitem__(self, group: int) -> Any:
        where = np.array([range(len(self))[group]])
        return self._single.from_bytes(self._format.write(self._pool.parts(where))[0].as_py())


class BottomK(Sketch):
    """A single sample, implemented by the first group of the family's groups class."""

    _groups: BottomKGroups

    @classmethod
    @abstractmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        """Create a sample of the family. Raises `SketchError` for a parameter out of range."""

    @property
    def k(self) -> int:
        """The most items stored; merging with a smaller sample lowers it."""
        return int(self._groups._pool.heaps["k"][0])

    @property
    def n(self) -> int:
        """The number of values seen, without nulls."""
        return int(self._groups._pool.heaps["seen"][0])

    def __len__(self) -> int:
        return int(self._groups._pool.heaps["size"][0])

    def _saw_nothing(self) -> bool:
        return not self.n

    def _update(self, values: Any, **inputs: Any) -> Self:
        rows = as_rows(values)
        if self.n > MOST_ROWS - len(rows.items):
            raise SketchError(f"{self.family}: a sample counts at most {MOST_ROWS} rows, and has {self.n}")
        self._groups._update(None, rows, inputs)
        return self

    def merge(self, other: Self) -> Self:
        """Merge `other`; exact, and the same in any order. If they differ in k, the smaller k wins.

        Raises `SketchError` for a sample of another family or with other parameters.
        """
        if type(other) is not type(self):
            raise SketchError(f"{self.family}: can't merge with a {type(other).__name__}")
        mine, others = self._groups._format, other._groups._format
        if mine != others:
            raise SketchError(
                f"{self.family}: parameters differ, {mine.parameter} here and {others.parameter} there"
            )
        self._groups._merge(np.zeros(1, np.int64), other._groups._pool.parts(np.zeros(1, np.int64)))
        return self

    def values(self) -> pa.Array:
        """The sampled items, in random order: the first m of them are a sample of m."""
        return self._groups._pool.parts(np.zeros(1, np.int64)).items

    def to_bytes(self) -> bytes:
        """The sample in this package's own format (`images`); equal samples have equal bytes."""
        image: bytes = self._groups.to_arrow()[0].as_py()
        return image

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sample from its bytes; without a seed it continues with fresh random numbers."""
        image = np.frombuffer(data, np.uint8)
        sample = cls._empty(1, parameter_of(image))
        parts = sample._groups._format.read(np.array([0, len(image)]), image)
        sample = cls._empty(int(parts.samples["k"][0]), parameter_of(image))
        sample._groups._merge(np.zeros(1, np.int64), parts)
        heaps = sample._groups._pool.heaps
        for name in ("state", "seeded"):
            heaps[name] = parts.samples[name]
        return sample

    def error(self, confidence: float = 0.95) -> float | None:
        """The largest error of a share estimated from the sample; None if the sample isn't uniform."""
        check_confidence(confidence)
        return None

    def answer(self) -> dict[str, Any]:
        """``{"n": values seen, "values": the sample, "error": of a share, at 95 %}``, for JSON.

        Samples that aren't uniform have no such error, and it is left out.
        """
        answer = {"n": self.n, "values": [plain(value) for value in self.values().to_pylist()]}
        error = self.error()
        return answer if error is None else {**answer, "error": error}

    def __repr__(self) -> str:
        return f"{self.family}(k={self.k}): {len(self):,} of {self.n:,} rows"


def plain(value: Any) -> Any:
    """Convert a value for JSON: times to ISO text, bytes to hexadecimal, decimals to text, NaN to None.

    >>> plain([("a", b"b")])    # a map, as PyArrow gives it
    [{'key': 'a', 'value': '62'}]
    """
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return {"key": plain(value[0]), "value": plain(value[1])}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if value is None or isinstance(value, (str, int, float, bool)):
        return finite(value)
    return value.total_seconds() if isinstance(value, timedelta) else str(value)
