"""Errors in a statement, with their position in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from polars.exceptions import PolarsError

from ...sketches.core.errors import StreamgaugeError


class SqlError(StreamgaugeError, ValueError):
    """A statement that can't be run as written; the message says what to write.

    `line` and `column` count from 1. `message` is the sentence alone; the error's text also shows the line,
    with the words underlined.

    >>> error = SqlError("no column is called usr", 7, 10, "SELECT usr FROM posts")
    >>> error.line, error.column
    (1, 8)
    >>> print(error)
    line 1, column 8: no column is called usr
      SELECT usr FROM posts
             ^^^
    """

    def __init__(self, message: str, start: int, end: int | None = None, text: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self._start, self._end, self._text = start, start + 1 if end is None else end, text

    @property
    def line(self) -> int:
        """The line, counted from 1."""
        return (self._text or "").count("\n", 0, self._start) + 1

    @property
    def column(self) -> int:
        """The column, counted from 1."""
        return self._start - ((self._text or "").rfind("\n", 0, self._start) + 1) + 1

    def of_text(self, text: str) -> SqlError:
        """The same error with the text that it refers to, unless it already has one."""
        if self._text is None:
            self._text = text
        return self

    def __str__(self) -> str:
        if self._text is None:
            return self.message
        begin = self._text.rfind("\n", 0, self._start) + 1
        line = self._text[begin:].split("\n", 1)[0].rstrip("\r")
        lead = "".join("\t" if sign == "\t" else " " for sign in line[: self._start - begin])
        length = max(1, min(self._end - self._start, len(line) - len(lead)))
        return f"line {self.line}, column {self.column}: {self.message}\n  {line}\n  {lead}{'^' * length}"


def span_of(node: Any) -> tuple[int, int]:
    """The beginning and end of a part of a tree in the text: from its first word to its last.

    The span of a function is only its name, so that the underlined part is short.
    """
    if "start" in node.meta:
        return int(node.meta["start"]), int(node.meta["end"]) + 1
    below = [(int(one.meta["start"]), int(one.meta["end"]) + 1) for one in node.walk() if "start" in one.meta]
    above = node.parent
    if not below and above is not None:
        return span_of(above)
    return (min(start for start, _ in below), max(end for _, end in below)) if below else (0, 1)


def error_at(node: Any, message: str) -> SqlError:
    """The error for a part of a tree."""
    return SqlError(message, *span_of(node))


@contextmanager
def errors_at(node: Any) -> Iterator[None]:
    """Convert errors raised while a part of a statement is processed into errors for that part."""
    try:
        yield
    except SqlError:
        raise
    except (ValueError, TypeError, LookupError, OSError, StreamgaugeError, PolarsError) as error:
        message = str(error.args[0] if isinstance(error, KeyError) else error)
        raise error_at(node, types_in_sql(message.split("\n")[0])) from None


_TYPES = {
    **dict.fromkeys(("large_string", "string_view", "String"), "VARCHAR"),
    **dict.fromkeys(("large_binary", "Binary"), "BYTES"),
    **dict.fromkeys(("bool", "Boolean"), "BOOLEAN"),
    **{f"{sign}nt8": "TINYINT" for sign in "iI"},
    **{f"{sign}nt16": "SMALLINT" for sign in "iI"},
    **{f"{sign}nt32": "INT" for sign in "iI"},
    **{f"{sign}nt64": "BIGINT" for sign in "iI"},
    **dict.fromkeys(("float", "float32", "Float32"), "FLOAT"),
    **dict.fromkeys(("double", "float64", "Float64"), "DOUBLE"),
    "date32[day]": "DATE",
}
"""SQL's names for types of Arrow and Polars."""
_TYPE = re.compile(rf"(?<![\w'])(?:{'|'.join(map(re.escape, sorted(_TYPES, key=len)[::-1]))})(?![\w'])")


def types_in_sql(message: str) -> str:
    """A message with SQL's names for types of Arrow and Polars.

    >>> types_in_sql("a column of large_string can't be added up")
    "a column of VARCHAR can't be added up"
    >>> types_in_sql("struct<a: int32, b: large_list<item: double>>, List(String), timestamp[us, tz=UTC]")
    'STRUCT<a INT, b ARRAY<DOUBLE>>, ARRAY<VARCHAR>, TIMESTAMP'
    """
    message = _TYPE.sub(lambda match: _TYPES[match[0]], message)
    message = re.sub(r"\b(?:timestamp\[[^\]]*\]|Datetime\([^()]*\))", "TIMESTAMP", message)
    message = re.sub(r"\b(?:large_)?list<item: ", "ARRAY<", message)
    message = re.sub(r"\bList\(([A-Z]+)\)", r"ARRAY<\1>", message)
    return re.sub(r"\bstruct<(.*)>", _struct, message)


def _struct(match: re.Match[str]) -> str:
    return "STRUCT<" + re.sub(r"(\w): (?=[A-Z])", r"\1 ", match[1]) + ">"


def counted_arguments(fewest: int, most: int) -> str:
    """A number of arguments, in words.

    >>> counted_arguments(1, 1), counted_arguments(0, 1), counted_arguments(2, 10_000)
    ('1 argument', '0 to 1 arguments', '2 or more arguments')
    """
    if fewest == most:
        return f"{fewest} argument{'s' if fewest != 1 else ''}"
    return f"{fewest} or more arguments" if most > 99 else f"{fewest} to {most} arguments"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint: the nearest of the known names, or all of them.

    >>> nearest("usr", ["user", "lang"]), nearest("x", ["user", "lang"])
    ('did you mean user?', 'there are user, lang')
    """
    names = list(known)
    by_lower = {one.lower(): one for one in names}
    near = get_close_matches(name.lower(), by_lower, 1)
    if near:
        return f"did you mean {by_lower[near[0]]}?"
    return f"there are {', '.join(names[:20])}" if names else "there are none"
