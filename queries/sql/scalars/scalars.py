"""Scalar expressions as Polars expressions, each with the Python that builds it and its type.

SQL and Polars differ in several ways that this module bridges: division of whole numbers gives whole numbers;
an undefined result (division by zero, a number too large for its type, a text that is not a number) is null
and fails no batch; ROUND rounds away from zero, and arrays are counted from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import polars as pl

TIME = pl.Datetime("us")


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression of one row; `text` is the Python that builds it. `literal` has a constant's value.

    `digits` is the statement's spelling of a number that isn't whole: a DECIMAL uses all of them, a double
    doesn't.
    """

    expr: pl.Expr
    text: str
    type: pl.DataType
    literal: Any = None
    digits: str = ""

    @property
    def kind(self) -> str:
        """What can be done with it: whole, number, text, boolean, time, clock, list, struct, bytes, null."""
        return kind_of(self.type)


class Map(pl.List):
    """The type of a MAP: Polars has none, so it is a list of structs of ``key`` and ``value``.

    Only a declaration and MAP(…) distinguish it from an ARRAY of such structs; functions of MAPs accept both.

    >>> sql_type(Map(pl.Int32())), Map(pl.Int32()).inner
    ('MAP<VARCHAR, INT>', Struct({'key': String, 'value': Int32}))
    """

    def __init__(self, value: Any) -> None:
        super().__init__(pl.Struct({"key": pl.String(), "value": value}))
        self.value = value


def map_places(dtype: Any) -> tuple[tuple[str, ...], ...]:
    """The places of MAPs in a type: the fields that lead there, with ``[]`` for the elements of a list.

    >>> map_places(pl.Struct({"m": Map(Map(pl.Int32())), "n": pl.List(pl.Int32())}))
    (('m',), ('m', '[]', 'value'))
    """
    if isinstance(dtype, pl.List):
        inner = tuple(("[]", *place) for place in map_places(dtype.inner))
        return ((), *inner) if isinstance(dtype, Map) else inner
    if isinstance(dtype, pl.Struct):
        return tuple((one.name, *place) for one in dtype.fields for place in map_places(one.dtype))
    return ()


def plain_type(dtype: Any) -> Any:
    """A type with each MAP as the list that Polars has for it."""
    if isinstance(dtype, pl.List):
        return pl.List(plain_type(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({one.name: plain_type(one.dtype) for one in dtype.fields})
    return dtype


def map_value(dtype: Any) -> Any:
    """The type of a MAP's values; None for other types.

    >>> map_value(Map(pl.Int32())), map_value(pl.List(pl.Int32()))
    (Int32, None)
    """
    if not isinstance(dtype, pl.List) or not isinstance(dtype.inner, pl.Struct):
        return None
    fields = dtype.inner.fields
    names = [one.name for one in fields]
    return fields[1].dtype if names == ["key", "value"] and fields[0].dtype == pl.String() else None


def kind_of(dtype: pl.DataType) -> str:
    """The kind of a type.

    >>> kind_of(pl.Int32()), kind_of(pl.Datetime("ms")), kind_of(pl.List(pl.String))
    ('whole', 'time', 'list')
    """
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric():
        return "number"
    for kind, types in _KINDS.items():
        if isinstance(dtype, types):
            return kind
    return "bytes"


_KINDS: dict[str, Any] = {
    "text": (pl.String, pl.Categorical, pl.Enum),
    "boolean": pl.Boolean,
    "time": (pl.Datetime, pl.Date),
    "clock": pl.Time,
    "list": (pl.List, pl.Array),
    "struct": pl.Struct,
    "null": pl.Null,
}


def holds(wanted: Any, given: Any) -> bool:
    """Whether a column of one type can hold each value of another unchanged.

    >>> holds(pl.Int64(), pl.Int32()), holds(pl.Int32(), pl.Int64()), holds(pl.String(), pl.Int32())
    (True, False, False)
    """
    if isinstance(given, pl.Null) or wanted == given:
        return True
    if isinstance(wanted, pl.List) and isinstance(given, pl.List):
        return holds(wanted.inner, given.inner)
    if isinstance(wanted, pl.Struct) and isinstance(given, pl.Struct):
        fields = {one.name: one.dtype for one in wanted.fields}
        return set(fields) == {one.name for one in given.fields} and all(
            holds(fields[one.name], one.dtype) for one in given.fields
        )
    if isinstance(wanted, pl.Decimal):
        whole = (
            (given.precision or 38) - given.scale
            if isinstance(given, pl.Decimal)
            else len(f"{given.max()}")
            if given.is_integer()
            else 39
        )
        return whole <= (wanted.precision or 38) - wanted.scale and getattr(given, "scale", 0) <= wanted.scale
    if wanted.is_integer() and given.is_integer():
        edges = pl.select(a=wanted.min(), b=given.min(), c=given.max(), d=wanted.max()).row(0)
        return list(edges) == sorted(edges)
    if wanted.is_float():
        return given.is_integer() or (given.is_float() and wanted == pl.Float64())
    return isinstance(wanted, pl.Datetime) and isinstance(given, pl.Datetime)


def sql_type(dtype: Any) -> str:
    """A type's name in SQL.

    >>> sql_type(pl.Int64()), sql_type(pl.List(pl.String))
    ('BIGINT', 'ARRAY<VARCHAR>')
    """
    dtype = dtype() if isinstance(dtype, type) else dtype
    if isinstance(dtype, Map):
        return f"MAP<VARCHAR, {sql_type(dtype.value)}>"
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision or 38}, {dtype.scale})"
    if isinstance(dtype, (pl.List, pl.Array)):
        return f"ARRAY<{sql_type(dtype.inner)}>"
    if isinstance(dtype, pl.Struct):
        fields = (f"{one.name} {sql_type(one.dtype)}" for one in dtype.fields)
        return f"STRUCT<{', '.join(fields)}>"
    names = {
        "Int8": "TINYINT",
        "Int16": "SMALLINT",
        "Int32": "INT",
        "Int64": "BIGINT",
        "Float32": "FLOAT",
        "Float64": "DOUBLE",
        "String": "VARCHAR",
        "Boolean": "BOOLEAN",
        "Datetime": "TIMESTAMP",
        "Date": "DATE",
        "Binary": "BYTES",
        "Null": "NULL",
    }
    name = type(dtype).__name__
    return names.get(name, name.upper())


def a_type(dtype: Any) -> str:
    """A type's name in SQL, with an article.

    >>> a_type(pl.Int32()), a_type(pl.Int64())
    ('an INT', 'a BIGINT')
    """
    name = sql_type(dtype)
    return f"{'an' if name[0] in 'AI' else 'a'} {name}"


def type_source(dtype: Any) -> str:
    """The Python for a type.

    >>> type_source(pl.List(pl.Struct({"at": pl.Datetime("us")})))
    "pl.List(pl.Struct({'at': pl.Datetime('us')}))"
    """
    if isinstance(dtype, pl.List):
        return f"pl.List({type_source(dtype.inner)})"
    if isinstance(dtype, pl.Struct):
        return f"pl.Struct({{{', '.join(f'{f.name!r}: {type_source(f.dtype)}' for f in dtype.fields)}}})"
    if isinstance(dtype, pl.Datetime):
        zone = f", {dtype.time_zone!r}" if dtype.time_zone else ""
        return f"pl.Datetime({dtype.time_unit!r}{zone})"
    if isinstance(dtype, pl.Decimal):
        return f"pl.Decimal({dtype.precision}, {dtype.scale})"
    return f"pl.{type(dtype).__name__ if isinstance(dtype, pl.DataType) else dtype.__name__}"


def source_of(value: Any) -> str:
    """The Python for an argument."""
    if isinstance(value, Scalar):
        return value.text
    if isinstance(value, pl.DataType) or (isinstance(value, type) and issubclass(value, pl.DataType)):
        return type_source(value)
    if isinstance(value, list):
        return f"[{', '.join(map(source_of, value))}]"
    return repr(value)


class Scalars:
    """Builds scalars over rows of one schema. Raises Polars' errors for types that don't match."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)
        self._rows = _no_rows(tuple((name, plain_type(kind)) for name, kind in self.schema.items()))

    def made(self, expr: pl.Expr, text: str) -> Scalar:
        """The scalar for an expression, whose type Polars determines."""
        try:
            (dtype,) = self._rows.select(expr.alias("_")).collect_schema().dtypes()
        except pl.exceptions.PolarsError as error:
            raise ValueError(str(error).split("\n")[0]) from None
        return Scalar(expr, text, dtype)

    def column(self, name: str) -> Scalar:
        """A column."""
        return Scalar(pl.col(name), f"pl.col({name!r})", self.schema[name])

    def literal(self, value: Any) -> Scalar:
        """A constant."""
        if isinstance(value, datetime):
            parts = ", ".join(map(str, value.timetuple()[:6])) + (
                f", {value.microsecond}" if value.microsecond else ""
            )
            return Scalar(
                pl.lit(value).cast(TIME), f"pl.lit(datetime({parts})).cast(pl.Datetime('us'))", TIME, value
            )
        scalar = self.made(pl.lit(value), f"pl.lit({value!r})")
        return Scalar(scalar.expr, scalar.text, scalar.type, value)

    def call(self, on: Scalar, path: str, *given: Any, **named: Any) -> Scalar:
        """A method of an expression, such as ``str.to_lowercase``."""
        method: Any = on.expr
        for part in path.split("."):
            method = getattr(method, part)
        arguments = [_expr(one) for one in given]
        text = ", ".join([*map(source_of, given), *(f"{k}={source_of(v)}" for k, v in named.items())])
        return self.made(
            method(*arguments, **{k: _expr(v) for k, v in named.items()}), f"{on.text}.{path}({text})"
        )

    def function(self, name: str, *given: Any, **named: Any) -> Scalar:
        """A function of Polars' module, such as ``coalesce``."""
        text = ", ".join([*map(source_of, given), *(f"{k}={source_of(v)}" for k, v in named.items())])
        made = getattr(pl, name)(*map(_expr, given), **{k: _expr(v) for k, v in named.items()})
        return self.made(made, f"pl.{name}({text})")

    def operator(self, left: Scalar, sign: str, right: Scalar) -> Scalar:
        """Two operands; whole numbers and constants on the right are written bare, as people do."""
        if sign in ("==", "!="):
            left, right = self.comparable(left), self.comparable(right)
        bare = right.literal is not None and not isinstance(right.literal, datetime)
        text = repr(right.literal) if bare else right.text
        return self.made(_OPERATORS[sign](left.expr, right.expr), f"({left.text} {sign} {text})")

    def comparable(self, one: Scalar) -> Scalar:
        """A value in the form for comparisons: MAPs are equal whatever the order of their entries."""
        places = map_places(one.type)
        if not places:
            return one
        if places != ((),):
            raise ValueError(f"{a_type(one.type)} can't be compared as a whole: compare its parts")
        by_key = pl.element().sort_by(pl.element().struct.field("key"))
        text = f"{one.text}.list.eval(pl.element().sort_by(pl.element().struct.field('key')))"
        return replace(one, expr=one.expr.list.eval(by_key), text=text)

    def whole_arithmetic(self, left: Scalar, sign: str, right: Scalar) -> Scalar:
        """Arithmetic of whole numbers, in BIGINT: null if the result overflows."""
        wide, other = self.cast(left, pl.Int128()), self.cast(right, pl.Int128())
        if sign in ("/", "%"):
            some = self.when([(self.operator(other, "!=", self.literal(0)), other)], None)
            quotient = self.operator(self.call(wide, "abs"), "//", self.call(some, "abs"))
            signs = self.operator(self.call(wide, "sign"), "*", self.call(some, "sign"))
            result = self.operator(quotient, "*", signs)
            if sign == "%":
                result = self.operator(wide, "-", self.operator(result, "*", other))
        else:
            result = self.operator(wide, sign, other)
        return self.cast(result, pl.Int64())

    def arithmetic(self, left: Scalar, sign: str, right: Scalar) -> Scalar:
        """Arithmetic of two numbers: whole numbers give a whole number; null if undefined."""
        if left.kind == right.kind == "whole":
            return self.whole_arithmetic(left, sign, right)
        if sign in ("/", "%"):
            left, right = self.cast(left, pl.Float64()), self.cast(right, pl.Float64())
            right = self.when([(self.operator(right, "!=", self.literal(0.0)), right)], None)
            if sign == "/":
                return self.quotient(left, right)
            if sign == "%":
                # For a quotient from 2^53 on, the digits that determine the remainder are unknown.
                quotient = self.operator(left, "/", right)
                some = self.operator(self.call(quotient, "abs"), "<", self.literal(2.0**53))
                quotient = self.when([(some, quotient)], None)
                whole = self.operator(
                    self.call(self.call(quotient, "abs"), "floor"), "*", self.call(quotient, "sign")
                )
                return self.operator(left, "-", self.operator(whole, "*", right))
        return self.operator(left, sign, right)

    def quotient(self, left: Scalar, right: Scalar) -> Scalar:
        """The quotient of two DOUBLEs."""
        columns = left.expr.meta.root_names()
        if columns and not right.expr.meta.root_names():
            # In batches of several rows Polars multiplies by the inverse of a constant, so the last bit is
            # wrong, as in 1429 / 100. So it is divided by a column of the constant.
            none = self.cast(self.call(self.column(columns[0]), "is_null"), pl.Float64())
            right = self.operator(self.operator(none, "*", self.literal(0.0)), "+", right)
        return self.operator(left, "/", right)

    def cast(self, one: Scalar, to: pl.DataType) -> Scalar:
        """The value cast to another type; null if it has no such value."""
        if one.kind in ("list", "struct") and to == pl.String():
            instead = "ARRAY_JOIN(array, ',')" if one.kind == "list" else "its fields, struct->field"
            raise ValueError(f"{a_type(one.type)} is not a text; write {instead}")
        if one.kind == "clock" and to == pl.String():  # the cast drops fractions of a second
            return self.call(one, "dt.to_string", "%T%.f")
        if one.type == to:
            return one
        cast = self.call(one, "cast", plain_type(to), strict=False)
        return replace(cast, type=to) if map_places(to) else cast

    def when(self, cases: list[tuple[Scalar, Scalar]], otherwise: Scalar | None) -> Scalar:
        """The value of the first case that holds."""
        chain: Any = pl
        text = "pl"
        for condition, value in cases:
            chain = chain.when(condition.expr).then(value.expr)
            text += f".when({condition.text}).then({value.text})"
        if otherwise is not None:
            chain = chain.otherwise(otherwise.expr)
            text += f".otherwise({otherwise.text})"
        values = [value for _, value in cases] + ([] if otherwise is None else [otherwise])
        return of_alike(self.made(chain, text), values)

    def rounded(self, one: Scalar, digits: int) -> Scalar:
        """Rounds half away from zero; negative digits are those before the point."""
        if not -18 <= digits <= 18:
            raise ValueError(f"the number of digits must be from -18 to 18, got {digits}")
        if one.kind == "whole":
            return one if digits >= 0 else self._rounded_whole(one, 10**-digits)
        if digits < 0:
            factor = self.literal(float(10**-digits))
            return self.operator(self.rounded(self.quotient(one, factor), 0), "*", factor)
        factor = self.literal(float(10**digits))
        value = one if not digits else self.operator(one, "*", factor)
        size = self.call(value, "abs")
        floor = self.call(size, "floor")
        up = self.cast(self.operator(self.operator(size, "-", floor), ">=", self.literal(0.5)), pl.Float64())
        result = self.operator(self.operator(floor, "+", up), "*", self.call(value, "sign"))
        if not digits:
            return result
        # From 2^53 on, a number has no decimals, and the product may have been too large.
        some = self.operator(size, "<", self.literal(2.0**53))
        return self.when([(some, self.quotient(result, factor))], one)

    def _rounded_whole(self, one: Scalar, unit: int) -> Scalar:
        """Rounded to a multiple of a unit, exactly; null if that overflows BIGINT."""
        size = self.call(self.cast(one, pl.Int128()), "abs")
        half = self.operator(size, "+", self.literal(unit // 2))
        multiple = self.operator(self.operator(half, "//", self.literal(unit)), "*", self.literal(unit))
        signed = self.operator(multiple, "*", self.call(self.cast(one, pl.Int128()), "sign"))
        return self.cast(signed, pl.Int64())


@lru_cache(64)
def _no_rows(schema: tuple[tuple[str, Any], ...]) -> pl.LazyFrame:
    """An empty frame with these columns, which takes longer to build than to query."""
    return pl.LazyFrame(schema=dict(schema))


def of_alike(one: Scalar, given: Sequence[Scalar]) -> Scalar:
    """A scalar that is one of several values, with their type, which may contain MAPs."""
    types = [value.type for value in given if value.kind != "null"]
    if (
        not types
        or not map_places(types[0])
        or any(map_places(kind) != map_places(types[0]) for kind in types)
    ):
        return one
    return replace(one, type=types[0]) if one.type == types[0] else one


def _expr(value: Any) -> Any:
    if isinstance(value, list):
        return [_expr(one) for one in value]
    return value.expr if isinstance(value, Scalar) else value


_OPERATORS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
}
