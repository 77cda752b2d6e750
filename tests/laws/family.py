"""What a family must say of itself to be put under the laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from streamgauge.operators.families import Family as Line

from ..cases import each
from .streams import columns

Promise = Callable[[Any, list[Any]], float]
"""Holds a sketch to what it promises of the values it has seen: the error in times of what is promised."""


def _nothing(rows: np.ndarray) -> dict[str, Any]:
    return {}


def _bytes(sketch: Any) -> Any:
    return sketch.to_bytes()


@dataclass(frozen=True)
class Family:
    """One line of the table.

    `line` is its line in the registry; `single` and `groups` are the classes; `params` theirs, with
    `typed` naming a parameter that depends on the kind of column; `others` further parameters that may be
    merged with the first. `inputs` gives the row-wise inputs of rows by their numbers. `promise` holds a
    sketch to what it promises (`promises`), kept at `confidence`; `mixed` does so for one merged from
    those of `others`, where that is less; `loose` is the share of the bound that errors reach at least
    now and then.

    `cut`, `parts`: whether any cut into batches, and merged parts, equal the whole to the byte, and where not
    whether they keep its promise. `order`: whether merging in any order gives the same `view`, the bytes.
    `resumes`: whether a sketch read from bytes goes on as the one written would; no image of DataSketches
    holds KLL's coins. `repeats`: whether a second run gives the same bytes; the package's coins are seeded by
    the clock. `without` names streams that a family refuses to take. `depths`: how many values fill a sketch
    to either side of each change of its form.
    """

    line: Line
    single: Any
    groups: Any
    params: dict[str, Any]
    kinds: tuple[str, ...]
    promise: Promise
    others: tuple[dict[str, Any], ...] = ()
    typed: dict[str, dict[str, Any]] = field(default_factory=dict)
    inputs: Callable[[np.ndarray], dict[str, Any]] = _nothing
    seeded: bool = False
    confidence: float = 1.0
    loose: float = 0.0
    mixed: Promise | None = None
    cut: bool = True
    parts: bool = False
    order: bool = True
    view: Callable[[Any], Any] = _bytes
    repeats: bool = True
    resumes: bool = True
    without: tuple[str, ...] = ()
    depths: tuple[int, ...] = (0, 1, 2, 50, 51, 3000)

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.line.class_name

    def __str__(self) -> str:
        return self.name

    def _params(self, kind: str, seed: int, other: int | None) -> dict[str, Any]:
        params = self.params if other is None else {**self.params, **self.others[other]}
        return params | self.typed.get(kind, {}) | ({"seed": seed} if self.seeded else {})

    def new(self, kind: str, seed: int = 1, other: int | None = None) -> Any:
        """An empty sketch, with the `other`-th parameters if given."""
        return self.single(**self._params(kind, seed, other))

    def many(self, n: int, kind: str, seed: int = 1) -> Any:
        """`n` empty groups."""
        return self.groups(n, **self._params(kind, seed, None))

    def read(self, image: bytes, kind: str) -> Any:
        """The sketch of those bytes."""
        return self.single.from_bytes(image, **self.typed.get(kind, {}))

    def columns(self) -> list[tuple[str, str, Any]]:
        """(name, kind, column) of every stream that the family takes."""
        return [case for case in columns(*self.kinds) if case[0] not in self.without]

    def outcome(self, sketch: Any) -> Any:
        """What two runs over the same rows have in common."""
        return sketch.to_bytes() if self.repeats else sketch.n

    def feed(self, sketch: Any, column: Any, start: int = 0) -> Any:
        """Add a column whose first row is number `start` of the stream."""
        return sketch.update(column, **self.inputs(np.arange(start, start + len(column))))

    def feed_groups(self, groups: Any, numbers: np.ndarray, column: Any, start: int = 0) -> None:
        """Add a column to many groups."""
        groups.update(numbers, column, **self.inputs(np.arange(start, start + len(column))))


each_family = partial(each, by=lambda family, **_: family.name)
"""`each`, with one test for each family: `-k` then chooses among them."""
