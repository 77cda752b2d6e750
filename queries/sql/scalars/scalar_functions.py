"""The scalar functions by their SQL names: their arguments, and the Polars expressions that they become."""

from __future__ import annotations

from collections.abc import Callable

from . import decimals
from .array_functions import ARRAY_FUNCTIONS
from .function import ANY, TRUTH, WHOLE, Function
from .map_functions import MAP_FUNCTIONS
from .number_functions import NUMBER_FUNCTIONS
from .scalars import Scalar, Scalars, a_type, of_alike
from .text_functions import TEXT_FUNCTIONS
from .time_functions import TIME_FUNCTIONS


def _same(make: Scalars, given: tuple[Scalar, ...], name: str) -> list[Scalar]:
    kinds = {"whole" if one.kind == "number" else one.kind for one in given} - {"null"}
    if len(kinds) > 1:
        types = " and ".join(dict.fromkeys(a_type(one.type) for one in given if one.kind != "null"))
        raise ValueError(f"{name} takes values of one type, got {types}; write CAST")
    return decimals.alike(make, list(given))


def _coalesce(make: Scalars, *given: Scalar) -> Scalar:
    same = _same(make, given, "COALESCE")
    return of_alike(make.function("coalesce", same), same)


def _nullif(make: Scalars, one: Scalar, other: Scalar) -> Scalar:
    one, other = _same(make, (one, other), "NULLIF")
    equal = make.call(make.operator(one, "==", other), "fill_null", False)
    return make.when([(make.call(equal, "not_"), one)], None)


def _if(make: Scalars, condition: Scalar, one: Scalar, other: Scalar | None = None) -> Scalar:
    one, second = _same(make, (one, one if other is None else other), "IF")
    return make.when([(condition, one)], None if other is None else second)


def _nvl2(make: Scalars, one: Scalar, some: Scalar, none: Scalar) -> Scalar:
    return _if(make, make.call(one, "is_not_null"), some, none)


def _nth(make: Scalars, number: Scalar, *given: Scalar) -> Scalar:
    """ELT: the value at a position, counted from 1."""
    places = enumerate(_same(make, given, "ELT"), 1)
    return make.when([(make.operator(number, "==", make.literal(at)), one) for at, one in places], None)


def _place(make: Scalars, one: Scalar, *others: Scalar) -> Scalar:
    """FIELD: the position of the first equal value, counted from 1; 0 if there is none."""
    one, *given = _same(make, (one, *others), "FIELD")
    places = [(make.operator(one, "==", other), make.literal(at)) for at, other in enumerate(given, 1)]
    return make.when(places, make.literal(0))


def _extreme(name: str) -> Callable[..., Scalar]:
    return lambda make, *given: make.function(name, *_same(make, given, "GREATEST and LEAST"))


_ORDERED = (("whole", "number", "text", "time"),)
FUNCTIONS: dict[str, Function] = {
    **TEXT_FUNCTIONS,
    **NUMBER_FUNCTIONS,
    "COALESCE": Function(_coalesce, (ANY,), more=True),
    **dict.fromkeys(("IFNULL", "NVL"), Function(_coalesce, (ANY, ANY))),
    # In ksqlDB it makes a key a column of the value, which it is here anyway.
    "AS_VALUE": Function(lambda make, one: one, (ANY,)),
    "NULLIF": Function(_nullif, (ANY, ANY)),
    "NVL2": Function(_nvl2, (ANY, ANY, ANY)),
    "IF": Function(_if, (TRUTH, ANY, ANY), 1),
    "ELT": Function(_nth, (WHOLE, ANY), more=True),
    "FIELD": Function(_place, (ANY, ANY), more=True),
    "GREATEST": Function(_extreme("max_horizontal"), _ORDERED, more=True),
    "LEAST": Function(_extreme("min_horizontal"), _ORDERED, more=True),
    **ARRAY_FUNCTIONS,
    **MAP_FUNCTIONS,
    **TIME_FUNCTIONS,
}
"""Scalar functions, by upper-case names."""
