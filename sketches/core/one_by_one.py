"""Many sketches of a family that has no arrays for many: an object a group, for what others stored."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .arrays import as_array, is_scalar
from .group_numbers import as_groups
from .image_columns import as_images
from .protocol import Groups, Sketch, SketchError


class OneByOne(Groups):
    """One sketch object a group, made when the group first sees a value.

    Subclasses name their sketch as `_single`, and in `_read` the parameters that its `from_bytes` needs.
    Updates cost a call a group and batch, merges a call a row.
    """

    _single: ClassVar[type[Sketch]]
    _read: ClassVar[tuple[str, ...]] = ()

    def __init__(self, n: int = 0, **params: Any) -> None:
        self._empty: Any = self._single(**params)
        self._params = params
        self._n = n
        self._sketches: dict[int, Any] = {}

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Add each group's rows to its sketch, in their order. Raises `IndexError` for unknown groups."""
        column = as_array(values)
        per_row = {
            name: given if is_scalar(given) else _by_row(name, given, len(column))
            for name, given in inputs.items()
        }
        numbers = as_groups(groups, len(column), self._n)
        order = np.argsort(numbers, kind="stable")
        ends = np.flatnonzero(np.diff(numbers[order])) + 1
        for mine in np.split(order, ends) if len(order) else ():
            chosen = pa.array(mine)
            given = {name: one if is_scalar(one) else one.take(chosen) for name, one in per_row.items()}
            self._at(int(numbers[mine[0]])).update(column.take(chosen), **given)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Fold serialised sketches in, nulls skipped. Raises `SketchError`, naming the row, for others."""
        numbers, values = as_images(groups, column, self._n, self._single.family)
        for at, image in enumerate(values.to_arrow().to_pylist() if len(values) else ()):
            try:
                self._at(int(numbers[at])).merge(self._from_bytes(image))
            except SketchError as error:
                raise SketchError(f"row {values.row(at)}: {error}") from None

    def to_arrow(self) -> pa.Array:
        """The sketches' images as binary, in group order."""
        empty = self._empty.to_bytes()
        found = (self._sketches.get(group) for group in range(self._n))
        return pa.array([empty if one is None else one.to_bytes() for one in found], pa.binary())

    def __getitem__(self, group: int) -> Any:
        if not -self._n <= group < self._n:
            raise IndexError(f"group {group} of {self._n}")
        return self._sketches.get(group % self._n, self._empty).copy()

    def _at(self, group: int) -> Any:
        if group not in self._sketches:
            self._sketches[group] = self._empty.copy()
        return self._sketches[group]

    def _from_bytes(self, image: bytes) -> Any:
        told = {name: self._params[name] for name in self._read if name in self._params}
        return self._single.from_bytes(image, **told)


def _by_row(name: str, given: Any, rows: int) -> pa.Array:
    """An input, one a row."""
    matrix = isinstance(given, np.ndarray) and given.ndim == 2
    array = as_array(list(given) if matrix else given)
    if array.null_count:
        raise ValueError(f"expected {name}= without nulls; filter those rows out")
    if len(array) != rows:
        raise ValueError(f"expected one {name} a row, {rows} in all, got {len(array)}")
    return array
