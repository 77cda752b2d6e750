"""The usual values of any number of keys, in state of fixed size: hashed means and variances."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..packed_bytes import packed, unpacked

_DEPTH, _WIDTH = 4, 1024
_NONE = np.zeros((2, _DEPTH, _WIDTH), np.float32)


class Usual(NamedTuple):
    """A key's mean per window, and its variance over windows."""

    mean: float
    variance: float


class HashedMoments:
    """Count-min sketches of windows, folded into exponentially weighted means and variances of their cells.

    The smallest of a key's cells is at least its mean, because other keys only add to it. They are equal
    unless other keys share all of its cells: with 1,000 keys per window, none do in 98 of 100 cases.

    Source: E. Schubert, M. Weiler, H.-P. Kriegel, "SigniTrend: scalable detection of emerging topics in
    textual streams by hashed significance thresholds", KDD 2014; G. Cormode, S. Muthukrishnan, "An improved
    data stream summary: the count-min sketch and its applications", J. Algorithms 55 (2005).

    >>> cells = HashedMoments()
    >>> for _ in range(50):
    ...     cells.learn({"#rain": 4.0}, weight=0.1)
    >>> round(cells.usual("#rain").mean, 1), cells.usual("#snow").mean
    (4.0, 0.0)
    """

    def __init__(self) -> None:
        self._moments = _NONE.copy()

    def usual(self, key: str) -> Usual:
        """A key's usual value, by the cell that the fewest other keys share."""
        means, variances = self._moments
        places = _places(key)
        cells = means[range(_DEPTH), places]
        row = int(cells.argmin())
        return Usual(float(cells[row]), float(variances[row, places[row]]))

    def learn(self, values: Mapping[str, float], weight: float) -> None:
        """Add a window. A key that isn't named counts as 0."""
        window = np.zeros((_DEPTH, _WIDTH), np.float32)
        for key, value in values.items():
            window[range(_DEPTH), _places(key)] += value
        means, variances = self._moments
        difference = window - means
        means += np.float32(weight) * difference
        variances[:] = np.float32(1 - weight) * (variances + np.float32(weight) * difference * difference)

    def fade(self, windows: int, weight: float) -> None:
        """Add a number of windows in which no key had rows."""
        for _ in range(min(windows, math.ceil(40 / weight))):
            self.learn({}, weight)

    def text(self) -> str:
        """The whole state as text; `of_text` restores it to the last bit."""
        return packed(self._moments.tobytes())

    @classmethod
    def of_text(cls, text: str) -> HashedMoments:
        """Restore the state from the result of `text`."""
        moments = cls()
        moments._moments = np.frombuffer(unpacked(text), np.float32).reshape(_NONE.shape).copy()
        return moments


def _places(key: str) -> list[int]:
    digest = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=4 * _DEPTH).digest()
    return [int.from_bytes(digest[at : at + 4], "little") % _WIDTH for at in range(0, 4 * _DEPTH, 4)]
