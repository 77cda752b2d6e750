"""What is wrong with a file of text that can't be read: the first such line, in words without Polars' advice.

A file is searched line by line after reading it has failed, so this may be slow.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...sketches.core.lazy import pl

_UNPARSED = re.compile(
    r"could not parse `(?P<text>.*?)` as dtype `[^`]*` at column '(?P<column>.*?)'", re.DOTALL
)
_ADVICE = re.compile(
    r"\s*(Consider setting|The current offset in the file|You might want to try)\b.*", re.DOTALL
)
_LONGEST_TEXT = 40


def without_advice(reason: str) -> str:
    """Polars' reason without the settings of Polars that it recommends.

    >>> without_advice("found more fields than defined. Consider setting 'truncate_ragged_lines=True'.")
    'found more fields than defined.'
    """
    return _ADVICE.sub("", reason)


def bad_csv_line(path: Path, separator: str, types: Mapping[str, Any], reason: str) -> str:
    """The first line with too many values, an open quote, or the value that `reason` names; else empty."""
    unparsed = _UNPARSED.search(reason)
    with _text(path) as file:
        records = csv.reader(file, delimiter=separator, strict=True)
        try:
            names = next(records, [])
            column = names.index(unparsed["column"]) if unparsed and unparsed["column"] in names else None
            line = records.line_num + 1
            for record in records:
                if len(record) > len(names):
                    return (
                        f"line {line:,} has {len(record):,} values, and the header names {len(names):,} "
                        f"columns; put a value that contains {separator!r} in quotes"
                    )
                if unparsed and column is not None and record[column : column + 1] == [unparsed["text"]]:
                    return _misfit(line, unparsed["column"], unparsed["text"], types)
                line = records.line_num + 1
        except csv.Error as error:
            open_quote = "end of data" in str(error)
            return f"line {line:,}: {'a quote is opened and never closed' if open_quote else error}"
    return ""


def bad_json_line(path: Path, types: Mapping[str, Any]) -> str:
    """The first line that is not JSON, or has a value of another type than its column; else empty."""
    with _text(path) as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except ValueError as error:
                return f"line {line:,} is not JSON: {str(error).partition(': line')[0]}"
            if not isinstance(row, dict):
                return f"line {line:,} is not a JSON object"
            for name, kind in types.items():
                if not _fits(row.get(name), kind):
                    return _misfit(line, name, row[name], types)
    return ""


def _fits(value: Any, kind: Any) -> bool:
    if value is None or not (kind.is_numeric() or kind == pl.Boolean):
        return True
    return isinstance(value, bool if kind == pl.Boolean else int if kind.is_integer() else int | float)


def _misfit(line: int, column: str, value: Any, types: Mapping[str, Any]) -> str:
    text = str(value)
    shown = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
    wanted = f"is not {_described(types[column])}, the type" if column in types else "doesn't fit the others"
    return f"line {line:,}: {shown!r} {wanted} of column {column!r}; correct or remove the line"


def _described(kind: Any) -> str:
    if kind.is_integer():
        return "a whole number"
    if kind.is_numeric():
        return "a number"
    return "a time" if kind.is_temporal() else f"a {kind}"


@contextmanager
def _text(path: Path) -> Iterator[io.TextIOWrapper]:
    with pa.input_stream(str(path), compression="detect") as binary:
        yield io.TextIOWrapper(binary, "utf-8-sig", errors="replace", newline="")
