"""What is asked of a stream: an aggregate of a column, by name.

Each function here makes the definition of one aggregate; `Stream.agg`, Spark's functions and the table of
sketches understand it. Of a list column, each element counts; nulls are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from ...sketches.core.parameters import whole
from ...sketches.core.protocol import Groups, SketchError
from ..families import MOMENT, Family, family

VERSION = 1
"""Of the form in which an aggregate is written down."""

METADATA = b"streamgauge"
"""The key of the definitions in Arrow metadata."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: the family's name in the registry, the column, the parameters of sketch and answer.

    `inputs` names the columns of further row-wise inputs. `typed` adds what the column's type decides; only
    a typed aggregate can make its groups.

    >>> users = distinct("user", lg_k=11)
    >>> Aggregate.from_json(users.to_json()) == users
    True
    """

    name: str
    column: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> Family:
        """The aggregate's line in the registry."""
        return family(self.name)

    @property
    def columns(self) -> list[str]:
        """All columns it is computed from: its own, and those of its inputs."""
        return [*([] if self.column is None else [self.column]), *self.inputs.values()]

    def typed(self, column_type: pa.DataType | None) -> Aggregate:
        """The same aggregate with the parameters that its column's type decides.

        Raises `TypeError` if the family can't take such a column.
        """
        if column_type is None:
            return self
        while hasattr(column_type, "value_type"):
            column_type = column_type.value_type
        try:
            found = self.family.of_column(column_type)
        except TypeError as error:
            raise TypeError(f"{self.name}({self.column!r}): {error}") from None
        return Aggregate(self.name, self.column, {**self.params, **found}, self.answer, self.inputs)

    def groups(self, n: int = 0, seed: int = 0) -> Groups:
        """`n` empty groups of this aggregate; `seed` is for those families that draw random numbers."""
        params = dict(self.params)
        if "type" in params:
            params["type"] = arrow_type(params["type"])
        if self.family.seeded:
            params["seed"] = seed
        return self.family.groups_class()(n, **params)

    def definition(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "aggregate": self.name,
            "column": self.column,
            "params": dict(self.params),
            "answer": dict(self.answer),
            "inputs": dict(self.inputs),
        }

    def to_json(self) -> str:
        """The definition as it stands in a field's metadata: the same text for the same aggregate."""
        return json.dumps({"version": VERSION, **self.definition()}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The aggregate of a definition. Raises `SketchError` if it is not one, or of a later version."""
        try:
            found = json.loads(text)
            # Tables from before definitions had a version are of the first one.
            if found.get("version", VERSION) > VERSION:
                raise SketchError(
                    f"the aggregate is written down in form {found['version']}, by a later version of "
                    f"streamgauge, and this one reads form {VERSION}: install that version"
                )
            family(found["aggregate"])
            return cls(found["aggregate"], found["column"], found["params"], found["answer"], found["inputs"])
        except SketchError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SketchError(f"{text!r} is not the definition of an aggregate: {error}") from None


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type that `str` wrote.

    >>> arrow_type("timestamp[us, tz=UTC]")
    TimestampType(timestamp[us, tz=UTC])
    """
    zoned = re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", text)
    return pa.timestamp(*zoned.groups()) if zoned else pa.type_for_alias(text)


def aggregate(name: str, column: str | None, **options: Any) -> Aggregate:
    """The aggregate called `name`, its options being parameters of the sketch or of the answer.

    A family's further inputs are options too, and name columns (`weight="amount"`); a row's event time and
    place need no name.
    Raises `KeyError` for a name, `TypeError` for an option the registry doesn't have or a missing input, and
    `SketchError` for a parameter out of range.
    """
    line = family(name)
    named = [given for given in line.inputs if given not in MOMENT]
    unknown = set(options) - set(line.params) - set(line.answer) - set(named)
    if unknown:
        known = ", ".join([*line.params, *line.answer, *named]) or "none"
        raise TypeError(f"{name} has no option {', '.join(sorted(unknown))}; it has {known}")
    if column is not None and not isinstance(column, str):
        raise TypeError(f"{name}: a column is named by a string, got {column!r}; use with_columns first")
    for given in named:
        if not isinstance(options.get(given), str):
            raise TypeError(f"{name}: {given}= names a column, got {options.get(given)!r}")
    params = {key: options.get(key, default) for key, default in line.params.items()}
    answer = {key: options.get(key, default) for key, default in line.answer.items()}
    _check(line, params, answer)
    return Aggregate(name, column, params, answer, {given: options[given] for given in named})


def _check(line: Family, params: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Raise `SketchError` for parameters that the family refuses: no groups of it hold nothing yet."""
    try:
        if not line.exact:
            line.groups_class()(0, **params)
        for key, value in answer.items():
            whole(line.name, key, value, 1)
    except SketchError as error:
        raise SketchError(f"{line.name}: {str(error).partition(': ')[2]}") from None


def distinct(column: str, lg_k: int = 12) -> Aggregate:
    """How many different values: HyperLogLog with 2^lg_k registers, error 1.04 / √(2^lg_k) at one sigma."""
    return aggregate("distinct", column, lg_k=lg_k)


def distinct_set(column: str, lg_k: int = 12) -> Aggregate:
    """Which different values, as a set: Theta with 2^lg_k hashes, error 1 / √(2^lg_k − 1) at one sigma.

    `compare` gives unions, intersections, differences and the Jaccard index of two such columns, of one table
    or of two; Spark has `theta_union`, `theta_intersection` and `theta_difference` for them.
    """
    return aggregate("distinct_set", column, lg_k=lg_k)


def quantiles(column: str, relative_accuracy: float = 0.01) -> Aggregate:
    """How values are spread: DDSketch; every quantile, tails included, is always within 1 % of its value.

    Of a million normal, lognormal or Pareto values that takes at most 14 kB. Of a column of whole numbers
    those below 50 are exact, and larger ones rounded where that keeps within the 1 %. Points in time are
    refused: theirs are `kll_quantiles`.
    """
    return aggregate("quantiles", column, relative_accuracy=relative_accuracy)


def kll_quantiles(column: str, k: int = 200) -> Aggregate:
    """How values are spread: KLL, which Spark and DataSketches merge and query too.

    The rank of an answer is off by at most 1.65 % (k = 200, at 99 % confidence), so a far quantile of skewed
    values by a fifth of its value; k = 4000, 90 kB, brings ranks to 0.1 %.
    """
    return aggregate("kll_quantiles", column, k=k)


def frequency(column: str, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> Aggregate:
    """How often any value occurred: count-min, too high by at most `eps` of all rows at `confidence`."""
    return aggregate("frequency", column, eps=eps, confidence=confidence, seed=seed)


def membership(column: str, capacity: int = 100_000, fpp: float = 0.01) -> Aggregate:
    """Which values occurred: a Bloom filter, wrong with at most `fpp` up to `capacity` different values."""
    return aggregate("membership", column, capacity=capacity, fpp=fpp)


def top_k(column: str, k: int = 10, max_size: int = 4096) -> Aggregate:
    """The most frequent values with bounds of their counts; `max_size` slots decide how close those are."""
    return aggregate("top_k", column, k=k, max_size=max_size)


def sample(column: str, k: int = 100) -> Aggregate:
    """`k` values, each as likely as any other to be among them."""
    return aggregate("sample", column, k=k)


def weighted_sample(column: str, weight: str, k: int = 100) -> Aggregate:
    """`k` values, drawn in proportion to the numbers in column `weight`, none twice."""
    return aggregate("weighted_sample", column, weight=weight, k=k)


def stratified_sample(column: str, key: str, k: int = 10, capacity: int = 100_000) -> Aggregate:
    """`k` values for each value of column `key`, at most `capacity` in all, each key's uniformly."""
    return aggregate("stratified_sample", column, key=key, k=k, capacity=capacity)


def hash_sample(column: str, key: str, p: float = 0.01) -> Aggregate:
    """All values of a share `p` of the keys in column `key`: the same keys in every stream and window."""
    return aggregate("hash_sample", column, key=key, p=p)


def bernoulli_sample(column: str, p: float = 0.01) -> Aggregate:
    """Each value with probability `p`."""
    return aggregate("bernoulli_sample", column, p=p)


def recent_sample(column: str, window: float = 3600.0, k: int = 100) -> Aggregate:
    """`k` values of the last `window` seconds of event time, and of any shorter span, uniformly."""
    return aggregate("recent_sample", column, window=window, k=k)


def decayed_sample(column: str, half_life: float = 3600.0, k: int = 100) -> Aggregate:
    """`k` values, a value's chance halving with every `half_life` seconds of age."""
    return aggregate("decayed_sample", column, half_life=half_life, k=k)


def decayed_count(column: str, half_life: float = 3600.0) -> Aggregate:
    """How many values, one counting a half for each `half_life` seconds of age. Exact up to rounding."""
    return aggregate("decayed_count", column, half_life=half_life)


def decayed_quantiles(column: str, half_life: float = 3600.0, relative_accuracy: float = 0.01) -> Aggregate:
    """How values are spread, decayed as in `decayed_count`; every quantile within 1 % of its value."""
    return aggregate("decayed_quantiles", column, half_life=half_life, relative_accuracy=relative_accuracy)


def sliding_distinct(column: str, window: float = 3600.0, lg_k: int = 12) -> Aggregate:
    """How many different values in the last `window` seconds of event time, and in any shorter span."""
    return aggregate("sliding_distinct", column, window=window, lg_k=lg_k)


def count(column: str | None = None) -> Aggregate:
    """Rows, or of a column the values that are not null. Exact."""
    return aggregate("count", column)


def sum(column: str) -> Aggregate:
    """Sum: of floats a double, exact up to rounding; of whole numbers exact, and kept wider than int64.

    Their answers are int64, and decimals only where a window's sum is beyond int64; on Spark always decimals.
    """
    return aggregate("sum", column)


def mean(column: str) -> Aggregate:
    """Mean. Exact up to rounding."""
    return aggregate("mean", column)


def min(column: str) -> Aggregate:
    """Smallest value. Exact."""
    return aggregate("min", column)


def max(column: str) -> Aggregate:
    """Largest value. Exact."""
    return aggregate("max", column)


def first(column: str) -> Aggregate:
    """The value with the earliest event time. Exact.

    Of several of that time the one that Kafka had first: in the lowest partition the lowest offset. The rows
    of a DataFrame or of an Arrow table have no such order, so there it is the smallest value of that time.
    """
    return aggregate("first", column)


def last(column: str) -> Aggregate:
    """The value with the latest event time. Exact.

    Of several of that time the one that Kafka had last: in the highest partition the highest offset. The rows
    of a DataFrame have no such order, so there it is the largest value of that time.
    """
    return aggregate("last", column)


def variance(column: str) -> Aggregate:
    """Sample variance (n − 1). Exact up to rounding."""
    return aggregate("variance", column)
