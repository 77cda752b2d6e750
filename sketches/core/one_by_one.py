"""Groups without shared arrays, for stored families: one sketch object per group."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .columns.arrays import as_array, as_input, is_scalar
from .groups.group_numbers import as_groups
from .protocol import Groups, Sketch, SketchError
from .values.image_columns import as_images
from .values.item_kinds import as_items, kind_with


class Staged(Sketch):
    """A sketch that validates its input before it changes anything.

    A sketch that can validate without a copy overrides `_staged` and `_add_staged`, and composes `update` of
    the two.
    """

    def _staged(self, values: Any, *args: Any, **inputs: Any) -> Any:
        """Convert rows for `_add_staged`. Raises what `update` raises for them, and changes nothing."""
        updated = self.copy()
        updated.update(values, *args, **inputs)
        return updated

    def _add_staged(self, rows: Any) -> None:
        """Add rows that `_staged` has accepted."""
        vars(self).update(rows.__getstate__())

    def _refuse_merge(self, other: Any, coming: int = 0) -> None:
        """Raise `SketchError` if `other` can't be merged, after others with `coming` values in all."""


class OneByOne(Groups):
    """One sketch object per group, created at the group's first value.

    Subclasses pass the parameters that the `from_bytes` of their sketch needs in `_read`. Updates cost one
    call per group and batch, merges one call per row. The sketch is `Staged`, so all groups' rows are
    validated before any group changes.
    """

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

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add each group's rows to its sketch, in their order. Raises `IndexError` for unknown groups."""
        self._update(groups, values)

    def _update(self, groups: np.ndarray, values: Any, **inputs: Any) -> None:
        """Add rows with the inputs of a family's `update`."""
        column = as_array(values)
        item_kind = None
        if self.aggregate.hashes:  # one kind for all groups, because they share a column
            item_kind = kind_with(self.item_kind, as_items(column, self.item_kind, self._single.family))
        per_row = {
            name: given if is_scalar(given) else _by_row(name, given, len(column))
            for name, given in inputs.items()
        }
        numbers = as_groups(groups, len(column), self._n)
        order = np.argsort(numbers, kind="stable")
        ends = np.flatnonzero(np.diff(numbers[order])) + 1
        staged = []
        for mine in np.split(order, ends) if len(order) else ():
            chosen, group = pa.array(mine), int(numbers[mine[0]])
            given = {name: one if is_scalar(one) else one.take(chosen) for name, one in per_row.items()}
            staged.append((group, self._of_kind(group, item_kind)._staged(column.take(chosen), **given)))
        for group, rows in staged:
            one = self._at(group)
            one._add_staged(rows)
            one.item_kind = item_kind
        self.item_kind = item_kind

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge serialised sketches; nulls are skipped.

        Raises `SketchError`, naming the row, for other bytes.
        """
        numbers, values = as_images(groups, column, self._n, self._single.family)
        others, coming = [], Counter[int]()
        for at, image in enumerate(values.to_arrow().to_pylist() if len(values) else ()):
            group = int(numbers[at])
            try:
                other = self._from_bytes(image)
                self._known(group)._refuse_merge(other, coming[group])
            except SketchError as error:
                raise SketchError(f"row {values.row(at)}: {error}") from None
            others.append((group, other))
            coming[group] += getattr(other, "n", 0)
        before = {group: dict(vars(self._at(group))) for group in coming}
        try:
            for group, other in others:
                self._at(group).merge(other)
        except Exception:  # families replace their arrays and peers rather than modify them
            for group, state in before.items():
                vars(self._at(group)).update(state)
            raise

    def to_arrow(self) -> pa.Array:
        """Return the sketches' images as binary, in group order."""
        empty = self._empty.to_bytes()
        sketches = (self._sketches.get(group) for group in range(self._n))
        return pa.array([empty if one is None else one.to_bytes() for one in sketches], pa.binary())

    def __getitem__(self, group: int) -> Any:
        if not -self._n <= group < self._n:
            raise IndexError(f"group {group} of {self._n}")
        return self._kind_to(self._sketches.get(group % self._n, self._empty).copy())

    def _known(self, group: int) -> Any:
        """Return the group's sketch for reading, or the empty one if the group has no values."""
        return self._sketches.get(group, self._empty)

    def _of_kind(self, group: int, item_kind: str | None) -> Any:
        """Return the group's sketch for reading, with the kind of items that all groups share."""
        known = self._known(group)
        if known.item_kind == item_kind:
            return known
        one = known.copy()
        one.item_kind = item_kind
        return one

    def _at(self, group: int) -> Any:
        if group not in self._sketches:
            self._sketches[group] = self._empty.copy()
        return self._sketches[group]

    def _from_bytes(self, image: bytes) -> Any:
        params = {name: self._params[name] for name in self._read if name in self._params}
        return self._single.from_bytes(image, **params)


def _by_row(name: str, given: Any, rows: int) -> pa.Array:
    """Expand an input to one value per row."""
    matrix = isinstance(given, np.ndarray) and given.ndim == 2
    array = as_input(name, list(given) if matrix else given)
    if array.null_count:
        raise ValueError(f"expected {name}= without nulls; filter those rows out")
    if len(array) != rows:
        raise ValueError(f"expected one {name} a row, {rows} in all, got {len(array)}")
    return array
