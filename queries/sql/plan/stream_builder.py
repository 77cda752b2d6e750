"""A stream under construction, and the Python that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

from ..errors import errors_at
from ..scalars.scalars import Scalar, map_places


@dataclass
class StreamBuilder:
    """A stream under construction, with the Python that builds it.

    `maps` are the types of columns that are or contain MAPs, for which Polars has lists.
    """

    stream: Any
    lines: list[str]
    maps: dict[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, Any]:
        """Its columns with their types, MAPs among them."""
        return {name: self.type_of(name, kind) for name, kind in self.stream.columns.items()}

    def type_of(self, name: str, kind: Any) -> Any:
        """The SQL type of a column that has this type in Polars."""
        known = self.maps.get(name)
        return known if known is not None and known == kind else kind

    def note(self, columns: Mapping[str, Any]) -> None:
        """Record which of these columns have MAPs."""
        for name, kind in columns.items():
            self.maps.pop(name, None)
            if map_places(kind):
                self.maps[name] = kind

    def then(self, text: str, make: Callable[[Any], Any], at: Any) -> None:
        """Add a step. Errors that it raises become errors of that part of the query."""
        with errors_at(at):
            self.stream = make(self.stream)
        self.lines.append(text)


def with_columns(builder: StreamBuilder, columns: Mapping[str, Scalar], at: Any) -> None:
    """Add columns to the rows of a stream."""
    named = {name: one.expr for name, one in columns.items()}
    builder.then(f".with_columns({named_text(columns)})", lambda stream: stream.with_columns(**named), at)
    builder.note({name: one.type for name, one in columns.items()})


def named_text(columns: Mapping[str, Scalar]) -> str:
    """Columns as keyword arguments."""
    return arguments({name: bare(one.text) for name, one in columns.items()})


def arguments(texts: Mapping[str, str]) -> str:
    """Keyword arguments, also for names that aren't Python identifiers."""
    if all(name.isidentifier() and not iskeyword(name) for name in texts):
        return ", ".join(f"{name}={text}" for name, text in texts.items())
    return "**{" + ", ".join(f"{name!r}: {text}" for name, text in texts.items()) + "}"


def aggregate_source(one: Any) -> str:
    """The Python for a definition's aggregate."""
    module = "sg.stored" if one.family.stored else "sg"
    line = one.family
    given = [] if one.column is None else [repr(one.column)]
    given += [f"{name}={column!r}" for name, column in one.inputs.items()]
    for name, value in {**one.params, **one.answer}.items():
        default = {**line.params, **line.answer}.get(name)
        if value != default:
            given.append(f"{name}={value!r}")
    return f"{module}.{one.name}({', '.join(given)})"


def bare(text: str) -> str:
    """A text without parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    quote = ""
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote and text[at - 1] != "\\" else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth == 0:
                return text[1:-1] if at == len(text) - 1 else text
    return text


def source_text(lines: list[str]) -> str:
    """The Python for a stream."""
    body = "\n".join(f"    {line}" for line in lines)
    header = "import polars as pl\nimport streamgauge as sg\n"
    if "datetime(" in body.replace("Datetime(", "").replace("to_datetime(", ""):
        header = f"from datetime import datetime\n\n{header}"
    return f"{header}\nstream = (\n{body}\n)"
