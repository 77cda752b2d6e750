"""What counts as the same value: the one rule of all sketches that keep a hash of each value.

A hash tells values of one kind apart, and says nothing between kinds: DataSketches hashes 1 and 1.0 to
different words, and Spark hashes a date as no text. So such a sketch, and many in `Groups`, hold items of one
kind, `item_kind`, which the first values decide, or the type of an aggregate's column. Whatever comes later,
to be added or looked up, is

- **used as it is** if it is of that kind: whole numbers of every width and booleans (``"long"``), floats
  (``"double"``), texts and bytes (``"string"``: a text is its UTF-8 bytes), points in time and dates
  (``"timestamp"``), times of day (``"time"``), lengths of time (``"duration"``);
- **converted** if it is a number equal to one of that kind: 1.0 is 1 among whole numbers, 1 is 1.0 among
  floats, and a decimal is either. NaN is a gap but among floats, as pandas writes it, and skipped; of batches
  of NaN alone see `gaps`;
- **refused** otherwise, with nothing changed: 1.5 or a text among whole numbers, 2^53 + 1 among floats, a
  number or a text among dates. It is never answered by "no".

Sketches of two kinds don't merge. Bytes of others (Spark's, DataSketches') don't say the kind: a sketch read
from them takes that of what it first meets. `Aggregate.item_kind` keeps it beside columns of such bytes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import as_array
from .column_kinds import column_kind
from .columns import KIND_OF_ITEMS, NUMBERS, Values, as_values, flattened, is_list, temporal_kind
from .protocol import SketchError

WORDS = {
    "long": "whole numbers",
    "double": "floats",
    "string": "texts",
    "timestamp": "points in time",
    "time": "times of day",
    "duration": "lengths of time",
}
"""The kinds of items, as errors call them."""

# Any two differ in two bits at least, so that one flipped bit makes no other kind of one.
_CODES = {"long": b"Z", "double": b"D", "string": b"S", "timestamp": b"M", "time": b"H", "duration": b"P"}
_OF_CODE = {code[0]: kind for kind, code in _CODES.items()}
ARE_KINDS = np.isin(np.arange(256), list(_OF_CODE))
"""Which bytes of an image stand for a kind."""
_WHOLE_DOUBLES = 1 << 53
_NOT_WHOLE = "and not all of these floats are whole and within int64; round them, or take a sketch of floats"


def kind_of_type(leaf: pa.DataType) -> str:
    """The kind of a column's values, lists by their elements. Raises `TypeError` for types that have no hash.

    >>> kind_of_type(pa.int16()), kind_of_type(pa.date32()), kind_of_type(pa.binary())
    ('long', 'timestamp', 'string')
    """
    return temporal_kind(leaf) or KIND_OF_ITEMS[column_kind(leaf)]


def code_of(kind: str | None, unknown: bytes) -> bytes:
    """The byte that stands for a kind in our own images, `unknown` for None."""
    return unknown if kind is None else _CODES[kind]


def kind_of_code(code: int, unknown: bytes, family: str) -> str | None:
    """The kind that a byte of an image stands for. Raises `SketchError` for one that stands for none."""
    if code in unknown:
        return None
    if code not in _OF_CODE:
        raise SketchError(f"{family}: the image's byte for the kind of its items, {code}, stands for none")
    return _OF_CODE[code]


def as_items(values: Any, item_kind: str | None, family: str) -> Values:
    """`as_values` of what is to be added to items of a kind, or looked up in them; None: of any.

    Raises `TypeError` for values of another kind, and `SketchError` for a number that none of this kind
    equals.

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
    """What a text stands for that is looked up in items of a kind, as where parameters can only be texts.

    Whole numbers, floats, ISO 8601 times, and true and false for 1 and 0. Raises `SketchError` for others.

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
    raise SketchError(f"{family}: holds {WORDS[item_kind]}, and {text!r} is none")


def kind_with(item_kind: str | None, values: Values) -> str | None:
    """The kind of items once these values have been added."""
    return values.item_kind if item_kind is None and len(values) else item_kind


def joint_kind(one: str | None, other: str | None, family: str, verb: str = "merge") -> str | None:
    """The kind of items of two sketches together. Raises `SketchError` for two different ones.

    >>> joint_kind("long", None, "HLL")
    'long'
    """
    if one is not None and other is not None and one != other:
        both = f"of {WORDS[one]} with one of {WORDS[other]}: equal values have different hashes in them"
        raise SketchError(f"{family}: can't {verb} a sketch {both}")
    return one or other


def as_longs(items: Values) -> Values | None:
    """Floats as whole numbers without the gaps, which are NaN; None if one is no int64.

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
    """Floats without NaN."""
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
    """The column, or that of the numbers of this kind that are equal to its decimals."""
    leaf = array.type
    while is_list(leaf):
        leaf = leaf.value_type
    if not pa.types.is_decimal(leaf):
        return array
    items, rows = flattened(array)
    numbers: list[float] | list[int]
    if item_kind == "double":
        numbers = [float(one) for one in items.to_pylist()]
        # The double of a decimal is the one that is written like it, as in SQL.
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
