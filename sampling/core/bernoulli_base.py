"""The base of samples of a share p of the rows; a family chooses the rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.compilation.jit import lean
from ...sketches.core.parameters import real
from ...sketches.core.protocol import SketchError
from .bottom_k import BottomK, BottomKGroups
from .images import MOST_K, Format
from .items import Rows, bits_of
from .pool import Pool
from .priority import absorb, exponential_below, item_bits


@lean
def _priorities(states, most, items, out):
    for row in range(len(states)):
        out[row] = -exponential_below(most, absorb(states[row], item_bits(items, row)))


def of_rows(groups: np.ndarray | None, chosen: np.ndarray) -> np.ndarray:
    """Return the groups of the sampled rows; all group 0 if there are no group numbers."""
    return np.zeros(len(chosen), np.int64) if groups is None else groups[chosen]


class ShareGroups(BottomKGroups):
    """Samples of a share p of the rows; a family chooses them (`_choose`)."""

    _pool: Pool

    def __init__(self, name: str, number: int, n: int, p: float, seed: int | None) -> None:
        p = real(name, "p", p, 0.0, 1.0)
        if not p:
            raise SketchError(f"{name}: p must be a probability above 0, up to 1, got {p!r}")
        self._format = Format(name, number, p)
        # A row is sampled if its exponential number is below this, with probability p. For p = 1, this is
        # all but 10^−304.
        self._most = -math.log1p(-p) if p < 1.0 else 700.0
        self._pool = Pool(n, MOST_K, seed)

    @property
    def p(self) -> float:
        """The probability with which a row, or a key, is sampled."""
        return self._format.parameter

    def _update(self, groups: np.ndarray | None, rows: Rows, inputs: dict[str, Any]) -> None:
        prepared = self._prepare(rows, **inputs)
        if not len(rows.items):
            return
        pool = self._pool
        items = pool.accept(rows.items, self._format.name)
        chosen, states = self._choose(groups, len(items), prepared)
        if groups is None:
            pool.heaps["seen"][0] += len(items)
        else:
            pool.heaps["seen"] += np.bincount(groups, minlength=len(self))
        items = items.take(pa.array(chosen))
        priorities = np.empty(len(chosen), np.float64)
        _priorities(states, self._most, bits_of(items), priorities)
        pool.add(of_rows(groups, chosen), priorities, items)

    def _prepare(self, rows: Rows, *args: Any, **inputs: Any) -> Any:
        """Validate a family's further row-wise inputs, and expand them to one per item."""
        return None

    @abstractmethod
    def _choose(self, groups: np.ndarray | None, n: int, prepared: Any) -> tuple[np.ndarray, np.ndarray]:
        """Choose items out of `n`, and draw a random state for each."""


class Share(BottomK):
    """A single such sample."""

    _groups: ShareGroups

    @property
    def p(self) -> float:
        """The probability with which a row, or a key, is sampled."""
        return self._groups.p

    def __repr__(self) -> str:
        return f"{self.family}(p={self.p}): {len(self):,} of {self.n:,} rows"
