"""Aggregates by their names in other systems, and by those of the registry.

An aggregate in a query consists of a sketch to store (a definition's `Aggregate`) and the value to read from
it: a number with its bounds, at a rank, or a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ....operators.definition.aggregate import Aggregate, aggregate
from ....operators.definition.aggregate_factory import signature
from ....operators.families import FAMILIES, family
from ..errors import counted_arguments, error_at, errors_at, nearest

DISTINCT = ("distinct", "distinct_set", "sliding_distinct", "cpc")
"""Families whose answer is an estimate with bounds."""
RANKED = (
    *("quantiles", "kll_quantiles", "tail_quantiles", "tdigest_quantiles"),
    *("classic_quantiles", "decayed_quantiles"),
)
"""Families that are queried at ranks."""


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate of a query: what is stored, and the ranks at which it is read; a list if `several`.

    `of` is the tree of its column, None for COUNT(*); `root` means that the square root is returned.
    """

    node: Any
    family: str
    of: Any
    options: tuple[tuple[str, Any], ...] = ()
    inputs: tuple[tuple[str, Any], ...] = ()
    ranks: tuple[float, ...] = ()
    several: bool = False
    root: bool = False

    def aggregate(self, column: str | None, inputs: dict[str, str]) -> Aggregate:
        """The definition's aggregate, once its columns have names. Raises `SqlError`."""
        with errors_at(self.node):
            if self.family == "count":
                return aggregate("count", column)
            return aggregate(self.family, column, **dict(self.options), **inputs)


def _plain(name: str) -> Callable[[Any, list[Any]], AggregateCall]:
    def made(node: Any, given: list[Any]) -> AggregateCall:
        _count(node, given, 1, 1)
        return AggregateCall(node, name, given[0])

    return made


def _counted(node: Any, given: list[Any]) -> AggregateCall:
    _count(node, given, 0, 1)
    return AggregateCall(node, "count", None if not given or isinstance(given[0], exp.Star) else given[0])


def _distinct(node: Any, given: list[Any]) -> AggregateCall:
    """Its second argument is lg_k, or Spark's relative standard deviation."""
    _count(node, given, 1, 2)
    options: tuple[tuple[str, Any], ...] = ()
    if len(given) == 2:
        size = constant(given[1], "the second argument")
        if isinstance(size, float):
            if not 0 < size < 1:
                raise error_at(given[1], f"the relative standard deviation must be from 0 to 1, got {size}")
            size = max(4, min(21, math.ceil(2 * math.log2(1.04 / size))))
        options = (("lg_k", size),)
    return AggregateCall(node, "distinct", given[0], options)


def _set(node: Any, given: list[Any]) -> AggregateCall:
    _count(node, given, 1, 2)
    options = (("lg_k", constant(given[1], "lg_k")),) if len(given) == 2 else ()
    return AggregateCall(node, "distinct_set", given[0], options)


def _percentile(name: str, size: str) -> Callable[[Any, list[Any]], AggregateCall]:
    def made(node: Any, given: list[Any]) -> AggregateCall:
        # Trino's APPROX_PERCENTILE(column, weight, rank): a rank is a constant, so this is unambiguous.
        weighted = len(given) > 2 and not isinstance(given[1], exp.Literal | exp.Neg | exp.Array)
        inputs: tuple[tuple[str, Any], ...] = (("weight", given[1]),) if weighted else ()
        given = [given[0], *given[2:]] if weighted else given
        _count(node, given, 2, 3)
        options: tuple[tuple[str, Any], ...] = ()
        if len(given) == 3:
            if not size:
                raise error_at(
                    given[2],
                    "each percentile is within 1 % of its value; for another error write QUANTILES(column, "
                    "relative_accuracy => 0.001, ranks => 0.99)",
                )
            options = ((size, constant(given[2], size)),)
        ranks, several = _ranks(given[1])
        return AggregateCall(node, name, given[0], options, inputs, ranks, several)

    return made


def _ranks(node: Any) -> tuple[tuple[float, ...], bool]:
    several = isinstance(node, exp.Array)
    ranks = []
    for one in node.expressions if several else [node]:
        rank = constant(one, "a percentile")
        if isinstance(rank, bool) or not isinstance(rank, int | float) or not 0 <= rank <= 1:
            raise error_at(one, f"a percentile must be a number from 0 to 1, got {rank}")
        ranks.append(float(rank))
    return tuple(ranks), several


def _with_parameters(name: str, *parameters: str) -> Callable[[Any, list[Any]], AggregateCall]:
    """An aggregate of a column whose parameters follow it in this order."""

    def call(node: Any, given: list[Any]) -> AggregateCall:
        _count(node, given, 1, 1 + len(parameters))
        constants = ((one, constant(value, one)) for one, value in zip(parameters, given[1:]))
        return AggregateCall(node, name, given[0], tuple(constants))

    return call


def _deviation(node: Any, given: list[Any]) -> AggregateCall:
    _count(node, given, 1, 1)
    return AggregateCall(node, "variance", given[0], root=True)


NAMES: dict[str, Callable[[Any, list[Any]], AggregateCall]] = {
    "COUNT": _counted,
    "SUM": _plain("sum"),
    "AVG": _plain("mean"),
    "MIN": _plain("min"),
    "MAX": _plain("max"),
    **dict.fromkeys(("VAR_SAMP", "VARIANCE"), _plain("variance")),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP", "STDDEV_SAMPLE"), _deviation),
    "FIRST_VALUE": _plain("first"),
    "LAST_VALUE": _plain("last"),
    **dict.fromkeys(
        ("APPROX_COUNT_DISTINCT", "COUNT_DISTINCT", "APPROX_COUNT_DISTINCT_DS_HLL", "APPROX_DISTINCT"),
        _distinct,
    ),
    **dict.fromkeys(
        ("PERCENTILE_APPROX", "APPROX_PERCENTILE", "APPROX_QUANTILE"), _percentile("quantiles", "")
    ),
    "APPROX_QUANTILE_DS": _percentile("kll_quantiles", "k"),
    "APPROX_TOP_K": _with_parameters("top_k", "k", "max_size"),
    "THETA_SKETCH_AGG": _set,
    "COUNT_MIN_SKETCH": _with_parameters("frequency", "eps", "confidence", "seed"),
}
"""Aggregates by their names in other systems; all names of the registry are valid as well."""

REFUSED = {
    **dict.fromkeys(
        ("TOPK", "TOPKDISTINCT"),
        "returns the largest values in some systems and the most frequent ones in others; write "
        "APPROX_TOP_K(column, k) for the most frequent, MAX(column) for the largest",
    ),
    "EARLIEST_BY_OFFSET": "goes by offset, not by time; write FIRST(column), the value with the "
    "earliest event time",
    "LATEST_BY_OFFSET": "goes by offset, not by time; write LAST(column), the value with the "
    "latest event time",
    **dict.fromkeys(
        ("COLLECT_LIST", "COLLECT_SET"),
        "grows without bound; write SAMPLE(column, 100), or THETA_SKETCH_AGG(column) for the set of "
        "distinct values",
    ),
    "HISTOGRAM": "grows without bound; write APPROX_TOP_K(column, 100)",
    "MEDIAN": "can't be computed exactly in bounded memory; write PERCENTILE_APPROX(column, 0.5)",
}
"""Messages about aggregates that can't be stored, by upper-case names."""


def aggregate_call(node: Any) -> AggregateCall | None:
    """The aggregate of a call; None for any other call. Raises `SqlError` for a refused aggregate."""
    if not isinstance(node, exp.Anonymous):
        return None
    name, given = node.name.upper(), node.expressions
    if name in REFUSED:
        raise error_at(node, f"{name} {REFUSED[name]}")
    if name in NAMES or name.lower() in FAMILIES:
        for one in given:
            if isinstance(one, exp.Distinct):
                raise error_at(
                    node,
                    f"{name}(DISTINCT …) would keep every value; write APPROX_COUNT_DISTINCT(…), whose error "
                    "is 1.6 % and stated",
                )
            if inner := next((below for below in one.find_all(exp.Anonymous) if aggregate_call(below)), None):
                raise error_at(
                    inner,
                    f"an aggregate of an aggregate, {name}({inner.name.upper()}(…)): CREATE "
                    "TABLE … AS SELECT the inner one first",
                )
    if name in NAMES:
        return NAMES[name](node, given)
    if name.lower() in FAMILIES:
        return _of_registry(node, name.lower(), given)
    return None


def aggregates_in(node: Any) -> list[AggregateCall]:
    """The aggregates within a part of a query, in the order of the text."""
    aggregate_calls = []
    for below in node.walk(bfs=False):
        one = aggregate_call(below)
        if one is not None:
            aggregate_calls.append(one)
    return aggregate_calls


def _of_registry(node: Any, name: str, given: list[Any]) -> AggregateCall:
    """``NAME(column, inputs…, parameters…)``, the parameters also as ``parameter => value``."""
    line = family(name)
    names = list(signature(line).parameters)
    inputs_wanted = [one for one in line.inputs if one in names]
    values: dict[str, Any] = {}
    ranks: tuple[float, ...] = ()
    several = False
    for place, one in enumerate(given):
        if isinstance(one, exp.Kwarg | exp.PropertyEQ):
            if isinstance(one.this, exp.Literal):
                raise error_at(
                    one.this, f"the parameter's name in {name.upper()} must be written without quotes"
                )
            option, value = one.this.name.lower(), one.expression
            if option == "ranks" and name in RANKED:
                ranks, several = _ranks(value)
                continue
            if option not in names:
                raise error_at(
                    one.this, f"{name.upper()} has no parameter {option}; {nearest(option, names)}"
                )
        elif place < len(names):
            option, value = names[place], one
        else:
            raise error_at(one, f"{name.upper()} takes at most {len(names)} arguments, got {len(given)}")
        values[option] = value
    of = values.pop("column", None)
    if (of is None and name != "count") or isinstance(of, exp.Star):
        raise error_at(node, f"{name.upper()} takes a column")
    if missing := [one for one in inputs_wanted if one not in values]:
        raise error_at(node, f"{name.upper()} needs {missing[0]}, a column")
    inputs_given = [*inputs_wanted, *(one for one in line.optional if one in values)]
    inputs = tuple((one, values.pop(one)) for one in inputs_given)
    options = tuple((option, constant(value, option)) for option, value in values.items())
    return AggregateCall(node, name, of, options, inputs, ranks, several)


def constant(node: Any, what: str) -> Any:
    """A constant's value. Raises `SqlError` for anything else."""
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return -constant(node.this, what)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if not isinstance(node, exp.Literal):
        raise error_at(node, f"{what} must be a constant")
    if node.is_string:
        return node.this
    return int(node.this) if node.this.isdigit() else float(node.this)


def _count(node: Any, given: list[Any], fewest: int, most: int) -> None:
    named = next((one for one in given if isinstance(one, exp.Kwarg | exp.PropertyEQ)), None)
    if named is not None:
        raise error_at(named, f"{node.name.upper()} takes no named parameters; write them in their order")
    if not fewest <= len(given) <= most:
        raise error_at(node, f"{node.name.upper()} takes {counted_arguments(fewest, most)}, got {len(given)}")


def function_names() -> list[str]:
    """All aggregates' names."""
    return sorted({*NAMES, *(name.upper() for name in FAMILIES)} - {"DISTINCT"})
