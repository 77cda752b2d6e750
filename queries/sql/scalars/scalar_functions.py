"""The scalar functions by the names that people type: what they take, and the Polars they become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from .scalars import TIME, Scalar, Scalars, a_type

_NUMBER = ("whole", "number")
_ANY = ("whole", "number", "text", "boolean", "time", "list", "struct", "bytes")
_TEXT, _WHOLE, _TIME, _LIST, _TRUTH = ("text",), ("whole",), ("time",), ("list",), ("boolean",)


@dataclass(frozen=True)
class Function:
    """A scalar function: the kinds of its arguments, of which `optional` may be left out.

    With `more`, the last kind is that of any number of further arguments.
    """

    make: Callable[..., Scalar]
    kinds: tuple[tuple[str, ...], ...]
    optional: int = 0
    more: bool = False

    @property
    def arguments(self) -> tuple[int, int]:
        """The fewest and the most."""
        return len(self.kinds) - self.optional, 10_000 if self.more else len(self.kinds)

    def kinds_of(self, count: int) -> list[tuple[str, ...]]:
        """The kinds of so many arguments."""
        kinds = list(self.kinds)
        return kinds + [kinds[-1]] * (count - len(kinds))


def timestamp_of_text(make: Scalars, one: Scalar) -> Scalar:
    """ISO 8601, with an offset or without, as a TIMESTAMP in UTC; null where a text is none.

    A space may stand for the T.
    """
    plain = make.call(make.call(one, "str.replace", "T", " ", literal=True), "str.strip_suffix", "Z")
    formats = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
    whole = [
        make.call(plain, "str.strptime", TIME, formats[0], strict=False),
        make.call(plain, "str.strptime", TIME, formats[1], strict=False),
        make.cast(make.call(plain, "str.strptime", pl.Date(), formats[2], strict=False), TIME),
        *(_with_offset(make, plain, pattern) for pattern in ("%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M%#z")),
    ]
    return make.function("coalesce", whole)


def _with_offset(make: Scalars, one: Scalar, pattern: str) -> Scalar:
    zoned = make.call(one, "str.strptime", pl.Datetime("us", "UTC"), pattern, strict=False)
    return make.call(zoned, "dt.replace_time_zone", None)


def java_format(pattern: str) -> str:
    """A pattern of Java's DateTimeFormatter as one of strptime. Raises `ValueError` for letters it can't be.

    >>> java_format("yyyy-MM-dd'T'HH:mm:ss.SSS")
    '%Y-%m-%dT%H:%M:%S%.3f'
    """
    known = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
    known |= {"yy": "%y", "MMM": "%b", "hh": "%I", "a": "%p", "SSS": "%3f", "SSSSSS": "%6f", "EEE": "%a"}
    result, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "'":
            close = pattern.find("'", at + 1)
            if close < 0:
                raise ValueError(f"the quote in the pattern {pattern!r} is not closed")
            result, at = result + pattern[at + 1 : close].replace("%", "%%"), close + 1
            continue
        if not sign.isalpha():
            result, at = result + ("%%" if sign == "%" else sign), at + 1
            continue
        end = at
        while end < len(pattern) and pattern[end] == sign:
            end += 1
        if pattern[at:end] not in known:
            raise ValueError(
                f"{pattern[at:end]!r} in a time's pattern is not supported; there are {', '.join(known)}"
            )
        result, at = result + known[pattern[at:end]], end
    # Chrono's fractions bring the dot along.
    return result.replace(".%3f", "%.3f").replace(".%6f", "%.6f")


def _text(make: Scalars, one: Scalar, name: str) -> str:
    if not isinstance(one.literal, str):
        raise ValueError(f"{name} must be a constant text")
    return one.literal


def _whole(make: Scalars, one: Scalar, name: str) -> int:
    if not isinstance(one.literal, int) or isinstance(one.literal, bool):
        raise ValueError(f"{name} must be a constant whole number")
    return one.literal


def _method(path: str, *given: Any) -> Callable[..., Scalar]:
    return lambda make, one: make.call(one, path, *given)


def _float(path: str, positive: str = "") -> Callable[..., Scalar]:
    """A function of real numbers: null where it has no value."""

    def made(make: Scalars, one: Scalar) -> Scalar:
        value = make.cast(one, pl.Float64())
        if positive:
            value = make.when([(make.operator(value, positive, make.literal(0.0)), value)], None)
        return make.call(value, path)

    return made


def _round(make: Scalars, one: Scalar, digits: Scalar | None = None) -> Scalar:
    return make.rounded(one, 0 if digits is None else _whole(make, digits, "the number of digits"))


def _substring(make: Scalars, one: Scalar, start: Scalar, length: Scalar | None = None) -> Scalar:
    if isinstance(start.literal, int) and start.literal < 1:
        raise ValueError(f"SUBSTRING counts from 1: the start must be ≥ 1, got {start.literal}")
    if length is not None and isinstance(length.literal, int) and length.literal < 0:
        raise ValueError(f"the length of a SUBSTRING must be ≥ 0, got {length.literal}")
    first: Any
    if isinstance(start.literal, int):
        first = start.literal - 1
    else:
        below = make.operator(start, "-", make.literal(1))
        first = make.when([(make.operator(start, ">=", make.literal(1)), below)], None)
    size = () if length is None else (length.literal if length.literal is not None else length,)
    return make.call(one, "str.slice", first, *size)


def _concat(make: Scalars, *given: Scalar) -> Scalar:
    return make.function("concat_str", [make.cast(one, pl.String()) for one in given])


def _concat_with(make: Scalars, between: Scalar, *given: Scalar) -> Scalar:
    texts = [make.cast(one, pl.String()) for one in given]
    return make.function(
        "concat_str", texts, separator=_text(make, between, "the separator"), ignore_nulls=True
    )


def _replaced(make: Scalars, one: Scalar, old: Scalar, new: Scalar) -> Scalar:
    """An empty text is found nowhere. Polars takes no column and no null in place of the two texts."""
    if isinstance(old.literal, str) and isinstance(new.literal, str):
        return make.call(one, "str.replace_all", old, new, literal=True) if old.literal else one
    # A constant text becomes one a row here, or all rows would have the first one's replacement.
    rows = make.when([(make.call(new, "is_not_null"), one)], None)
    joined = make.call(make.call(rows, "str.split", old), "list.join", new)
    return make.when(
        [(make.operator(old, "!=", make.literal("")), joined), (make.call(old, "is_not_null"), rows)], None
    )


def _same(make: Scalars, given: tuple[Scalar, ...], name: str) -> list[Scalar]:
    kinds = {"whole" if one.kind == "number" else one.kind for one in given} - {"null"}
    if len(kinds) > 1:
        types = " and ".join(dict.fromkeys(a_type(one.type) for one in given if one.kind != "null"))
        raise ValueError(f"{name} takes values of one type, got {types}; write CAST")
    return list(given)


def _coalesce(make: Scalars, *given: Scalar) -> Scalar:
    return make.function("coalesce", _same(make, given, "COALESCE"))


def _nullif(make: Scalars, one: Scalar, other: Scalar) -> Scalar:
    _same(make, (one, other), "NULLIF")
    equal = make.call(make.operator(one, "==", other), "fill_null", False)
    return make.when([(make.call(equal, "not_"), one)], None)


def _if(make: Scalars, condition: Scalar, one: Scalar, other: Scalar | None = None) -> Scalar:
    _same(make, (one, one if other is None else other), "IF")
    return make.when([(condition, one)], other)


def _instr(make: Scalars, one: Scalar, part: Scalar) -> Scalar:
    at = make.call(one, "str.find", part if part.literal is None else part.literal, literal=True)
    # `find` counts bytes: the characters before it are counted.
    head = make.call(
        make.call(make.cast(one, pl.Binary()), "bin.slice", 0, at), "cast", pl.String(), strict=False
    )
    number = make.cast(make.call(head, "str.len_chars"), pl.Int64())
    place = make.operator(number, "+", make.literal(1))
    some = make.call(make.call(one, "is_not_null"), "and_", make.call(part, "is_not_null"))
    none = make.when([(some, make.cast(make.literal(0), pl.Int64()))], None)
    return make.function("coalesce", [make.when([(make.call(at, "is_not_null"), place)], None), none])


def _from_unix(make: Scalars, one: Scalar) -> Scalar:
    return make.cast(make.cast(make.cast(one, pl.Int64()), pl.Datetime("ms")), TIME)


def _to_unix(make: Scalars, one: Scalar) -> Scalar:
    return make.call(make.cast(one, TIME), "dt.timestamp", "ms")


def _parse_time(make: Scalars, one: Scalar, pattern: Scalar) -> Scalar:
    chrono = java_format(_text(make, pattern, "the pattern"))
    return make.call(one, "str.strptime", TIME, chrono, strict=False)


def _format_time(make: Scalars, one: Scalar, pattern: Scalar) -> Scalar:
    return make.call(one, "dt.strftime", java_format(_text(make, pattern, "the pattern")))


def _truncated(make: Scalars, unit: Scalar, one: Scalar) -> Scalar:
    units = {
        "second": "1s",
        "minute": "1m",
        "hour": "1h",
        "day": "1d",
        "week": "1w",
        "month": "1mo",
        "year": "1y",
    }
    name = _text(make, unit, "the unit").lower()
    if name not in units:
        raise ValueError(f"the unit of DATE_TRUNC must be one of {', '.join(units)}, got {name!r}")
    return make.call(make.cast(one, TIME), "dt.truncate", units[name])


def _json_field(make: Scalars, one: Scalar, path: Scalar) -> Scalar:
    text = _text(make, path, "the path")
    if not text.startswith("$"):
        raise ValueError(f"a path begins with $, such as '$.{text}', got {text!r}")
    try:
        pl.select(pl.lit("{}").str.json_path_match(text))
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{text!r} must be a path of JSON: {_first(error)}") from None
    return make.call(one, "str.json_path_match", text)


def _matching(make: Scalars, one: Scalar, pattern: Scalar) -> Scalar:
    return make.call(one, "str.contains", _pattern(make, pattern))


def _extracted(make: Scalars, pattern: Scalar, one: Scalar) -> Scalar:
    return make.call(one, "str.extract", _pattern(make, pattern), 0)


def _first(error: Exception) -> str:
    """What Polars says, without the expression in which it is."""
    return " ".join(str(error).partition("This error")[0].split())


def _pattern(make: Scalars, pattern: Scalar) -> str:
    """A regular expression. Raises `ValueError` for one that would fail every batch."""
    text = _text(make, pattern, "the pattern")
    try:
        pl.select(pl.lit("").str.contains(text))
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{text!r} must be a regular expression: {_first(error)}") from None
    return text


def _contains(make: Scalars, one: Scalar, item: Scalar) -> Scalar:
    return make.call(one, "list.contains", item)


PARTS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
"""What EXTRACT takes of a time; each is a function, too."""


def _part(path: str) -> Function:
    return Function(lambda make, one: make.cast(make.call(one, path), pl.Int64()), (_TIME,))


def _extreme(name: str) -> Callable[..., Scalar]:
    return lambda make, *given: make.function(name, *_same(make, given, "GREATEST and LEAST"))


FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("UPPER", "UCASE"), Function(_method("str.to_uppercase"), (_TEXT,))),
    **dict.fromkeys(("LOWER", "LCASE"), Function(_method("str.to_lowercase"), (_TEXT,))),
    **dict.fromkeys(
        ("LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"),
        Function(lambda make, one: make.cast(make.call(one, "str.len_chars"), pl.Int64()), (_TEXT,)),
    ),
    "TRIM": Function(
        lambda make, one, *signs: _trimmed(make, "str.strip_chars", one, *signs), (_TEXT, _TEXT), 1
    ),
    "LTRIM": Function(
        lambda make, one, *signs: _trimmed(make, "str.strip_chars_start", one, *signs), (_TEXT, _TEXT), 1
    ),
    "RTRIM": Function(
        lambda make, one, *signs: _trimmed(make, "str.strip_chars_end", one, *signs), (_TEXT, _TEXT), 1
    ),
    **dict.fromkeys(("SUBSTRING", "SUBSTR"), Function(_substring, (_TEXT, _WHOLE, _WHOLE), 1)),
    "CONCAT": Function(_concat, (_ANY,), more=True),
    "CONCAT_WS": Function(_concat_with, (_TEXT, _ANY), more=True),
    "REPLACE": Function(_replaced, (_TEXT,) * 3),
    "REVERSE": Function(_method("str.reverse"), (_TEXT,)),
    "SPLIT": Function(lambda make, one, by: make.call(one, "str.split", by), (_TEXT, _TEXT)),
    "STARTS_WITH": Function(lambda make, one, part: make.call(one, "str.starts_with", part), (_TEXT, _TEXT)),
    "ENDS_WITH": Function(lambda make, one, part: make.call(one, "str.ends_with", part), (_TEXT, _TEXT)),
    "INSTR": Function(_instr, (_TEXT, _TEXT)),
    "REGEXP_LIKE": Function(_matching, (_TEXT, _TEXT)),
    "REGEXP_EXTRACT": Function(_extracted, (_TEXT, _TEXT)),
    **dict.fromkeys(("EXTRACTJSONFIELD", "JSON_VALUE"), Function(_json_field, (_TEXT, _TEXT))),
    "ABS": Function(_method("abs"), (_NUMBER,)),
    "SIGN": Function(_method("sign"), (_NUMBER,)),
    "ROUND": Function(_round, (_NUMBER, _WHOLE), 1),
    "FLOOR": Function(_method("floor"), (_NUMBER,)),
    **dict.fromkeys(("CEIL", "CEILING"), Function(_method("ceil"), (_NUMBER,))),
    "SQRT": Function(_float("sqrt", ">="), (_NUMBER,)),
    "LN": Function(_float("log", ">"), (_NUMBER,)),
    "EXP": Function(_float("exp"), (_NUMBER,)),
    **dict.fromkeys(
        ("POWER", "POW"),
        Function(
            lambda make, one, to: make.call(make.cast(one, pl.Float64()), "pow", make.cast(to, pl.Float64())),
            (_NUMBER, _NUMBER),
        ),
    ),
    "COALESCE": Function(_coalesce, (_ANY,), more=True),
    **dict.fromkeys(("IFNULL", "NVL"), Function(_coalesce, (_ANY, _ANY))),
    "NULLIF": Function(_nullif, (_ANY, _ANY)),
    "IF": Function(_if, (_TRUTH, _ANY, _ANY), 1),
    "GREATEST": Function(_extreme("max_horizontal"), (("whole", "number", "text", "time"),), more=True),
    "LEAST": Function(_extreme("min_horizontal"), (("whole", "number", "text", "time"),), more=True),
    **dict.fromkeys(
        ("ARRAY_LENGTH", "CARDINALITY"),
        Function(lambda make, one: make.cast(make.call(one, "list.len"), pl.Int64()), (_LIST,)),
    ),
    "ARRAY_CONTAINS": Function(_contains, (_LIST, _ANY)),
    **{name: _part(f"dt.{name.lower()}") for name in PARTS},
    "DATE_TRUNC": Function(_truncated, (_TEXT, _TIME)),
    "FROM_UNIXTIME": Function(_from_unix, (_WHOLE,)),
    "UNIX_TIMESTAMP": Function(_to_unix, (_TIME,)),
    "PARSE_TIMESTAMP": Function(_parse_time, (_TEXT, _TEXT)),
    "FORMAT_TIMESTAMP": Function(_format_time, (_TIME, _TEXT)),
}
"""Scalar functions, by upper-case names."""


def _trimmed(make: Scalars, path: str, one: Scalar, signs: Scalar | None = None) -> Scalar:
    return make.call(one, path, " " if signs is None else _text(make, signs, "what is trimmed"))
