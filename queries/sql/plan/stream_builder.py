"""A stream as it comes into being, and the Python that makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from ..errors import errors_at
from ..scalars.scalars import Scalar


@dataclass
class StreamBuilder:
    """A stream as it comes into being, with the Python that makes it."""

    stream: Any
    lines: list[str]

    def then(self, text: str, make: Callable[[Any], Any], at: Any) -> None:
        """One more step. What it raises is an error of that part of the query."""
        with errors_at(at):
            self.stream = make(self.stream)
        self.lines.append(text)


def with_columns(builder: StreamBuilder, columns: Mapping[str, Scalar], at: Any) -> None:
    """Add columns to the rows of a stream."""
    named = {name: one.expr for name, one in columns.items()}
    builder.then(f".with_columns({named_text(columns)})", lambda stream: stream.with_columns(**named), at)


def named_text(columns: Mapping[str, Scalar]) -> str:
    """Columns as keyword arguments."""
    return arguments({name: bare(one.text) for name, one in columns.items()})


def arguments(texts: Mapping[str, str]) -> str:
    """Keyword arguments, also of names that are no words of Python."""
    if all(name.isidentifier() and not iskeyword(name) for name in texts):
        return ", ".join(f"{name}={text}" for name, text in texts.items())
    return "**{" + ", ".join(f"{name!r}: {text}" for name, text in texts.items()) + "}"


def aggregate_source(one: Any) -> str:
    """The Python of a definition's aggregate."""
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
    """A text without the parentheses around all of it."""
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
    """The Python of a stream."""
    body = "\n".join(f"    {line}" for line in lines)
    header = "import polars as pl\nimport streamgauge as sg\n"
    if "datetime(" in body.replace("Datetime(", "").replace("to_datetime(", ""):
        header = f"from datetime import datetime\n\n{header}"
    return f"{header}\nstream = (\n{body}\n)"
