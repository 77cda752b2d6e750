"""Functions of numbers, based on Polars', null where they are undefined."""

from __future__ import annotations

import math
from collections.abc import Callable

import polars as pl

from . import decimals
from .function import NUMBER, WHOLE, Function, constant_whole, method, where
from .scalars import Scalar, Scalars


def _real(path: str, sign: str = "", limit: float = 0.0) -> Callable[..., Scalar]:
    """A function of real numbers that is defined where the number compares with a limit by `sign`."""

    def made(make: Scalars, one: Scalar) -> Scalar:
        value = make.cast(one, pl.Float64())
        if sign:
            value = where(make, make.operator(value, sign, make.literal(limit)), value)
        return make.call(value, path)

    return made


def _within_one(path: str) -> Callable[..., Scalar]:
    def made(make: Scalars, one: Scalar) -> Scalar:
        value = make.cast(one, pl.Float64())
        inside = make.operator(make.call(value, "abs"), "<=", make.literal(1.0))
        return make.call(where(make, inside, value), path)

    return made


def _log(make: Scalars, base: Scalar, one: Scalar | None = None) -> Scalar:
    if one is None:
        return _real("log", ">")(make, base)
    quotient = make.arithmetic(_real("log", ">")(make, one), "/", _real("log", ">")(make, base))
    return quotient


def _log_to(base: float) -> Callable[..., Scalar]:
    def made(make: Scalars, one: Scalar) -> Scalar:
        value = make.cast(one, pl.Float64())
        # It is a quotient of natural logarithms, which is slightly off for powers of the base.
        log = make.call(where(make, make.operator(value, ">", make.literal(0.0)), value), "log", base)
        whole = make.call(log, "round")
        exact = make.operator(make.call(make.literal(base), "pow", whole), "==", value)
        return make.when([(exact, whole)], log)

    return made


def _power(make: Scalars, one: Scalar, to: Scalar) -> Scalar:
    return make.call(make.cast(one, pl.Float64()), "pow", make.cast(to, pl.Float64()))


def _round(make: Scalars, one: Scalar, digits: Scalar | None = None) -> Scalar:
    count = 0 if digits is None else constant_whole(digits, "the number of digits")
    return decimals.rounded(make, one, count) if decimals.is_decimal(one) else make.rounded(one, count)


def _mod(make: Scalars, one: Scalar, by: Scalar) -> Scalar:
    if decimals.is_decimal(one) or decimals.is_decimal(by):
        return decimals.arithmetic(make, one, "%", by)
    return make.arithmetic(one, "%", by)


def _abs(make: Scalars, one: Scalar) -> Scalar:
    if one.kind != "whole":
        return make.call(one, "abs")
    return make.cast(make.call(make.cast(one, pl.Int128()), "abs"), one.type)


def _truncate(make: Scalars, one: Scalar) -> Scalar:
    if one.kind == "whole":
        return one
    return make.call(one, "truncate")


def _cot(make: Scalars, one: Scalar) -> Scalar:
    return make.arithmetic(make.literal(1.0), "/", make.call(make.cast(one, pl.Float64()), "tan"))


NUMBER_FUNCTIONS: dict[str, Function] = {
    "ABS": Function(_abs, (NUMBER,)),
    "SIGN": Function(method("sign"), (NUMBER,)),
    "ROUND": Function(_round, (NUMBER, WHOLE), 1),
    **dict.fromkeys(("TRUNC", "TRUNCATE"), Function(_truncate, (NUMBER,))),
    "FLOOR": Function(method("floor"), (NUMBER,)),
    **dict.fromkeys(("CEIL", "CEILING"), Function(method("ceil"), (NUMBER,))),
    "MOD": Function(_mod, (NUMBER, NUMBER)),
    "SQRT": Function(_real("sqrt", ">="), (NUMBER,)),
    "CBRT": Function(_real("cbrt"), (NUMBER,)),
    "LN": Function(_real("log", ">"), (NUMBER,)),
    "LOG": Function(_log, (NUMBER, NUMBER), 1),
    "LOG2": Function(_log_to(2.0), (NUMBER,)),
    "LOG10": Function(_log_to(10.0), (NUMBER,)),
    "EXP": Function(_real("exp"), (NUMBER,)),
    **dict.fromkeys(("POWER", "POW"), Function(_power, (NUMBER, NUMBER))),
    **{
        name: Function(_real(name.lower()), (NUMBER,))
        for name in ("SIN", "COS", "TAN", "SINH", "COSH", "TANH")
    },
    **{name: Function(_within_one(f"arc{name[1:].lower()}"), (NUMBER,)) for name in ("ASIN", "ACOS")},
    "ATAN": Function(_real("arctan"), (NUMBER,)),
    "ATAN2": Function(
        lambda make, y, x: make.function("arctan2", make.cast(y, pl.Float64()), make.cast(x, pl.Float64())),
        (NUMBER, NUMBER),
    ),
    "COT": Function(_cot, (NUMBER,)),
    "DEGREES": Function(_real("degrees"), (NUMBER,)),
    "RADIANS": Function(_real("radians"), (NUMBER,)),
    "PI": Function(lambda make: make.literal(math.pi), ()),
    "E": Function(lambda make: make.literal(math.e), ()),
}
"""Functions by upper-case names."""
