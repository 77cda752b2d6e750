"""The common answers of all sketches of distinct values, single and in groups."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .parameters import deviations
from .protocol import Groups, Sketch, SketchError
from .values.image_columns import as_images, image_column


class DistinctCounter(Sketch):
    """A sketch that estimates how many different values there were, within bounds."""

    @abstractmethod
    def estimate(self) -> float:
        """Estimate the number of distinct values so far."""

    @abstractmethod
    def bounds(self, std_devs: int = 2) -> tuple[float, float]:
        """(lower, upper) at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 % confidence."""

    def answer(self) -> dict[str, float]:
        """Return the estimate and its bounds at 95.4 % confidence."""
        lower, upper = self.bounds()
        return {"estimate": self.estimate(), "lower": lower, "upper": upper}

    def _in_words(self) -> str:
        lower, upper = self.bounds()
        return f"{self.estimate():,.0f} distinct, {lower:,.0f} to {upper:,.0f} at 95.4 %"


class DistinctGroups(Groups):
    """Many sketches of distinct values in one store, whose array `sketches` has a row for each."""

    family: ClassVar[str]
    _n: int
    _store: Any

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        if n > len(self._store.sketches):
            self._store = self._with_sketches(max(n, len(self._store.sketches) * 3 // 2))
        self._n = max(n, self._n)

    @abstractmethod
    def _with_sketches(self, n: int) -> Any:
        """Return the store grown to `n` sketches; the new ones are empty."""

    @abstractmethod
    def _estimates(self) -> np.ndarray:
        """Return each group's estimate."""

    def estimates(self) -> np.ndarray:
        """Estimate the number of distinct values in each group so far (float64)."""
        return self._estimates()

    @abstractmethod
    def _bounds(self, std_devs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return each group's bounds at 1, 2 or 3 standard deviations."""

    def bounds(self, std_devs: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) of each group at 1, 2 or 3 standard deviations: 68.3, 95.4 or 99.7 % confidence.

        Raises `SketchError` for any other number of them.
        """
        return self._bounds(deviations(self.family, std_devs))

    def answers(self, **question: Any) -> pa.Array:
        """Return each group's estimate and its bounds at 95.4 % confidence, as a struct of three doubles."""
        columns = [pa.array(column) for column in (self._estimates(), *self._bounds(2))]
        return pa.StructArray.from_arrays(columns, ["estimate", "lower", "upper"])

    def _place(self, group: int) -> int:
        """Return the group's number, counted from 0. Raises `IndexError` if there is no such group."""
        if not -self._n <= group < self._n:
            raise IndexError(f"group {group} of {self._n}")
        return group % self._n


class StoredAsImages(DistinctGroups):
    """Groups with DataSketches images, which kernels read and write."""

    _reasons: ClassVar[dict[int, str]]
    """What is wrong with an image, by the number that `_fold` returns."""

    @abstractmethod
    def _images(self, store: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the images of the first `n` sketches of a store, concatenated, and n + 1 byte offsets."""

    @abstractmethod
    def _fold(self, groups: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> tuple[int, int]:
        """Merge images, all or none; return the first bad image and its fault (0 if there is none)."""

    def to_arrow(self) -> pa.Array:
        """Return each group's image as Spark and DataSketches read it, in group order, as `binary`."""
        return image_column(*self._images(self._store, self._n))

    def image(self, group: int) -> bytes:
        """Return one group's image."""
        one = self._store._replace(sketches=self._store.sketches[group : group + 1])
        return self._images(one, 1)[0].tobytes()

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge serialised sketches: `column[i]` into group `groups[i]`; nulls are skipped.

        Accepts images of every form and version that DataSketches or Spark writes. Raises `SketchError`,
        naming the row, for other bytes; then nothing was merged.
        """
        numbers, images = as_images(groups, column, self._n, self.family)
        at, fault = self._fold(numbers, images.offsets, images.data)
        if fault:
            size = int(images.offsets[at + 1] - images.offsets[at])
            raise self.refused(f"row {images.row(at)} is not", size, fault)

    @classmethod
    def refused(cls, what: str, size: int, fault: int) -> SketchError:
        """Return the error for bytes in which `_fold` found a fault."""
        message = f"{what} a sketch of Apache DataSketches ({size} bytes): {cls._reasons[fault]}"
        return SketchError(f"{cls.family}: {message}")
