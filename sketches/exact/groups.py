"""Exact aggregates beside the approximate ones: counts, sums, means, variances, extremes.

They follow the `Groups` protocol, so a table of sketches stores them like any other column, but in plain
Arrow types that SQL can merge by itself:

| aggregate | column | merges in SQL by |
|---|---|---|
| `CountGroups` | int64 | `sum` |
| `SumGroups` | decimal(38, 0) of whole numbers, decimal(38, s) of decimals, or double | `sum` |
| `MeanGroups` | struct(n int64, sum double, of decimals decimal(38, s)) | `sum` of both |
| `VarianceGroups` | struct(n int64, mean double, m2 double) | Chan's formula |
| `MinGroups`, `MaxGroups` | the column's type | `min`, `max` |
| `FirstGroups`, `LastGroups` | struct(time timestamp, partition int32, offset int64, value) | `min`, `max` |

Nulls are skipped; of a list column every element counts. A group that saw nothing is null (a count is 0).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..core.aggregated import Aggregated
from ..core.columns.arrays import is_scalar
from ..core.columns.column_kinds import as_type, summands
from ..core.columns.columns import Values, as_array, as_values, flattened
from ..core.groups.group_numbers import as_groups, grown
from ..core.protocol import Groups, SketchError
from ..core.values.decimals import WHOLE, halves, whole
from . import update as kernels
from .extremes import FirstGroups, LastGroups, MaxGroups, MinGroups

__all__ = [
    "CountGroups",
    "FirstGroups",
    "LastGroups",
    "MaxGroups",
    "MeanGroups",
    "MinGroups",
    "SumGroups",
    "VarianceGroups",
]

_NO_COUNTS = np.empty(0, np.int64)
_MOST = 1 << 30
DIGITS = 28
"""The most digits of decimals with an exact sum: the sum of 2³² such decimals has at most 38 digits."""
_MOST_DECIMAL = (2**32 * 10**DIGITS) >> 64


class _Arrays(Groups):
    """State arrays of one length, grown together; subclasses define them with their dtypes."""

    _state: ClassVar[dict[str, Any]]

    def __init__(self, n: int = 0) -> None:
        self._n = 0
        self._arrays = {name: np.zeros(0, dtype) for name, dtype in self._state.items()}
        self.resize(n)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        if n > self._n:
            if n > len(next(iter(self._arrays.values()))):
                room = max(n, 2 * self._n)
                self._arrays = {name: grown(array, room) for name, array in self._arrays.items()}
            self._n = n

    def _at(self, name: str) -> np.ndarray:
        return self._arrays[name][: self._n]

    def answers(self, **question: Any) -> pa.Array:
        """Return the plain value of every group, in group order; null if there is none."""
        return self.to_arrow()

    def __getitem__(self, group: int) -> Any:
        return self.answers()[range(self._n)[group]].as_py()


class CountGroups(_Arrays):
    """Rows per group, or non-null values per group if a column is given. Exact.

    >>> counts = CountGroups(2)
    >>> counts.update([0, 1, 0], None)
    >>> counts.update([0, 0], ["a", None])
    >>> counts.to_arrow().to_pylist(), counts[0]
    ([3, 1], 3)
    """

    aggregate: ClassVar = Aggregated(spark_merge="sum")

    _state: ClassVar = {"n": np.int64}

    def update(self, groups: np.ndarray, values: Any = None) -> None:
        """Count rows (`values` None) or the values that are not null."""
        if values is None and type(groups) is np.ndarray and groups.strides == (0,) and len(groups):
            # One number for all rows, as an array of stride 0.
            self._at("n")[as_groups(groups[:1], 1, self._n)] += len(groups)
            return
        if values is None:
            length = 1 if is_scalar(groups) else len(groups)
            kernels.count(as_groups(groups, length, self._n), self._at("n"))
            return
        array = as_array(values)
        numbers, (_, rows) = as_groups(groups, len(array), self._n), flattened(array)
        kernels.count(numbers if rows is None else numbers[rows], self._at("n"))

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add counts."""
        values = as_values(column)
        if len(values) and values.kind != "int64":
            raise SketchError(f"count: expected a column of int64 to merge, got {values.kind}")
        numbers = values.per_value(as_groups(groups, values.length, self._n))
        kernels.add_counts(numbers, values.numbers, self._at("n"))

    def to_arrow(self) -> pa.Array:
        """Return counts as int64, 0 for a group without values."""
        return pa.array(self._at("n").copy())

    def __getitem__(self, group: int) -> int:
        return int(self._at("n")[group])


def exact_sum(leaf: pa.DataType) -> pa.DataType | None:
    """Return the type of the exact sum of decimals; None for other types, and for decimals with too many
    digits."""
    if pa.types.is_decimal128(leaf) and leaf.precision <= DIGITS and leaf.scale >= 0:
        return pa.decimal128(38, leaf.scale)
    return None


def summed_as(leaf: pa.DataType) -> dict[str, Any]:
    """Return the type of a column's sum: int64 (stored wider) for integers, a decimal for decimals, or
    double."""
    real = pa.types.is_floating(leaf) or pa.types.is_decimal(leaf)
    return {**summands(leaf), "type": str(exact_sum(leaf) or ("double" if real else "int64"))}


def averaged_as(leaf: pa.DataType) -> dict[str, Any]:
    """Return the type of a mean's sum: a decimal if it is exact, otherwise double."""
    exact = exact_sum(leaf)
    return summands(leaf) if exact is None else {"type": str(exact)}


class SumGroups(_Arrays):
    """Sum per group, in decimal(38, 0) for integers and booleans, in double for floats.

    Integer sums are exact: they are computed in 128 bits, so no sum of fewer than 2³² values overflows, and
    the column is wider than int64 as well, because one bad value must not end a stream. Sums of decimals with
    up to 28 digits are exact in the same way if `type` is a decimal with 38 digits. Float sums are
    compensated (Neumaier 1974): for one pass, the error is about one rounding of the result plus n·2⁻¹⁰⁶ of
    the sum of magnitudes; each merge adds one rounding, so merging is commutative, and associative up to that
    rounding. `type` fixes "int64" (integers), "double" or a decimal before the first value; otherwise the
    first column decides, and decimals are summed in double.

    >>> sums = SumGroups(3)
    >>> sums.update([0, 0, 1], [2, 3, None])
    >>> sums.answers().to_pylist(), sums.to_arrow().type
    ([5, None, None], Decimal128Type(decimal128(38, 0)))
    """

    aggregate: ClassVar = Aggregated(of_column=summed_as, spark_merge="sum")

    _state: ClassVar = {
        "high": np.int64,
        "low": np.int64,
        "total": float,
        "lost": float,
        "n": np.int64,
        "seen": np.uint8,
    }

    def __init__(self, n: int = 0, type: Any = None) -> None:
        kind = None if type is None else as_type("sum", type)
        self._decimal = kind if kind is not None and pa.types.is_decimal(kind) else None
        self._kind = None if kind is None else ("float64" if pa.types.is_floating(kind) else "int64")
        super().__init__(n)

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add numbers. Raises `TypeError` for other types and for a change between whole and float."""
        if self._decimal is not None:
            self._update_decimals(groups, values, self._decimal)
            return
        numbers = _summands(values, "sum")
        groups = numbers.per_value(as_groups(groups, numbers.length, self._n))
        if not len(numbers):
            return
        if self._kind not in (None, numbers.kind):
            raise TypeError(
                f"sum: this column was {self._kind} and is {numbers.kind} now; cast it to one of them"
            )
        self._kind = numbers.kind
        if numbers.kind == "int64":
            whole_numbers = numbers.numbers
            # Sign-extend an int64; an unsigned number has no sign.
            above = np.zeros_like(whole_numbers) if numbers.unsigned else whole_numbers >> np.int64(63)
            self._add_whole(groups, above, whole_numbers)
        else:
            total, lost, n = self._at("total"), self._at("lost"), self._at("n")
            kernels.add_real(groups, numbers.numbers, total, lost, n, _NO_COUNTS)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add sums. Raises `SketchError` for decimals that are not sums."""
        column = as_array(column)
        if not pa.types.is_decimal(column.type):
            if self._decimal is not None and not pa.types.is_null(column.type):
                raise SketchError(f"sum: expected a column of {self._decimal} to merge, got {column.type}")
            self.update(groups, column)
            return
        if self._kind == "float64":
            raise SketchError("sum: expected a column of double to merge, got whole numbers")
        kept = column.is_valid().to_numpy(zero_copy_only=False)
        above, below = halves(column.filter(pa.array(kept)), "sum", self._decimal or WHOLE)
        most = _MOST if self._decimal is None else _MOST_DECIMAL
        if len(above) and (int(above.min()) < -most - 1 or int(above.max()) > most):
            what = "94 bits is not a sum of int64 values" if self._decimal is None else "38 digits is no sum"
            raise SketchError(f"sum: a number of more than {what}")
        self._kind = "int64"
        self._add_whole(as_groups(groups, len(column), self._n)[kept], above, below)

    def _update_decimals(self, groups: Any, values: Any, kind: pa.DataType) -> None:
        column = as_array(values)
        items, rows = flattened(column)
        numbers = as_groups(groups, len(column), self._n)
        if exact_sum(items.type) != kind:
            if pa.types.is_null(items.type) or not len(items):
                return
            raise TypeError(f"sum: this column was of {kind} and is of {items.type} now; cast it to one type")
        above, below = halves(items, "sum", kind)
        self._add_whole(numbers if rows is None else numbers[rows], above, below)

    def _add_whole(self, groups: np.ndarray, above: np.ndarray, below: np.ndarray) -> None:
        kernels.add_whole(groups, above, below, self._at("high"), self._at("low"), self._at("seen"))

    def to_arrow(self) -> pa.Array:
        """Return sums as decimal or double."""
        if self._kind == "float64":
            return pa.array(_compensated(self._at("total"), self._at("lost")), mask=self._at("n") == 0)
        return whole(self._at("high"), self._at("low"), self._at("seen") != 0, self._decimal or WHOLE)

    def answers(self, **question: Any) -> pa.Array:
        """Return sums as int64, decimal or double; integer sums are decimals if one exceeds int64."""
        high, low = self._at("high"), self._at("low")
        if self._kind == "float64" or self._decimal is not None or (high != low >> np.int64(63)).any():
            return self.to_arrow()
        return pa.array(low.copy(), mask=self._at("seen") == 0)


class MeanGroups(_Arrays):
    """Mean per group, as its count and compensated sum in double; exact up to rounding.

    If `type` is a decimal with 38 digits, the sum is an exact sum of decimals.

    >>> means = MeanGroups(1)
    >>> means.update([0, 0, 0], [1, 2, None])
    >>> means[0], means.to_arrow().to_pylist()
    (1.5, [{'n': 2, 'sum': 3.0}])
    """

    aggregate: ClassVar = Aggregated(of_column=averaged_as, spark_merge="struct_sum")

    _state: ClassVar = {"total": float, "lost": float, "n": np.int64}

    def __init__(self, n: int = 0, type: Any = None) -> None:
        exact = type is not None and pa.types.is_decimal(as_type("mean", type))
        self._sums = SumGroups(n, type) if exact else None
        super().__init__(n)

    def resize(self, n: int) -> None:
        """See `Groups`."""
        super().resize(n)
        if self._sums is not None:
            self._sums.resize(n)

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add numbers. Raises `TypeError` for other types."""
        if self._sums is not None:
            column = as_array(values)
            rows = flattened(column)[1]
            numbers = as_groups(groups, len(column), self._n)
            self._sums.update(numbers, column)
            kernels.count(numbers if rows is None else numbers[rows], self._at("n"))
            return
        groups, numbers = _doubles(groups, values, self._n, "mean")
        kernels.add_real(groups, numbers, self._at("total"), self._at("lost"), self._at("n"), _NO_COUNTS)

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add counts and sums."""
        if self._sums is not None:
            numbers, (n,) = _fields(groups, column, self._n, "mean", {"n": np.int64})
            if len(numbers):
                sums = pc.struct_field(as_array(column).drop_null(), "sum")
                if sums.null_count:
                    raise SketchError("mean: field sum must be numbers without nulls")
                self._sums.merge(numbers, sums)
                kernels.add_counts(numbers, n, self._at("n"))
            return
        groups, (n, total) = _fields(groups, column, self._n, "mean", {"n": np.int64, "sum": float})
        kernels.add_real(groups, total, self._at("total"), self._at("lost"), self._at("n"), n)

    def to_arrow(self) -> pa.Array:
        """Return structs of n and sum."""
        n = self._at("n")
        if self._sums is not None:
            total: Any = self._sums.to_arrow()
        else:
            total = pa.array(_compensated(self._at("total"), self._at("lost")))
        return pa.StructArray.from_arrays(
            [pa.array(n.copy()), total], names=["n", "sum"], mask=pa.array(n == 0)
        )

    def answers(self, **question: Any) -> pa.Array:
        """Return means as double."""
        n = self._at("n")
        if self._sums is not None:
            sums = self._sums.to_arrow().to_pylist()
            means = [None if total is None else float(Fraction(total) / int(k)) for total, k in zip(sums, n)]
            return pa.array(means, pa.float64())
        total = _compensated(self._at("total"), self._at("lost"))
        return pa.array(np.divide(total, n, out=np.zeros(len(n)), where=n > 0), mask=n == 0)


class VarianceGroups(_Arrays):
    """Count, mean and squared deviations per group; answers the sample variance (n − 1), or its root.

    One pass and numerically stable (Welford 1962, merged by Chan, Golub and LeVeque 1979); merging is
    commutative, and associative up to rounding. Null below two values, as SQL's `var_samp`.

    >>> spread = VarianceGroups(1)
    >>> spread.update([0, 0, 0], [1.0, 2.0, 3.0])
    >>> spread[0], spread.to_arrow().to_pylist()
    (1.0, [{'n': 3, 'mean': 2.0, 'm2': 2.0}])
    >>> deviation = VarianceGroups(1, root=2)
    >>> deviation.merge([0], spread.to_arrow())
    >>> deviation.update([0], [10.0])
    >>> deviation[0] ** 2
    16.666666666666668
    """

    aggregate: ClassVar = Aggregated(of_column=summands, spark_merge="chan")

    _state: ClassVar = {"n": np.int64, "mean": float, "m2": float}

    def __init__(self, n: int = 0, root: int = 1) -> None:
        self._root = root
        super().__init__(n)

    def update(self, groups: np.ndarray, values: Any) -> None:
        """Add numbers. Raises `TypeError` for other types."""
        groups, numbers = _doubles(groups, values, self._n, "variance")
        kernels.welford(groups, numbers, self._at("n"), self._at("mean"), self._at("m2"))

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge counts, means and squared deviations."""
        wanted = {"n": np.int64, "mean": float, "m2": float}
        groups, (n, mean, m2) = _fields(groups, column, self._n, "variance", wanted)
        kernels.chan(groups, n, mean, m2, self._at("n"), self._at("mean"), self._at("m2"))

    def to_arrow(self) -> pa.Array:
        """Return structs of n, mean and m2."""
        names = ["n", "mean", "m2"]
        arrays = [pa.array(self._at(name).copy()) for name in names]
        return pa.StructArray.from_arrays(arrays, names=names, mask=pa.array(self._at("n") == 0))

    def answers(self, **question: Any) -> pa.Array:
        """Return sample variances as double; with ``root=2`` standard deviations, their square roots."""
        n, m2 = self._at("n"), self._at("m2")
        variances = np.divide(m2, n - 1, out=np.zeros(len(n)), where=n > 1)
        return pa.array(np.sqrt(variances) if self._root == 2 else variances, mask=n < 2)


def _summands(values: Any, name: str) -> Values:
    """Validate summable numbers, integers or floats, and no times or strings."""
    values = values if isinstance(values, (Values, np.ndarray)) else as_array(values)
    leaf = getattr(values, "type", None)
    while leaf is not None and hasattr(leaf, "value_type"):
        leaf = leaf.value_type
    numbers = as_values(values, decimals=True)
    if numbers.kind in ("string", "binary") or numbers.temporal:
        kind = leaf or numbers.temporal or numbers.kind
        raise TypeError(f"{name}: can't add up a column of {kind}; cast it to a number")
    return numbers


def _doubles(groups: Any, values: Any, n: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    numbers = _summands(values, name)
    at = numbers.per_value(as_groups(groups, numbers.length, n))
    plain = numbers.numbers.view(np.uint64) if numbers.unsigned else numbers.numbers
    return at, np.ascontiguousarray(plain, np.float64)


def _fields(
    groups: Any, column: Any, n: int, name: str, wanted: dict[str, Any]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the groups and fields of a struct column's rows that are not null."""
    column = as_array(column)
    numbers = as_groups(groups, len(column), n)
    if pa.types.is_null(column.type):
        return numbers[:0], [np.empty(0, dtype) for dtype in wanted.values()]
    if not pa.types.is_struct(column.type) or not set(wanted) <= {field.name for field in column.type}:
        raise SketchError(f"{name}: expected a struct of {', '.join(wanted)} to merge, got {column.type}")
    kept = column.is_valid().to_numpy(zero_copy_only=False)
    column = column.filter(pa.array(kept))
    fields = []
    for field, dtype in wanted.items():
        array = pc.struct_field(column, field)
        if array.null_count or not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
            raise SketchError(f"{name}: field {field} must be numbers without nulls, got {array.type}")
        fields.append(np.ascontiguousarray(array.to_numpy(zero_copy_only=False), dtype))
    if len(column) and int(fields[0].min()) < 0:
        raise SketchError(f"{name}: a count of {fields[0].min()} is not a count")
    return numbers[kept], fields


def _compensated(total: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Add the lost bits to the totals; an infinite total has no meaningful lost bits."""
    return np.where(np.isfinite(total), total + np.where(np.isfinite(lost), lost, 0.0), total)
