"""Functions of text, of patterns in it and of JSON in it, based on Polars'."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import polars as pl

from .function import (
    ANY,
    TEXT,
    WHOLE,
    Function,
    constant_text,
    constant_whole,
    counted,
    first_line,
    method,
    where,
)
from .scalars import Scalar, Scalars

_MOST = 100_000
"""The longest text that LPAD, RPAD and REPEAT build."""


def _substring(make: Scalars, one: Scalar, start: Scalar, length: Scalar | None = None) -> Scalar:
    if isinstance(start.literal, int) and start.literal < 1:
        raise ValueError(f"SUBSTRING counts from 1: the start must be ≥ 1, got {start.literal}")
    if length is not None and isinstance(length.literal, int) and length.literal < 0:
        raise ValueError(f"the length of a SUBSTRING must be ≥ 0, got {length.literal}")
    if length is not None and length.literal is None:
        # Polars treats a null as no length limit.
        one = make.when([(make.call(length, "is_not_null"), one)], None)
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
    separator = constant_text(between, "the separator")
    return make.function("concat_str", texts, separator=separator, ignore_nulls=True)


def _replaced(make: Scalars, one: Scalar, old: Scalar, new: Scalar) -> Scalar:
    """REPLACE, in which an empty text is never found. Polars accepts no column or null for the two texts."""
    if isinstance(old.literal, str) and isinstance(new.literal, str):
        return make.call(one, "str.replace_all", old, new, literal=True) if old.literal else one
    # A constant text becomes one per row; otherwise all rows would get the first one's replacement.
    rows = make.when([(make.call(new, "is_not_null"), one)], None)
    joined = make.call(make.call(rows, "str.split", old), "list.join", new)
    return make.when(
        [(make.operator(old, "!=", make.literal("")), joined), (make.call(old, "is_not_null"), rows)], None
    )


def _instr(make: Scalars, one: Scalar, part: Scalar) -> Scalar:
    at = make.call(one, "str.find", part if part.literal is None else part.literal, literal=True)
    # `find` counts bytes, so the characters before the match are counted.
    head = make.call(
        make.call(make.cast(one, pl.Binary()), "bin.slice", 0, at), "cast", pl.String(), strict=False
    )
    number = make.cast(make.call(head, "str.len_chars"), pl.Int64())
    place = make.operator(number, "+", make.literal(1))
    some = make.call(make.call(one, "is_not_null"), "and_", make.call(part, "is_not_null"))
    none = make.when([(some, make.cast(make.literal(0), pl.Int64()))], None)
    return make.function("coalesce", [make.when([(make.call(at, "is_not_null"), place)], None), none])


def _trim(path: str) -> Callable[..., Scalar]:
    def made(make: Scalars, one: Scalar, signs: Scalar | None = None) -> Scalar:
        return make.call(one, path, " " if signs is None else constant_text(signs, "what is trimmed"))

    return made


def _size(one: Scalar, name: str) -> int:
    size = constant_whole(one, f"the length of {name}")
    if not 0 <= size <= _MOST:
        raise ValueError(f"the length of {name} must be from 0 to {_MOST:,}, got {size}")
    return size


def _pad(name: str) -> Callable[..., Scalar]:
    """Pads to a number of characters; a longer text is truncated, as in ksqlDB, Flink and Spark."""

    def made(make: Scalars, one: Scalar, length: Scalar, sign: Scalar | None = None) -> Scalar:
        size, fill = (
            _size(length, name),
            " " if sign is None else constant_text(sign, f"the padding of {name}"),
        )
        if not fill:
            raise ValueError(f"the padding of {name} must have a character")
        cut = make.call(one, "str.slice", 0, size)
        if len(fill) == 1:
            return make.call(cut, "str.pad_start" if name == "LPAD" else "str.pad_end", size, fill)
        more = make.operator(make.literal(size), "-", make.cast(make.call(cut, "str.len_chars"), pl.Int64()))
        # One text per row: for a constant, Polars would use the first row's length for all.
        of_rows = where(make, make.call(one, "is_not_null"), make.literal((fill * size)[:size]))
        padding = make.call(of_rows, "str.slice", 0, more)
        return make.function("concat_str", [padding, cut] if name == "LPAD" else [cut, padding])

    return made


def _end(path: str) -> Callable[..., Scalar]:
    """LEFT and RIGHT: so many characters, none for a number below 1."""

    def made(make: Scalars, one: Scalar, number: Scalar) -> Scalar:
        if isinstance(number.literal, int):
            return make.call(one, path, max(number.literal, 0))
        some = make.when([(make.operator(number, ">=", make.literal(0)), number)], None)
        zero = make.when([(make.operator(number, "<", make.literal(0)), make.literal(0))], None)
        return make.call(one, path, make.function("coalesce", [some, make.cast(zero, pl.Int64())]))

    return made


def _repeat(make: Scalars, one: Scalar, number: Scalar) -> Scalar:
    size = constant_whole(number, "the number of REPEAT")
    if size > _MOST:
        raise ValueError(f"the number of REPEAT must be ≤ {_MOST:,}, got {size}")
    times = make.cast(make.literal(max(size, 0)), pl.UInt32())
    repeated = make.call(make.call(one, "repeat_by", times), "list.join", "")
    return where(make, make.call(one, "is_not_null"), repeated)


def _translate(make: Scalars, one: Scalar, old: Scalar, new: Scalar) -> Scalar:
    """Replace each of some characters by the one at its position, or remove it."""
    olds = constant_text(old, "what TRANSLATE replaces")
    news = constant_text(new, "what TRANSLATE replaces it by")
    pairs: dict[str, str] = {}
    for at, sign in enumerate(olds):
        pairs.setdefault(sign, news[at] if at < len(news) else "")
    return make.call(one, "str.replace_many", list(pairs), list(pairs.values())) if pairs else one


def _part_of_split(first: int, name: str) -> Callable[..., Scalar]:
    """SPLIT_PART, which counts from 1, and Flink's SPLIT_INDEX, which counts from 0."""

    def made(make: Scalars, one: Scalar, by: Scalar, at: Scalar) -> Scalar:
        place = constant_whole(at, f"the number of {name}") - first
        if place < 0:
            raise ValueError(f"{name} counts from {first}: the number must be ≥ {first}, got {at.literal}")
        return make.call(make.call(one, "str.split", by), "list.get", place, null_on_oob=True)

    return made


def _pattern(one: Scalar) -> str:
    """A regular expression. Raises `ValueError` for one that would fail every batch."""
    text = constant_text(one, "the pattern")
    return _tried(text, pl.lit("").str.contains(text), "a regular expression")


def _tried(text: str, use: pl.Expr, what: str) -> str:
    """The text, if Polars accepts it. Otherwise raises `ValueError`, saying that it must be `what`."""
    try:
        pl.select(use)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{text!r} must be {what}: {first_line(error)}") from None
    return text


def _matching(make: Scalars, one: Scalar, pattern: Scalar) -> Scalar:
    return make.call(one, "str.contains", _pattern(pattern))


def _extracted(make: Scalars, pattern: Scalar, one: Scalar, group: Scalar | None = None) -> Scalar:
    """ksqlDB takes the pattern first, Flink and Spark the text: the constant one is the pattern."""
    if not isinstance(pattern.literal, str) and isinstance(one.literal, str):
        pattern, one = one, pattern
    number = 0 if group is None else constant_whole(group, "the number of the group")
    text = _pattern(pattern)
    marks = re.compile(r"\\.|\[[^]]*\]|\((?!\?[^P<])").findall(text)
    most = sum(mark.startswith("(") for mark in marks)
    if not 0 <= number <= most:
        raise ValueError(f"the pattern {text!r} has groups 0 to {most}, got {number}")
    return make.call(one, "str.extract", text, number)


def _replaced_pattern(make: Scalars, one: Scalar, pattern: Scalar, new: Scalar) -> Scalar:
    """Replace all matches: ``$1`` is the content of the first group, as in Java."""
    text = constant_text(new, "the replacement")
    if re.search(r"\\\d", text):
        raise ValueError(f"the groups of a replacement are written $1, got {text!r}")
    value = re.sub(r"\$(\d)", r"${\1}", text)
    return make.call(one, "str.replace_all", _pattern(pattern), value)


def json_path(one: Scalar) -> str:
    """A JSON path. Raises `ValueError` for a text that isn't one."""
    text = constant_text(one, "the path")
    if not text.startswith("$"):
        raise ValueError(f"a path begins with $, such as '$.{text}', got {text!r}")
    return _tried(text, pl.lit("{}").str.json_path_match(text), "a path of JSON")


def _json_field(make: Scalars, one: Scalar, path: Scalar) -> Scalar:
    return make.call(one, "str.json_path_match", json_path(path))


def _decoded(path: str) -> Callable[..., Scalar]:
    def made(make: Scalars, one: Scalar) -> Scalar:
        return make.cast(make.call(one, path, "base64", strict=False), pl.String())

    return made


def _masked(make: Scalars, one: Scalar) -> Scalar:
    for pattern, sign in (("[^A-Za-z0-9]", "-"), ("[A-Z]", "X"), ("[a-z]", "x"), ("[0-9]", "n")):
        one = make.call(one, "str.replace_all", pattern, sign)
    return one


def _capitals(make: Scalars, one: Scalar) -> Scalar:
    """Capitalise each word, as in ksqlDB and Spark: words are separated by spaces."""
    word = pl.element().cast(pl.String)
    first, rest = word.str.slice(0, 1).str.to_uppercase(), word.str.slice(1).str.to_lowercase()
    text = (
        "pl.concat_str([pl.element().cast(pl.String()).str.slice(0, 1).str.to_uppercase(), "
        "pl.element().cast(pl.String()).str.slice(1).str.to_lowercase()])"
    )
    capital = Scalar(pl.concat_str([first, rest]), text, pl.String())
    words = make.call(make.call(one, "str.split", " "), "list.eval", capital)
    return make.call(words, "list.join", " ")


def _is_all(pattern: str) -> Callable[..., Scalar]:
    return lambda make, one: make.call(one, "str.contains", pattern)


_LOCATE = Function(lambda make, part, one: _instr(make, one, part), (TEXT, TEXT))
_JSON = Function(_json_field, (TEXT, TEXT))
TEXT_FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("UPPER", "UCASE"), Function(method("str.to_uppercase"), (TEXT,))),
    **dict.fromkeys(("LOWER", "LCASE"), Function(method("str.to_lowercase"), (TEXT,))),
    "INITCAP": Function(_capitals, (TEXT,)),
    **dict.fromkeys(
        ("LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"), Function(counted("str.len_chars"), (TEXT,))
    ),
    "OCTET_LENGTH": Function(counted("str.len_bytes"), (TEXT,)),
    **dict.fromkeys(("TRIM", "BTRIM"), Function(_trim("str.strip_chars"), (TEXT, TEXT), 1)),
    "LTRIM": Function(_trim("str.strip_chars_start"), (TEXT, TEXT), 1),
    "RTRIM": Function(_trim("str.strip_chars_end"), (TEXT, TEXT), 1),
    **{name: Function(_pad(name), (TEXT, WHOLE, TEXT), 1) for name in ("LPAD", "RPAD")},
    "LEFT": Function(_end("str.head"), (TEXT, WHOLE)),
    "RIGHT": Function(_end("str.tail"), (TEXT, WHOLE)),
    "REPEAT": Function(_repeat, (TEXT, WHOLE)),
    **dict.fromkeys(("SUBSTRING", "SUBSTR"), Function(_substring, (TEXT, WHOLE, WHOLE), 1)),
    "CONCAT": Function(_concat, (ANY,), more=True),
    "CONCAT_WS": Function(_concat_with, (TEXT, ANY), more=True),
    "REPLACE": Function(_replaced, (TEXT,) * 3),
    "TRANSLATE": Function(_translate, (TEXT,) * 3),
    "REVERSE": Function(method("str.reverse"), (TEXT,)),
    "SPLIT": Function(lambda make, one, by: make.call(one, "str.split", by), (TEXT, TEXT)),
    "SPLIT_PART": Function(_part_of_split(1, "SPLIT_PART"), (TEXT, TEXT, WHOLE)),
    "SPLIT_INDEX": Function(_part_of_split(0, "SPLIT_INDEX"), (TEXT, TEXT, WHOLE)),
    **dict.fromkeys(
        ("STARTS_WITH", "STARTSWITH"),
        Function(lambda make, one, part: make.call(one, "str.starts_with", part), (TEXT, TEXT)),
    ),
    **dict.fromkeys(
        ("ENDS_WITH", "ENDSWITH"),
        Function(lambda make, one, part: make.call(one, "str.ends_with", part), (TEXT, TEXT)),
    ),
    **dict.fromkeys(("INSTR", "STRPOS"), Function(_instr, (TEXT, TEXT))),
    **dict.fromkeys(("LOCATE", "CHARINDEX"), _LOCATE),
    **dict.fromkeys(("REGEXP_LIKE", "REGEXP"), Function(_matching, (TEXT, TEXT))),
    "REGEXP_EXTRACT": Function(_extracted, (TEXT, TEXT, WHOLE), 1),
    "REGEXP_REPLACE": Function(_replaced_pattern, (TEXT,) * 3),
    "REGEXP_COUNT": Function(
        lambda make, one, pattern: make.cast(
            make.call(one, "str.count_matches", _pattern(pattern)), pl.Int64()
        ),
        (TEXT, TEXT),
    ),
    **dict.fromkeys(("EXTRACTJSONFIELD", "JSON_VALUE", "JSON_EXTRACT_STRING", "GET_JSON_OBJECT"), _JSON),
    "TO_BASE64": Function(lambda make, one: make.call(one, "str.encode", "base64"), (TEXT,)),
    "FROM_BASE64": Function(_decoded("str.decode"), (TEXT,)),
    "MASK": Function(_masked, (TEXT,)),
    "IS_DIGIT": Function(_is_all(r"^\p{Nd}+$"), (TEXT,)),
    "IS_ALPHA": Function(_is_all(r"^\p{L}+$"), (TEXT,)),
}
"""Functions by upper-case names."""
