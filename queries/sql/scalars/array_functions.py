"""Functions of arrays, based on Polars' list functions."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from .function import ANY, LIST, TEXT, WHOLE, Function, constant_text, constant_whole, counted, method
from .scalars import Scalar, Scalars, a_type


def _alike(make: Scalars, one: Scalar, other: Scalar, name: str) -> None:
    if one.type != other.type and "null" not in (one.kind, other.kind):
        raise ValueError(f"{name} takes arrays of one type, got {a_type(one.type)} and {a_type(other.type)}")


def _of_two(path: str, name: str) -> Callable[..., Scalar]:
    """A set operation on two arrays, in the order of the first."""

    def made(make: Scalars, one: Scalar, other: Scalar) -> Scalar:
        _alike(make, one, other, name)
        return make.call(make.call(one, path, other), "list.unique", maintain_order=True)

    return made


def _concat(make: Scalars, one: Scalar, other: Scalar) -> Scalar:
    _alike(make, one, other, "ARRAY_CONCAT")
    return make.function("concat_list", [one, other])


def _join(make: Scalars, one: Scalar, between: Scalar) -> Scalar:
    """The elements as one text; nulls are skipped, as in Spark and Flink."""
    texts = make.call(one, "cast", pl.List(pl.String))
    return make.call(texts, "list.join", constant_text(between, "the separator"), ignore_nulls=True)


def _slice(make: Scalars, one: Scalar, first: Scalar, last: Scalar) -> Scalar:
    """The elements from one position up to another, both counted from 1, as in ksqlDB."""
    begin, end = (constant_whole(at, "a place of SLICE") for at in (first, last))
    if begin < 1:
        raise ValueError(f"arrays count from 1: the first place of SLICE must be ≥ 1, got {begin}")
    return make.call(one, "list.slice", begin - 1, max(end - begin + 1, 0))


def _sorted(make: Scalars, one: Scalar, order: Scalar | None = None) -> Scalar:
    """In ascending order with nulls last, as in ksqlDB."""
    text = "ASC" if order is None else constant_text(order, "the order of ARRAY_SORT").upper()
    if text not in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
        raise ValueError(f"the order of ARRAY_SORT must be 'ASC' or 'DESC', got {text!r}")
    return make.call(one, "list.sort", descending=text.startswith("DESC"), nulls_last=True)


def _contains(make: Scalars, one: Scalar, item: Scalar) -> Scalar:
    return make.call(one, "list.contains", item)


_LENGTH = Function(counted("list.len"), (LIST,))
ARRAY_FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("ARRAY_LENGTH", "CARDINALITY"), _LENGTH),
    "ARRAY_CONTAINS": Function(_contains, (LIST, ANY)),
    "ARRAY_DISTINCT": Function(lambda make, one: make.call(one, "list.unique", maintain_order=True), (LIST,)),
    "ARRAY_MAX": Function(method("list.max"), (LIST,)),
    "ARRAY_MIN": Function(method("list.min"), (LIST,)),
    "ARRAY_SORT": Function(_sorted, (LIST, TEXT), 1),
    "ARRAY_REVERSE": Function(method("list.reverse"), (LIST,)),
    "ARRAY_JOIN": Function(_join, (LIST, TEXT)),
    "ARRAY_CONCAT": Function(_concat, (LIST, LIST)),
    "ARRAY_UNION": Function(_of_two("list.set_union", "ARRAY_UNION"), (LIST, LIST)),
    "ARRAY_INTERSECT": Function(_of_two("list.set_intersection", "ARRAY_INTERSECT"), (LIST, LIST)),
    "ARRAY_EXCEPT": Function(_of_two("list.set_difference", "ARRAY_EXCEPT"), (LIST, LIST)),
    "SLICE": Function(_slice, (LIST, WHOLE, WHOLE)),
}
"""Functions by upper-case names."""
