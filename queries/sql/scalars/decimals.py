"""Decimals: exact arithmetic with the precisions and scales of the SQL standard.

Polars rounds a product to the larger scale, half to even, and an overflow fails its batch. Here each operand
is first cast to the scale that the result needs, and a result with more than 38 digits is null.
"""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from .scalars import Scalar, Scalars

DIGITS = 38
"""The most digits of a decimal, in Polars and in Arrow."""

_WHOLE: dict[type, int] = {pl.Int8: 3, pl.Int16: 5, pl.Int32: 10, pl.Int64: 19}
_NEAR = 1 - 1e-12
"""Sizes are compared as doubles, so the limit has a small margin."""


def is_decimal(one: Scalar) -> bool:
    """Whether a scalar is a DECIMAL."""
    return isinstance(one.type, pl.Decimal)


def alike(make: Scalars, given: list[Scalar]) -> list[Scalar]:
    """Numbers, one of them a DECIMAL, as one type: a DECIMAL that can hold all, or DOUBLE with a DOUBLE."""
    if not any(is_decimal(one) for one in given):
        return given
    exact = [_exact(make, one) if one.kind in ("whole", "number") else one for one in given]
    if any(one is None for one in exact):
        return [make.cast(one, pl.Float64()) for one in given]
    some = [one for one in exact if one is not None]
    types = [one.type for one in some if isinstance(one.type, pl.Decimal)]
    scale = max(kind.scale for kind in types)
    precision = max(kind.precision - kind.scale for kind in types) + scale
    if precision > DIGITS:
        raise ValueError(
            f"these numbers have up to {precision} digits together, and a DECIMAL has {DIGITS}; write "
            "CAST(… AS DOUBLE), or CAST around one of them"
        )
    wanted = pl.Decimal(precision, scale)
    return [make.cast(one, wanted) if is_decimal(one) else one for one in some]


def arithmetic(make: Scalars, left: Scalar, sign: str, right: Scalar) -> Scalar:
    """Arithmetic with a DECIMAL: exact, null beyond 38 digits, or DOUBLE if one operand is a DOUBLE."""
    one, other = _exact(make, left), _exact(make, right)
    if one is None or other is None:
        left, right = make.cast(left, pl.Float64()), make.cast(right, pl.Float64())
        return make.arithmetic(left, sign, right)
    if sign == "/":
        return _quotient(make, one, other)
    if sign == "%":
        return _rest(make, one, other)
    (p1, s1), (p2, s2) = _digits(one), _digits(other)
    if sign == "*":
        scale, precision = s1 + s2, p1 + p2 + 1
        if scale > DIGITS:
            raise ValueError(
                f"the product would have {scale} digits after the point, and a DECIMAL has {DIGITS}; write "
                "ROUND, and CAST AS DECIMAL, around one of them"
            )
    else:
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > DIGITS:
        one, other = _within(make, one, sign, other, scale)
    wide = make.cast(one, pl.Decimal(DIGITS, scale))
    return make.cast(make.operator(wide, sign, other), pl.Decimal(min(precision, DIGITS), scale))


def _quotient(make: Scalars, one: Scalar, other: Scalar) -> Scalar:
    """Rounds half away from zero to at least six decimals, as in ksqlDB, Flink and Spark; null by 0.

    Also null if the dividend has more than 38 digits at that scale.
    """
    (p1, s1), (p2, s2) = _digits(one), _digits(other)
    scale, whole = max(6, s1 + p2 + 1), p1 - s1 + s2
    if whole + scale > DIGITS:
        scale = max(DIGITS - whole, min(scale, 6))
    more = scale + s2 - s1
    units, divisor = _units(make, one, s1), _not_zero(make, _units(make, other, s2))
    if p1 + more > DIGITS:
        most = _whole(make, 10 ** (DIGITS - more))
        units = make.when([(make.operator(make.call(units, "abs"), "<", most), units)], None)
    dividend = make.operator(units, "*", _whole(make, 10**more))
    size = make.call(divisor, "abs")
    half = make.operator(size, "//", make.literal(2))
    quotient = make.operator(make.operator(make.call(dividend, "abs"), "+", half), "//", size)
    signs = make.operator(make.call(dividend, "sign"), "*", make.call(divisor, "sign"))
    return _of_units(make, make.operator(quotient, "*", signs), min(whole + scale, DIGITS), scale)


def _rest(make: Scalars, one: Scalar, other: Scalar) -> Scalar:
    """The remainder of an integer division, with the sign of the dividend; null for division by 0."""
    (p1, s1), (p2, s2) = _digits(one), _digits(other)
    scale = max(s1, s2)
    if (digits := max(p1 - s1, p2 - s2) + scale) > DIGITS:
        raise ValueError(
            f"these numbers have up to {digits} digits together, and a DECIMAL has {DIGITS}; write CAST(… AS "
            "DOUBLE), or CAST around one of them"
        )
    left, right = _units(make, one, scale), _not_zero(make, _units(make, other, scale))
    size, by = make.call(left, "abs"), make.call(right, "abs")
    rest = make.operator(size, "-", make.operator(make.operator(size, "//", by), "*", by))
    return _of_units(
        make, make.operator(rest, "*", make.call(left, "sign")), min(p1 - s1, p2 - s2) + scale, scale
    )


def _units(make: Scalars, one: Scalar, scale: int) -> Scalar:
    """A DECIMAL as a whole number of units of the last of `scale` decimals."""
    text = make.cast(make.cast(one, pl.Decimal(DIGITS, scale)), pl.String())
    return make.cast(make.call(text, "str.replace", ".", "", literal=True), pl.Int128())


def _of_units(make: Scalars, units: Scalar, precision: int, scale: int) -> Scalar:
    """The DECIMAL with so many units."""
    whole = make.cast(units, pl.Decimal(DIGITS, 0))
    unit = make.call(make.literal(format(Decimal(1).scaleb(-scale), "f")), "cast", pl.Decimal(DIGITS, scale))
    return make.cast(make.operator(whole, "*", unit), pl.Decimal(max(precision, scale, 1), scale))


def _whole(make: Scalars, number: int) -> Scalar:
    return make.cast(make.literal(str(number)), pl.Int128())


def _not_zero(make: Scalars, one: Scalar) -> Scalar:
    return make.when([(make.operator(one, "!=", make.literal(0)), one)], None)


def rounded(make: Scalars, one: Scalar, digits: int) -> Scalar:
    """Round half away from zero; the scale stays."""
    precision, scale = _digits(one)
    if digits < 0:
        raise ValueError(f"ROUND of a DECIMAL takes a number of digits from 0, got {digits}")
    if digits >= scale:
        return one
    if precision == DIGITS:
        one = _smaller(make, one, make.cast(one, pl.Float64()), scale)
    made = make.call(one, "round", digits, mode="half_away_from_zero")
    return make.cast(made, pl.Decimal(min(precision + 1, DIGITS), scale))


def cast(make: Scalars, one: Scalar, to: pl.Decimal) -> Scalar:
    """A number or a text as a DECIMAL, half away from zero; null if invalid or if it has too many digits."""
    if one.kind == "whole" or one.kind == "null":
        return make.cast(one, to)
    if is_decimal(one):
        return make.cast(rounded(make, one, to.scale), to)
    if one.kind == "number":
        one = make.cast(one, pl.String())
    if one.kind != "text":
        raise ValueError("a DECIMAL is made of a number or of a VARCHAR")
    scale = min(max(DIGITS - 1 - (to.precision - to.scale), to.scale + 1), DIGITS)
    # Polars would round further digits half to even; the first dropped digit decides.
    cut = make.call(one, "str.replace", rf"^([+-]?\d*\.\d{{{scale}}})\d+$", "${1}")
    wide = make.cast(cut, pl.Decimal(DIGITS, scale))
    made = make.cast(rounded(make, wide, to.scale), to)
    if to.precision != DIGITS:
        return made
    # There is no room for an additional digit to round by.
    whole = make.call(one, "str.contains", rf"^[+-]?\d+(\.\d{{0,{to.scale}}}0*)?$")
    return make.when([(whole, make.cast(one, to))], made)


def _exact(make: Scalars, one: Scalar) -> Scalar | None:
    """A number as a DECIMAL with all its digits; None for a DOUBLE, unless it is a constant."""
    if is_decimal(one):
        return one
    if one.literal is None:
        digits = _WHOLE.get(type(one.type))
        return None if digits is None else make.cast(one, pl.Decimal(digits, 0))
    text = format(Decimal(one.digits or repr(one.literal)), "f")
    whole, _, part = text.lstrip("-").partition(".")
    part = part.rstrip("0")
    if len(whole) + len(part) > DIGITS:
        if one.digits:
            raise ValueError(f"a number beside a DECIMAL has at most {DIGITS} digits, got {one.digits}")
        return None
    kind = pl.Decimal(max(len(whole.lstrip("0")) + len(part), 1), len(part))
    return make.call(make.literal(text), "cast", kind)


def _digits(one: Scalar) -> tuple[int, int]:
    assert isinstance(one.type, pl.Decimal)
    return one.type.precision or DIGITS, one.type.scale


def _within(make: Scalars, one: Scalar, sign: str, other: Scalar, scale: int) -> tuple[Scalar, Scalar]:
    """Two operands, null if the result may have too many digits."""
    sizes = [make.cast(each, pl.Float64()) for each in (one, other)]
    size = make.operator(sizes[0], sign, sizes[1])
    if sign != "*":
        other = _smaller(make, other, sizes[1], scale)
    return _smaller(make, _smaller(make, one, size, scale), sizes[0], scale), _smaller(
        make, other, size, scale
    )


def _smaller(make: Scalars, one: Scalar, size: Scalar, scale: int) -> Scalar:
    """A scalar, null if a size wouldn't fit a DECIMAL of this scale."""
    limit = make.literal(float(10 ** (DIGITS - scale)) * _NEAR)
    return make.when([(make.operator(make.call(size, "abs"), "<", limit), one)], None)
