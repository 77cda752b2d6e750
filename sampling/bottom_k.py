"""What all samples of k items by priority share: merging, bytes, answers, single and by the thousand.

A family says only with which weights its rows enter (`_enter`); the k items of greatest priority stay,
whatever the priorities are. One sample is the first of one group.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from datetime import date, datetime, time, timedelta
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from ..sketches.columns import as_values
from ..sketches.group_numbers import as_groups
from ..sketches.protocol import Groups, Sketch, SketchError
from .images import MOST_K, Format, Parts, parameter_of, samples_of
from .items import as_items, kernel_columns
from .pool import Pool

Columns = tuple[np.ndarray, np.ndarray, np.ndarray]


class BottomKGroups(Groups):
    """Many samples of one family side by side; see the family's own class for its promise."""

    _format: Format
    _single: ClassVar[type[BottomK]]

    def __init__(self, n: int, k: int, seed: int | None) -> None:
        if not isinstance(k, (int, np.integer)) or not 1 <= k <= MOST_K:
            raise SketchError(f"{self._format.name}: k must be a whole number from 1 to 2^31 − 1, got {k!r}")
        self._pool = Pool(n, int(k), seed)

    @property
    def k(self) -> int:
        """Items kept a group, at most."""
        return self._pool.k

    @property
    def n(self) -> np.ndarray:
        """Rows seen by each group (int64)."""
        return self._pool.heaps["seen"].copy()

    def __len__(self) -> int:
        return len(self._pool)

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        self._pool.resize(n)

    def update(self, groups: Any, values: Any, **inputs: Any) -> None:
        """Add values to their groups. Raises `SketchError` for items of another type than those before."""
        items, rows = as_items(values)
        numbers = np.atleast_1d(np.asarray(groups))
        numbers = as_groups(numbers if rows is None else numbers[rows], len(items), len(self))
        self._update(numbers, items, rows, inputs)

    def _update(
        self, groups: np.ndarray | None, items: pa.Array, rows: np.ndarray | None, inputs: dict[str, Any]
    ) -> None:
        """Rows into their groups, or all into group 0 where `groups` is None."""
        prepared = self._prepare(len(items), rows, inputs)
        if not len(items):
            return
        pool = self._pool
        pool.items.accept(items.type, self._format.name)
        coming = np.array([len(items)]) if groups is None else np.bincount(groups, minlength=len(self))
        pool.reserve(coming)
        taken = np.empty(len(items), np.int64)
        count = self._enter(groups, len(items), kernel_columns(items), prepared, taken)
        pool.keep(items.take(pa.array(taken[:count])))

    def _prepare(self, length: int, rows: np.ndarray | None, inputs: dict[str, Any]) -> Any:
        """A family's further row-wise inputs, checked and brought to one a value."""
        if inputs:
            raise TypeError(f"{self._format.name}.update() takes no {', '.join(inputs)}")

    @abstractmethod
    def _enter(
        self, groups: np.ndarray | None, length: int, columns: Columns, prepared: Any, taken: np.ndarray
    ) -> int:
        """Run the family's kernel; fills `taken` with the rows taken and returns how many."""

    def merge(self, groups: Any, column: pa.Array) -> None:
        """Fold samples in; where two differ in k the smaller k wins. Raises `SketchError` for other bytes."""
        values = as_values(column)
        numbers = np.atleast_1d(np.asarray(groups))
        numbers = as_groups(values.per_value(numbers), len(values), len(self))
        if len(values):
            if values.kind != "binary":
                raise SketchError(f"{self._format.name}: expected a binary column, got {values.kind}")
            self._merge(numbers, self._format.read(values.offsets.astype(np.int64), values.data))

    def _merge(self, groups: np.ndarray, parts: Parts) -> None:
        self._pool.merge(groups, parts, self._format.name)

    def to_arrow(self) -> pa.Array:
        """Each group's sample in its bytes, as `binary`."""
        return self._format.write(self._pool.parts(np.arange(len(self))))

    def to_columns(self) -> pa.Table:
        """All samples exploded: `group` (int64), `priority` (double) and `item`, a row an item.

        An engine merges them without this package by keeping, of each group, the k rows of greatest
        priority (Spark: ``max_by(struct(priority, item), priority, k)``), and adding up `n`.
        """
        parts = self._pool.parts(np.arange(len(self)))
        groups = np.repeat(np.arange(len(self)), parts.samples["size"])
        return pa.table({"group": groups, "priority": parts.priority, "item": parts.items})

    def merge_columns(self, groups: Any, priority: Any, item: Any, n: Any) -> None:
        """Fold exploded samples in: items with their priorities, and the rows each group's had seen.

        `groups`, `priority` and `item` hold one entry an item, `n` one a group of this object (0 where no
        sample is folded in). Raises `SketchError` for a null item or a priority that is no number.
        """
        items, rows = as_items(item)
        numbers = as_groups(groups, len(items), len(self))
        seen = np.ascontiguousarray(n, np.int64)
        values = as_values(priority)
        if rows is not None or values.rows is not None or len(values) != len(items):
            raise SketchError(f"{self._format.name}: expected one item and one priority a row, and no nulls")
        if len(seen) != len(self) or (seen < np.bincount(numbers, minlength=len(self))).any():
            raise SketchError(f"{self._format.name}: n must hold, for each group, at least its items")
        priorities = values.numbers.astype(np.float64)
        if not np.isfinite(priorities).all():
            raise SketchError(f"{self._format.name}: priorities must be finite")
        order = np.argsort(numbers, kind="stable")
        samples = samples_of(len(self))
        samples["k"], samples["seen"] = self._pool.heaps["k"], seen
        samples["size"] = np.bincount(numbers, minlength=len(self))
        self._merge(np.arange(len(self)), Parts(samples, priorities[order], items.take(pa.array(order))))

    def __getitem__(self, group: int) -> Any:
        where = np.array([range(len(self))[group]])
        return self._single.from_bytes(self._format.write(self._pool.parts(where))[0].as_py())


class BottomK(Sketch):
    """One sample: a family's single form over the first group of its many-groups form."""

    _groups: BottomKGroups

    @classmethod
    @abstractmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        """A new sample of the family. Raises `SketchError` for a parameter out of range."""

    @property
    def k(self) -> int:
        """Items kept, at most; merging with a smaller sample lowers it."""
        return int(self._groups._pool.heaps["k"][0])

    @property
    def n(self) -> int:
        """Values seen, nulls aside."""
        return int(self._groups._pool.heaps["seen"][0])

    def __len__(self) -> int:
        return int(self._groups._pool.heaps["size"][0])

    def _update(self, values: Any, **inputs: Any) -> Self:
        items, rows = as_items(values)
        self._groups._update(None, items, rows, inputs)
        return self

    def merge(self, other: Self) -> Self:
        """Fold `other` in; exact, and the same in any order. Where they differ in k the smaller k wins."""
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
        """The sampled items, in random order: any first m of them are a sample of m themselves."""
        return self._groups._pool.parts(np.zeros(1, np.int64)).items

    def to_columns(self) -> pa.Table:
        """The items with their priorities (double), greatest first: columns `priority` and `item`."""
        return self._groups.to_columns().drop_columns("group")

    def to_bytes(self) -> bytes:
        """The sample in this package's own format (`images`); equal samples have equal bytes."""
        image: bytes = self._groups.to_arrow()[0].as_py()
        return image

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sample those bytes hold; one made without a seed goes on with fresh random numbers."""
        image = np.frombuffer(data, np.uint8)
        sample = cls._empty(1, parameter_of(image))
        parts = sample._groups._format.read(np.array([0, len(image)]), image)
        sample = cls._empty(int(parts.samples["k"][0]), parameter_of(image))
        sample._groups._merge(np.zeros(1, np.int64), parts)
        heaps = sample._groups._pool.heaps
        for name in ("state", "seeded"):
            heaps[name] = parts.samples[name]
        return sample

    def answer(self) -> dict[str, Any]:
        """``{"n": values seen, "values": the sample}``, in plain values that JSON can hold."""
        return {"n": self.n, "values": [plain(value) for value in self.values().to_pylist()]}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_bytes() == other.to_bytes()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        share = f", a share of it ±{self.error():.1%} at 95 %" if 0 < len(self) < self.n else ""
        return f"{self.family}(k={self.k}): {len(self):,} of {self.n:,} rows{share}"

    def error(self, confidence: float = 0.95) -> float:
        """How far a share read off the sample is from the stream's, at most, at that confidence.

        Hoeffding's bound sqrt(ln(2 / (1 − confidence)) / 2m) for m items; 0 while the sample is the stream.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
        if len(self) >= self.n:
            return 0.0
        return math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * len(self)))


def plain(value: Any) -> Any:
    """A value as JSON can hold it: times as ISO text, bytes as hexadecimal, decimals as text."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return value.total_seconds() if isinstance(value, timedelta) else str(value)
