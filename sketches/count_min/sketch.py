"""How often a value occurred, for any value chosen at query time: a count-min sketch.

Source: Cormode and Muthukrishnan, "An Improved Data Stream Summary: The Count-Min Sketch and its
Applications", 2005; conservative update: Estan and Varghese 2002. Hash functions and bytes are Spark's
(`count_min_sketch` in SQL, `DataFrame.stat.countMinSketch`), which can build such sketches but can't merge or
query them in SQL or Python. While few counters are in use, the bytes are in our own format, a hundredth as
long (`images_sparse`); both are read, and `to_spark` always writes Spark's.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from ..core.columns.columns import Values
from ..core.columns.weights import as_weights, total
from ..core.hashing.java_random import next_ints, seeds_of
from ..core.hashing.spark_murmur import hash_pairs
from ..core.parameters import flag, real, whole
from ..core.protocol import Sketch, SketchError
from ..core.values.item_kinds import as_items, as_longs, joint_kind, kind_with
from . import update as kernels
from .images import MAX_CELLS, MAX_DEPTH, header, parse, tail
from .images_sparse import MAGIC, parse_sparse, sparse_image

_NONE = np.empty(0, np.int64)
_NO_FACTORS = np.empty(0, np.uint64)


class CountMin(Sketch):
    """Upper estimates of the frequencies of longs, strings and binary values.

    Promise: an estimate is never too small, and with probability `confidence` it is too large by at most
    ``eps`` of all weight, for each value queried. It takes ``ceil(2 / eps)`` counters in each of
    ``ceil(log2(1 / (1 − confidence)))`` rows: 112 kB by default. `seed` selects the hash functions for longs;
    those for strings don't depend on it, as in Spark. Only sketches with the same three parameters can be
    merged, and Spark's sketches with the same three have the same bytes as `to_spark`. With a single row (a
    confidence of up to 0.5) several seeds select the same function: such sketches are equal and can be
    merged.

    The promise assumes hash functions that treat all values alike. Spark's nearly do, but they map two longs
    exactly 2^63 apart to the same counters whatever the seed, and two strings whose two 32-bit hashes are the
    same or opposite, one pair in 2^63.

    ``conservative=True`` raises only the counters that must rise: estimates are closer, but such a sketch
    can't be merged, subtracted or multiplied.

    Raises `SketchError` for parameters out of range and sketches that don't fit together, `TypeError` for
    floats and types that have no hash, and `OverflowError` for weights whose sum exceeds int64.

    Source: Cormode, Muthukrishnan, "An Improved Data Stream Summary", J. Algorithms 2005; Estan, Varghese,
    "New Directions in Traffic Measurement", SIGCOMM 2002, section 3.3.2 (conservative update); Spark's
    CountMinSketch.

    >>> import streamgauge as sg
    >>> words = sg.CountMin(eps=0.01).update(["a", "b", "a"])
    >>> words.estimate("a"), words.bounds("b")
    (2, (1, 1))
    """

    family = "count-min"

    def __init__(
        self, eps: float = 0.001, confidence: float = 0.99, seed: int = 0, conservative: bool = False
    ) -> None:
        """Raises `SketchError` for an eps or a confidence outside (0, 1), or a seed beyond int32."""
        self._depth, self._width = shape(eps, confidence)
        self._set(seed_of(seed), 0, np.zeros((self._depth, self._width), np.int64))
        self.conservative = flag("count-min", "conservative", conservative)

    def _set(self, seed: int, total: int, table: np.ndarray, item_kind: str | None = None) -> None:
        self.item_kind = item_kind
        self.seed = seed
        self.total = total
        self._table = table
        self._depth, self._width = table.shape
        self._factors = np.array(next_ints(seed, self._depth), np.uint64)
        self._inverse = kernels.inverse(self._width)

    @property
    def eps(self) -> float:
        """The largest error at this confidence, as a share of `total`."""
        return 2 / self._width

    @property
    def confidence(self) -> float:
        """Probability that one estimate is within the error."""
        return 1 - 0.5**self._depth

    @property
    def error(self) -> int:
        """``eps`` of all weight so far, rounded down."""
        return int(self.eps * self.total)

    def update(self, values: Any, weight: Any = None) -> Self:
        """Count values, each with its weight (a whole number from 0), if given.

        Raises `SketchError` for floats that aren't whole (cast them), `ValueError` for weights that are
        negative or not one per value, `OverflowError` if the sum of all weights exceeds int64.
        """
        column = accepted(values, self.item_kind)
        heavy = _NONE if weight is None else column.per_value(as_weights(weight, column.length))
        more = len(column) if weight is None else total(heavy)
        if self.total + more >= 1 << 63:
            raise OverflowError("count-min: the weights add up to more than int64 holds")
        kernel = kernels.add_conservatively if self.conservative else kernels.add
        keys, factors = keys_of(column, self._factors)
        kernel(self._table, keys, heavy, factors, *self._inverse)
        self.total += more
        self.item_kind = kind_with(self.item_kind, column)
        return self

    def estimates(self, values: Any) -> np.ndarray:
        """The estimate of every value (without nulls) as int64.

        Raises `TypeError` for values of another kind (`values.item_kinds`), `SketchError` for floats that
        aren't whole.
        """
        column = accepted(values, self.item_kind)
        out = np.empty(len(column), np.int64)
        keys, factors = keys_of(column, self._factors)
        kernels.estimate(self._table, keys, factors, *self._inverse, out)
        return out

    def estimate(self, value: Any) -> int:
        """Upper estimate of how often one value occurred: at most `error` too large, at the confidence.

        Raises `ValueError` for a column of values.
        """
        estimate = self.estimates(value)
        if len(estimate) != 1:
            raise ValueError(f"count-min: estimate takes one value, got {len(estimate)}; use estimates")
        return int(estimate[0])

    def bounds(self, value: Any) -> tuple[int, int]:
        """Lower bound, which holds with probability `confidence`, and upper bound, which always holds."""
        upper = self.estimate(value)
        return max(0, upper - self.error), upper

    def _match(self, other: CountMin, verb: str) -> None:
        if not isinstance(other, CountMin):
            raise SketchError(f"count-min: can't {verb} {type(other).__name__}")
        mine, theirs = ((s._depth, s._width, s.seed) for s in (self, other))
        if mine[:2] != theirs[:2] or (self._factors != other._factors).any():
            raise SketchError(
                f"count-min: can't {verb} sketches of different depth, width and seed, {mine} and {theirs}"
            )
        if self.conservative or other.conservative:
            raise SketchError(f"count-min: can't {verb} sketches that were updated conservatively")
        joint_kind(self.item_kind, other.item_kind, self.family, verb)

    def merge(self, other: Self) -> Self:
        """Add another sketch of the same shape and seed; equals the sketch of both streams exactly."""
        self._match(other, "merge")
        if self.total + other.total >= 1 << 63:
            raise OverflowError("count-min: the weights add up to more than int64 holds")
        self._table += other._table
        self.total += other.total
        self.item_kind = self.item_kind or other.item_kind
        return self

    def subtract(self, other: Self) -> Self:
        """Subtract a sketch of a part of this stream, such as an expired window.

        Raises `SketchError` if it can't be a part, because a counter would become negative.

        >>> import streamgauge as sg
        >>> hour, minute = sg.CountMin().update([1, 1, 2]), sg.CountMin().update([1])
        >>> hour.subtract(minute).estimate(1)
        1
        """
        self._match(other, "subtract")
        if other.total > self.total or (other._table > self._table).any():
            raise SketchError("count-min: can't subtract a sketch that is not a part of this one")
        self._table -= other._table
        self.total -= other.total
        return self

    def __sub__(self, other: Self) -> Self:
        return self.copy().subtract(other) if isinstance(other, CountMin) else NotImplemented

    def inner_product(self, other: Self) -> int:
        """Upper estimate of the size of the join: the sum over all values of the product of both frequencies.

        It is too large by at most ``eps`` times the product of both totals, with probability `confidence`.

        >>> import streamgauge as sg
        >>> sg.CountMin().update(["a", "a", "b"]).inner_product(sg.CountMin().update(["a"]))
        2
        """
        self._match(other, "multiply")
        if int(self._table.max()) * other.total < 1 << 63:
            return int((self._table * other._table).sum(axis=1).min())
        return int((self._table.astype(object) * other._table).sum(axis=1).min())

    def answer(self) -> dict[str, Any]:
        """Total weight, and the error of estimates with its confidence."""
        return {"total": self.total, "error": self.error, "confidence": self.confidence}

    def to_bytes(self) -> bytes:
        """The bytes: our own sparse format if it takes at most a quarter of Spark's, otherwise Spark's.

        Spark's bytes are followed by the kind of the items, and by the seed if the hash functions leave it
        open; Spark doesn't read these bytes.
        """
        return self._written(self.seed, self.item_kind if self.total else None)

    def _image(self) -> bytes:
        return self._written(seeds_of(next_ints(self.seed, self._depth))[0], None)

    def _written(self, seed: int, kind: str | None) -> bytes:
        sparse = None if self.conservative else sparse_image(seed, self.total, self._table, kind)
        return self.to_spark() + tail(seed, self._depth, kind) if sparse is None else sparse

    def to_spark(self) -> bytes:
        """Spark's bytes. Bytes of a conservative sketch can be queried, but must not be merged.

        >>> import streamgauge as sg
        >>> len(sg.CountMin().update("a").to_spark()), len(sg.CountMin().update("a").to_bytes())
        (112076, 57)
        """
        factors = next_ints(self.seed, self._depth)
        return header(self.total, self._depth, self._width, factors) + self._table.astype(">i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, conservative: bool = False) -> Self:
        """Read a sketch in Spark's bytes or our own; Spark's don't record conservative updates.

        Spark's bytes don't record the seed either: the sketch gets the smallest seed that gives its hash
        functions (only with a single row there are several). Raises `SketchError` for anything else.
        """
        conservative = flag("count-min", "conservative", conservative)
        if data[: len(MAGIC)] == MAGIC:
            image = parse_sparse(data)
        else:
            image = parse(data, conservative)
        sketch = cls.__new__(cls)
        sketch._set(*image)
        sketch.conservative = conservative
        return sketch

    def copy(self) -> Self:
        """Return an independent equal sketch."""
        return self._of_my_kind(self.from_bytes(self.to_bytes(), self.conservative))

    def _untold(self) -> tuple[Any, ...]:
        return (self.conservative,)

    def __repr__(self) -> str:
        return (
            f"CountMin({self._depth} × {self._width}, seed={self.seed}, total={self.total:,}; "
            f"estimates at most {self.error:,} too large at {self.confidence:.1%})"
        )


def seed_of(seed: int) -> int:
    """A seed as Spark accepts it. Raises `SketchError` for one beyond int32."""
    return whole("count-min", "seed", seed, -(1 << 31), (1 << 31) - 1)


def shape(eps: float, confidence: float) -> tuple[int, int]:
    """Depth and width as Spark computes them. Raises `SketchError` for parameters out of range."""
    eps = real("count-min", "eps", eps, 0, 1, within=True)
    confidence = real("count-min", "confidence", confidence, 0, 1, within=True)
    width = math.ceil(2 / eps)
    depth = math.ceil(-math.log1p(-confidence) / math.log(2))
    if depth > MAX_DEPTH or depth * width > MAX_CELLS:
        raise SketchError(f"count-min: eps {eps} and confidence {confidence} take {depth} × {width} counters")
    return depth, width


def accepted(values: Any, item_kind: str | None) -> Values:
    """Convert values to longs, strings or binary, of this kind if it is known.

    Raises `SketchError` for floats that aren't whole.
    """
    column = as_items(values, item_kind, "count-min")
    if column.kind != "float64":
        return column
    if (longs := as_longs(column)) is None:
        raise SketchError("count-min: counts whole numbers, strings and binary, not floats; cast them")
    return longs


def keys_of(column: Values, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernels' input: longs with the rows' factors, or pairs of hashes without factors."""
    if column.kind in ("string", "binary"):
        return hash_pairs(column), _NO_FACTORS
    return column.numbers.view(np.int64), factors
