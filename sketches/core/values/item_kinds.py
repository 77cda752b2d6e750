"""The rule of which values are equal, for all sketches that store a hash of each value.

A hash distinguishes values of one kind, but is meaningless between kinds: DataSketches hashes 1 and 1.0
differently, and Spark hashes a date differently from any text. So such a sketch, and many in `Groups`, hold
items of one kind, `item_kind`, which the first values determine, or the type of an aggregate's column. Every
later value, whether added or looked up, is

- **used as it is** if it is of that kind: whole numbers of every width and booleans (``"long"``), floats
  (``"double"``), texts and bytes (``"string"``: a text is its UTF-8 bytes), points in time and dates
  (``"timestamp"``), times of day (``"time"``), lengths of time (``"duration"``);
- **converted** if it is a number equal to one of that kind: 1.0 is 1 among whole numbers, 1 is 1.0 among
  floats, and a decimal is either. NaN is a missing value, as pandas writes it, and is skipped, except among
  floats; `gaps` describes batches of only NaN;
- **refused** otherwise, with nothing changed: 1.5 or a text among whole numbers, 2^53 + 1 among floats, a
  number or a text among dates. A wrong kind is never answered with "no".

Sketches of different kinds can't be merged. Bytes from other systems (Spark, DataSketches) don't record the
kind: a sketch read from them adopts the kind of the first value that it gets. `Aggregate.item_kind` records
it beside columns of such bytes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.arrays import as_array
from ..columns.column_kinds import column_kind
from ..columns.columns import KIND_OF_ITEMS, NUMBERS, Values, as_values, flattened, is_list, temporal_kind
from ..protocol import SketchError

WORDS = {
    "long": "whole numbers",
    "double": "floats",
    "string": "texts",
    "timestamp": "points in time",
    "time": "times of day",
    "duration": "lengths of time",
}
"""The kinds of items, as named in errors."""

# Any two codes differ in at least two bits, so a flipped bit can't turn one kind into another.
_CODES = {"long": b"Z", "double": b"D", "string": b"S", "timestamp": b"M", "time": b"H", "duration": b"P"}
_OF_CODE = {code[0]: kind for kind, code in _CODES.items()}
ARE_KINDS = np.isin(np.arange(256), list(_OF_CODE))
"""Which bytes of an image are the code of a kind."""
_WHOLE_DOUBLES = 1 << 53
_NOT_WHOLE = "and not all of these floats are whole and within int64; round them, or take a sketch of floats"


def kind_of_type(leaf: pa.DataType) -> str:
    """Return the kind of a column's values or lists' elements. Raises `TypeError` for types without a hash.

    >>> kind_of_type(pa.int16()), kind_of_type(pa.date32()), kind_of_type(pa.binary())
    ('long', 'timestamp', 'string')
    """
    return temporal_kind(leaf) or KIND_OF_ITEMS[column_kind(leaf)]


def code_of(kind: str | None, unknown: bytes) -> bytes:
    """Return the byte for a kind in our own images, `unknown` for None."""
    return unknown if kind is None else _CODES[kind]


def kind_of_code(code: int, unknown: bytes, family: str) -> str | None:
    """Return the kind for a byte of an image. Raises `SketchError` if there is none."""
    if code in unknown:
        return None
    if code not in _OF_CODE:
        raise SketchError(f"{family}: the image's byte for the kind of its items, {code}, is unknown")
    return _OF_CODE[code]


def as_items(values: Any, item_kind: str | None, family: str) -> Values:
    """Convert values to be added to items of a kind, or looked up in them; None accepts any kind.

    Raises `TypeError` for values of another kind, and `SketchError` for a number that equals none of this
    kind.

    >>> as_items([1.0, float("nan"), 3.0], "long", "bloom").numbers.tolist()
    [1, 3]
    >>> as_items("1", "long", "bloom")
    Traceback (most recent call last):
    TypeError: bloom: holds whole numbers, to which texts can't be equal; cast them
    """
    if item_kind in ("long", "double") and not isinstance(values, (Values, np.ndarray)):
        values = as_array(values)
        if values.type.id not in NUMBERS:
            values = _without_decimals(values, item_kind, family)
    items = as_values(values)
    if item_kind is None or items.item_kind == item_kind or not len(items):
        return items
    if items.item_kind == "double":
        items = _without_gaps(items)
    if not len(items):
        return items
    if (items.item_kind, item_kind) == ("double", "long"):
        if (longs := as_longs(items)) is None:
            raise SketchError(f"{family}: holds whole numbers, {_NOT_WHOLE}")
        return longs
    if (items.item_kind, item_kind) == ("long", "double"):
        return _as_doubles(items, family)
    message = f"holds {WORDS[item_kind]}, to which {WORDS[items.item_kind]} can't be equal; cast them"
    raise TypeError(f"{family}: {message}")


def from_text(text: str, item_kind: str, family: str) -> Any:
    """Parse an item of a kind from a string, for parameters that can only be strings.

    Accepts integers, floats, ISO 8601 times, and true and false for 1 and 0. Raises `SketchError` for others.

    >>> from_text("3.0", "long", "bloom"), from_text("2026-01-01", "timestamp", "bloom")
    (3.0, datetime.datetime(2026, 1, 1, 0, 0))
    """
    if item_kind == "string":
        return text
    try:
        if item_kind == "timestamp":
            return datetime.fromisoformat(text)
        if item_kind == "time":
            return time.fromisoformat(text)
        if item_kind == "long" and text in ("true", "false"):
            return text == "true"
        if item_kind in ("long", "double"):
            return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        pass
    raise SketchError(f"{family}: holds {WORDS[item_kind]}, got {text!r}")


def kind_with(item_kind: str | None, values: Values) -> str | None:
    """Return the kind of items after adding these values."""
    return values.item_kind if item_kind is None and len(values) else item_kind


def joint_kind(one: str | None, other: str | None, family: str, verb: str = "merge") -> str | None:
    """Return the common kind of items of two sketches. Raises `SketchError` if they differ.

    >>> joint_kind("long", None, "HLL")
    'long'
    """
    if one is not None and other is not None and one != other:
        both = f"of {WORDS[one]} with one of {WORDS[other]}: equal values have different hashes in them"
        raise SketchError(f"{family}: can't {verb} a sketch {both}")
    return one or other


def as_longs(items: Values) -> Values | None:
    """Convert floats to integers without gaps, which are NaN; None if one is not an int64.

    >>> as_longs(as_values([1.0, float("nan")])).numbers.tolist(), as_longs(as_values([1.5]))
    ([1], None)
    """
    items = _without_gaps(items)
    numbers = items.numbers
    fits = (numbers == np.trunc(numbers)) & (numbers >= -(2.0**63)) & (numbers < 2.0**63)
    if not fits.all():
        return None
    return replace(items, kind="int64", numbers=numbers.astype(np.int64))


def _without_gaps(items: Values) -> Values:
    """Return floats without NaN."""
    if not (gaps := np.isnan(items.numbers)).any():
        return items
    there = np.flatnonzero(~gaps)
    rows = there if items.rows is None else items.rows[there]
    return replace(items, numbers=items.numbers[there], rows=rows, height=items.length)


def _as_doubles(items: Values, family: str) -> Values:
    numbers = items.numbers.view(np.uint64) if items.unsigned else items.numbers
    doubles = numbers.astype(np.float64)
    large = (numbers > _WHOLE_DOUBLES) | (numbers < -_WHOLE_DOUBLES) if len(numbers) else np.zeros(0, bool)
    for number, double in zip(numbers[large].tolist(), doubles[large].tolist()):
        if int(double) != number:
            raise SketchError(f"{family}: holds floats, and no float is equal to {number}; cast it")
    return replace(items, kind="float64", numbers=doubles, unsigned=False)


def _without_decimals(array: pa.Array, item_kind: str, family: str) -> pa.Array:
    """Return the column; decimals are replaced by the equal numbers of this kind."""
    leaf = array.type
    while is_list(leaf):
        leaf = leaf.value_type
    if not pa.types.is_decimal(leaf):
        return array
    items, rows = flattened(array)
    numbers: list[float] | list[int]
    if item_kind == "double":
        numbers = [float(one) for one in items.to_pylist()]
        # A decimal equals the double that is written the same way, as in SQL.
        equal = [Decimal(repr(double)) == one for double, one in zip(numbers, items.to_pylist())]
    else:
        numbers = [int(one) for one in items.to_pylist()]
        equal = [
            whole == one and -(1 << 63) <= whole < 1 << 63 for whole, one in zip(numbers, items.to_pylist())
        ]
    if not all(equal):
        message = f"holds {WORDS[item_kind]}, and none is equal to {items[equal.index(False)].as_py()}"
        raise SketchError(f"{family}: {message}; cast it")
    kind = pa.float64() if item_kind == "double" else pa.int64()
    if rows is None:
        return pa.array(numbers, kind)
    lists: list[list[Any]] = [[] for _ in range(len(array))]
    for row, one in zip(rows.tolist(), numbers):
        lists[row].append(one)
    return pa.array(lists, pa.list_(kind))
