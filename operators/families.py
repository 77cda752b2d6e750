"""The one table of families: what an aggregate's name stands for, on every engine.

Aggregates, exports, Spark's functions and the shared law tests all take their families from here; adding one
means a folder and a line. Classes are named, not imported: reading the table compiles nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..sketches.core.protocol import Groups, Sketch

MOMENT = ("time", "partition", "offset")
"""The inputs that every row has by itself, so that nobody names a column for them."""


def _untyped(leaf: pa.DataType) -> dict[str, Any]:
    """For families that take values of any type."""
    return {}


def _kind(**kinds: str) -> Callable[[pa.DataType], dict[str, Any]]:
    """The `kind` that a family keeps a column as: ``int64=``, ``float64=``, ``string=``, ``binary=``.

    ``unsigned=`` is for what int64 may not hold, ``decimal=`` for decimals.
    """

    def of(leaf: pa.DataType) -> dict[str, Any]:
        if pa.types.is_decimal(leaf) and "decimal" in kinds:
            return {"kind": kinds["decimal"]}
        found = kinds.get("unsigned" if leaf == pa.uint64() else column_kind(leaf))
        if found is None:
            raise TypeError(f"a column of {leaf} can't be used here, only {', '.join(kinds)}; cast it")
        return {"kind": found}

    return of


def _stored(leaf: pa.DataType) -> dict[str, Any]:
    """The Arrow type that exact values are kept in: the widest of their sort."""
    widest = {"int64": "int64", "float64": "double", "string": "string", "binary": "binary"}
    whole = pa.types.is_integer(leaf) and leaf != pa.uint64()
    plain = whole or column_kind(leaf) != "int64"
    return {"type": widest[column_kind(leaf)] if plain else str(leaf)}


def _hashed(leaf: pa.DataType) -> dict[str, Any]:
    """For families that keep no more of a value than its hash: nothing is decided, but it must have one."""
    column_kind(leaf)
    return {}


def _number(leaf: pa.DataType) -> dict[str, Any]:
    """For families that add values up: nothing is decided, but strings are refused."""
    if not pa.types.is_decimal(leaf) and column_kind(leaf) not in ("int64", "float64"):
        raise TypeError(f"a column of {leaf} can't be added up; cast it to a number")
    return {}


def _added(leaf: pa.DataType) -> dict[str, Any]:
    """For families whose answers are sums of values: of points in time there is none."""
    if pa.types.is_temporal(leaf):
        raise TypeError(f"a column of {leaf} can't be added up; cast it to a number")
    return _number(leaf)


def _summed(leaf: pa.DataType) -> dict[str, Any]:
    real = pa.types.is_floating(leaf) or pa.types.is_decimal(leaf)
    return {**_added(leaf), "type": "double" if real else "int64"}


_ROOT = __package__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Family:
    """One line of the table.

    `place` is ``"floor.folder:Class"``: the class of one sketch, beside which lies that of many groups, under
    the same name with "Groups"; of an exact aggregate, a plain Arrow column, the class of groups alone.
    `params` are the parameters of both with their defaults;
    `answer` those of the question asked in the end; `inputs` further row-wise inputs of `update`;
    `of_column` the parameters that the column's type decides; `seeded` whether groups take a ``seed=``;
    `spark_merge` the Catalyst aggregate that merges the column inside Spark, ``{kind}`` standing for the
    parameter, empty where there is none.
    """

    name: str
    place: str
    params: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    of_column: Callable[[pa.DataType], dict[str, Any]] = _untyped
    seeded: bool = False
    spark_merge: str = ""

    @property
    def exact(self) -> bool:
        """Whether the aggregate is a plain column and no sketch."""
        return self.place.endswith("Groups")

    def sketch_class(self) -> type[Sketch]:
        """The class of one sketch, imported now. Raises `TypeError` for an exact aggregate."""
        if self.exact:
            raise TypeError(f"{self.name} is exact: its column holds plain values, no sketches")
        return _load(self.place)

    def groups_class(self) -> type[Groups]:
        """The class of many groups, imported now."""
        return _load(self.place if self.exact else f"{self.place}Groups")


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(f"{_ROOT}.{module}"), name)


def column_kind(leaf: pa.DataType) -> str:
    """The kind, as in `columns.Values`, that a column of this type (lists flattened) becomes.

    >>> column_kind(pa.int16()), column_kind(pa.large_string())
    ('int64', 'string')
    """
    if pa.types.is_floating(leaf):
        return "float64"
    if pa.types.is_string(leaf) or pa.types.is_large_string(leaf) or pa.types.is_string_view(leaf):
        return "string"
    if (
        pa.types.is_fixed_size_binary(leaf)
        or pa.types.is_binary(leaf)
        or pa.types.is_large_binary(leaf)
        or pa.types.is_binary_view(leaf)
    ):
        return "binary"
    if pa.types.is_integer(leaf) or pa.types.is_boolean(leaf) or pa.types.is_temporal(leaf):
        return "int64"
    raise TypeError(f"a column of {leaf} can't be aggregated; cast it to an integer, a double or a string")


_NUMBERS = _kind(int64="long", float64="double", unsigned="double", decimal="double")
_ITEMS = _kind(int64="long", string="string")


def _spread(leaf: pa.DataType) -> dict[str, Any]:
    """For quantiles to a share of their value: of whole numbers whole ones, and never of a point in time."""
    if pa.types.is_date(leaf) or pa.types.is_timestamp(leaf):
        raise TypeError(
            f"an error relative to the value says nothing of a {leaf}, which counts from 1970; ask for "
            "kll_quantiles, whose error is one of rank, or cast it to a duration"
        )
    return _NUMBERS(leaf)


def _counted(leaf: pa.DataType) -> dict[str, Any]:
    """For families that count equal values: nothing is decided, but floats are refused."""
    if column_kind(leaf) == "float64":
        raise TypeError(f"values of {leaf} can't be counted as equal ones; cast them to whole numbers")
    return {}


def _hashed_by_the_package(leaf: pa.DataType) -> dict[str, Any]:
    """For families that the `datasketches` package hashes: it takes no binary."""
    if column_kind(leaf) == "binary":
        raise TypeError(f"values of {leaf} can't be counted by the package; cast them to strings")
    return {}


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "distinct",
            "sketches.hll:HLL",
            {"lg_k": 12},
            of_column=_hashed,
            spark_merge="hll_union_agg",
        ),
        Family(
            "distinct_set",
            "sketches.theta:Theta",
            {"lg_k": 12},
            of_column=_hashed,
            spark_merge="theta_union_agg",
        ),
        Family(
            "quantiles",
            "sketches.ddsketch:DDSketch",
            {"relative_accuracy": 0.01},
            of_column=_spread,
        ),
        Family(
            "kll_quantiles",
            "sketches.kll:KLL",
            {"k": 200},
            of_column=_NUMBERS,
            seeded=True,
            spark_merge="kll_merge_agg_{kind}",
        ),
        Family(
            "top_k",
            "sketches.frequent_items:FrequentItems",
            {"max_size": 4096},
            answer={"k": 10},
            of_column=_ITEMS,
            spark_merge="approx_top_k_combine",
        ),
        Family(
            "sample",
            "sampling.reservoir:Reservoir",
            {"k": 100},
            seeded=True,
            spark_merge="max_by",
        ),
        Family(
            "frequency",
            "sketches.count_min:CountMin",
            {"eps": 0.001, "confidence": 0.99, "seed": 0},
            of_column=_counted,
        ),
        Family(
            "membership",
            "sketches.bloom:Bloom",
            {"capacity": 100_000, "fpp": 0.01},
            of_column=_hashed,
        ),
        Family(
            "sliding_distinct",
            "sketches.sliding_hll:SlidingHLL",
            {"lg_k": 12, "window": 3600.0},
            inputs=("time",),
            of_column=_hashed,
        ),
        Family(
            "weighted_sample",
            "sampling.weighted:WeightedReservoir",
            {"k": 100},
            inputs=("weight",),
            seeded=True,
        ),
        Family(
            "decayed_sample",
            "sampling.decayed:DecayedReservoir",
            {"k": 100, "half_life": 3600.0},
            inputs=("time",),
            seeded=True,
        ),
        Family(
            "decayed_count",
            "sampling.decayed:DecayedCount",
            {"half_life": 3600.0},
            inputs=("time",),
        ),
        Family(
            "decayed_quantiles",
            "sampling.decayed:DecayedQuantiles",
            {"half_life": 3600.0, "relative_accuracy": 0.01},
            inputs=("time",),
            of_column=_number,
        ),
        Family(
            "recent_sample",
            "sampling.sliding:SlidingWindowSample",
            {"k": 100, "window": 3600.0},
            inputs=("time",),
            seeded=True,
        ),
        Family(
            "stratified_sample",
            "sampling.stratified:StratifiedReservoir",
            {"k": 10, "capacity": 100_000},
            inputs=("key",),
            seeded=True,
        ),
        Family(
            "bernoulli_sample",
            "sampling.bernoulli:BernoulliSample",
            {"p": 0.01},
            seeded=True,
        ),
        Family(
            "hash_sample",
            "sampling.bernoulli:HashSample",
            {"p": 0.01},
            inputs=("key",),
            seeded=True,
        ),
        Family("cpc", "sketches.stored.cpc:CPC", {"lg_k": 11}, of_column=_hashed_by_the_package),
        Family("req", "sketches.stored.req:REQ", {"k": 12, "high_ranks": True}, of_column=_number),
        Family(
            "classic_quantiles",
            "sketches.stored.classic_quantiles:ClassicQuantiles",
            {"k": 128},
            of_column=_number,
        ),
        Family("tdigest", "sketches.stored.tdigest:TDigest", {"k": 200}, of_column=_number),
        Family(
            "var_opt",
            "sketches.stored.var_opt:VarOpt",
            {"k": 100},
            inputs=("weight",),
            of_column=_kind(int64="long", float64="double", string="string"),
        ),
        Family(
            "tuple",
            "sketches.theta:Tuple",
            {"lg_k": 12, "kind": "double", "mode": "sum"},
            inputs=("value",),
            of_column=_hashed,
        ),
        Family("count", "sketches.exact:CountGroups", spark_merge="sum"),
        Family("sum", "sketches.exact:SumGroups", of_column=_summed, spark_merge="sum"),
        Family("mean", "sketches.exact:MeanGroups", of_column=_added, spark_merge="struct_sum"),
        Family("min", "sketches.exact:MinGroups", of_column=_stored, spark_merge="min"),
        Family("max", "sketches.exact:MaxGroups", of_column=_stored, spark_merge="max"),
        Family("first", "sketches.exact:FirstGroups", inputs=MOMENT, of_column=_stored, spark_merge="min"),
        Family("last", "sketches.exact:LastGroups", inputs=MOMENT, of_column=_stored, spark_merge="max"),
        Family("variance", "sketches.exact:VarianceGroups", of_column=_added, spark_merge="chan"),
    )
}


def family(name: str) -> Family:
    """The line of an aggregate. Raises `KeyError` naming those there are.

    >>> family("distinct").params["lg_k"]
    12
    """
    if name not in FAMILIES:
        raise KeyError(f"no aggregate is called {name!r}; there are {', '.join(FAMILIES)}")
    return FAMILIES[name]
