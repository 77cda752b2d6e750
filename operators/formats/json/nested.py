"""Types that the JSON kernel doesn't read itself, built from the raw JSON text that it returns for them.

For lists of objects, of lists, of times and of decimals, the kernel returns each element's text; all elements
of a batch are decoded as messages of their own, and the results are combined into lists. The values of an
object with arbitrary keys are read in the same way. Decimals, and values that may be strings, are parsed from
their text. A message is refused if any part doesn't fit.
"""

from __future__ import annotations

import json as python_json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from ....sketches.core.lazy import np, pa, pl
from ..decode import Decoder
from ..messages import from_texts
from ..reasons import Reason, kind_of
from ..text.values import read_text

Lift = Callable[["pl.Series", dict[int, str]], "pl.Series"]
"""Converts a column from the kernel to the requested one; records the rows that don't fit, and why."""

_SHOWN = 40


Places = tuple[tuple[str, ...], ...]
"""Places of objects with arbitrary keys in a type: the fields that lead there, ``[]`` for an element."""


def below(places: Places, *step: str) -> Places:
    """The places within a part of a type, relative to that part."""
    return tuple(place[len(step) :] for place in places if place[: len(step)] == step)


def lowered(kind: Any, places: Places = ()) -> Any:
    """The type that the kernel reads in place of a type, with objects with arbitrary keys at these places."""
    whole = kind() if isinstance(kind, type) else kind
    if () in places:
        return pl.Binary()
    if isinstance(whole, pl.Struct):
        return pl.Struct({f.name: lowered(f.dtype, below(places, f.name)) for f in whole.fields})
    if isinstance(whole, pl.List) and _by_element(whole.inner):
        return pl.List(pl.Binary)
    return pl.Binary() if isinstance(whole, pl.Decimal) else whole


def _by_element(inner: Any) -> bool:
    return inner.is_nested() or inner.is_temporal() or inner.is_decimal()


def lifting(
    kind: Any, path: str, decoder_of: Callable[[Any, Places], Decoder], places: Places = ()
) -> Lift | None:
    """The conversion from a lowered column to one of `kind`; None if it is that already.

    `decoder_of` returns a decoder of objects with a member ``x`` of a type. Raises `TypeError` for types
    without a counterpart.
    """
    whole = kind() if isinstance(kind, type) else kind
    try:
        if () in places:
            value = whole.inner.fields[1].dtype
            return from_object(decoder_of(value, below(places, "[]", "value")), path)
        if isinstance(whole, pl.List) and _by_element(whole.inner):
            return _of_list(decoder_of(whole.inner, below(places, "[]")), path)
    except TypeError as error:
        raise TypeError(str(error).replace("field 'x", f"field '{path}[]", 1)) from None
    if isinstance(whole, pl.Struct):
        lifts = {
            f.name: lifting(f.dtype, f"{path}.{f.name}", decoder_of, below(places, f.name))
            for f in whole.fields
        }
        return _of_struct(lifts) if any(lifts.values()) else None
    return from_string(whole, path) if isinstance(whole, pl.Decimal) else None


def _of_struct(lifts: dict[str, Lift | None]) -> Lift:
    def lift(column: pl.Series, wrong: dict[int, str]) -> pl.Series:
        parts = [column.struct.field(name) for name in lifts]
        whole = [
            part if do is None else do(part, wrong).alias(part.name)
            for part, do in zip(parts, lifts.values())
        ]
        there = column.is_not_null()
        return pl.select(pl.when(there).then(pl.struct(whole)).alias(column.name)).to_series()

    return lift


def _of_list(decoder: Decoder, path: str) -> Lift:
    def lift(column: pl.Series, wrong: dict[int, str]) -> pl.Series:
        lengths = column.list.len().fill_null(0).to_numpy().astype(np.int64)
        texts = pl.Series(pl.from_arrow(column.to_arrow().flatten())).cast(pl.String).fill_null("null")
        ends = np.concatenate([[0], np.cumsum(lengths)])
        owner = np.repeat(np.arange(len(column)), lengths)

        def place(element: int) -> str:
            return f"{path}[{element - int(ends[owner[element]])}]"

        elements = _elements(decoder, texts, owner, place, f"{path}[]", wrong)
        return _lists(column, ends, elements)

    return lift


def _elements(
    decoder: Decoder,
    texts: pl.Series,
    owner: np.ndarray,
    place: Callable[[int], str],
    any_place: str,
    wrong: dict[int, str],
) -> pl.Series:
    """Decode the elements of a batch's lists from their texts; records rows with an element that doesn't fit.

    `owner` has the row of each element, and `place` returns its path for a reason.
    """
    decoded = decoder.decode(from_texts(pl.select('{"x":' + texts + "}").to_series()))
    for element, reason in zip(decoded.refused.tolist(), decoded.reasons):
        wrong.setdefault(int(owner[element]), _of_element(place(element), any_place, reason))
    elements = decoded.frame["x"]
    if decoded.rows is None:
        return elements
    # A refused row may have any value.
    at = np.zeros(len(texts), np.int64)
    at[decoded.rows] = np.arange(len(decoded.rows))
    return elements.gather(at) if len(elements) else elements.extend_constant(None, len(texts))


def _lists(column: pl.Series, ends: np.ndarray, elements: pl.Series) -> pl.Series:
    """Lists that end at these elements, null where the column is null."""
    mask = None if not column.null_count() else pa.array(column.is_null().to_numpy())
    lists = pa.LargeListArray.from_arrays(pa.array(ends), elements.to_arrow(), mask=mask)
    return pl.Series(column.name, pl.from_arrow(lists))


def entries_of(value: Any) -> pl.List:
    """The type of an object with arbitrary keys: a list of structs of ``key`` and ``value``."""
    return pl.List(pl.Struct({"key": pl.String(), "value": value}))


def from_object(decoder: Decoder, path: str) -> Lift:
    """Reads objects with arbitrary keys; `decoder` decodes objects with a member ``x`` of the value type."""

    def lift(column: pl.Series, wrong: dict[int, str]) -> pl.Series:
        keys: list[str] = []
        texts: list[str] = []
        lengths = np.zeros(len(column), np.int64)
        for row, text in enumerate(column.cast(pl.String)):
            if text is None:
                continue
            if not text.startswith("{"):
                shown = {"[": "a list", '"': "a string"}.get(text[0], text[:_SHOWN])
                wrong.setdefault(
                    row, Reason(f'"{path}" is not an object', f'"{path}" is {shown}, not an object')
                )
                continue
            members = _members(text)
            keys += members
            texts += members.values()
            lengths[row] = len(members)
        owner = np.repeat(np.arange(len(column)), lengths)

        def place(element: int) -> str:
            return f"{path}[{keys[element][:_SHOWN]!r}]"

        values = pl.Series(texts, dtype=pl.String)
        entries = pl.DataFrame(
            {
                "key": pl.Series(keys, dtype=pl.String),
                "value": _elements(decoder, values, owner, place, f"{path}[]", wrong),
            }
        ).to_struct()
        return _lists(column, np.concatenate([[0], np.cumsum(lengths)]), entries)

    return lift


def _members(text: str) -> dict[str, str]:
    """The JSON texts of an object's members, by name.

    The text must be valid JSON. If a name occurs twice, the last value counts, at the position of the first.

    >>> _members('{"a": [1, {"b": 2}], "c":null, "a" : "x" }')
    {'a': '"x"', 'c': 'null'}
    """
    members: dict[str, str] = {}
    at = text.find('"')
    while at >= 0:
        name, at = scanstring(text, at + 1)
        begin = text.index(":", at) + 1
        while text[begin] in _SPACE:
            begin += 1
        at = _value_end(text, begin)
        members[name] = text[begin:at]
        at = text.find('"', at)
    return members


_SPACE = " \t\n\r"
_SCALAR_END = re.compile(r"[,}\]\s]")
_MARK = re.compile(r'["{}\[\]]')


def _value_end(text: str, at: int) -> int:
    """The end of the value that begins at a position in a JSON text."""
    sign = text[at]
    if sign == '"':
        return int(scanstring(text, at + 1)[1])
    if sign not in "{[":
        end = _SCALAR_END.search(text, at)
        assert end is not None
        return end.start()
    depth = 0
    while True:
        mark = _MARK.search(text, at)
        assert mark is not None
        at = mark.end()
        if mark[0] == '"':
            at = scanstring(text, at)[1]
        else:
            depth += 1 if mark[0] in "{[" else -1
            if not depth:
                return at


def from_string(kind: Any, path: str) -> Lift:
    """Reads values from their text, which may be a JSON string."""

    def lift(column: pl.Series, wrong: dict[int, str]) -> pl.Series:
        raw = column.cast(pl.String)
        escaped = raw.str.contains("\\", literal=True).fill_null(False)
        texts = raw.str.strip_prefix('"').str.strip_suffix('"')
        if escaped.any():
            texts = texts.scatter(escaped.arg_true(), [_unescaped(one) for one in raw.filter(escaped)])
        texts = texts.set(raw.str.contains(r"^[\[{]"), None)
        values = read_text(texts, kind)
        for row in (values.is_null() & raw.is_not_null()).arg_true().to_list():
            shown = {"{": "an object", "[": "a list"}.get(raw[row][0], raw[row][:_SHOWN])
            reason = Reason(f'"{path}" is not {kind}', f'"{path}" is {shown}, not {kind}')
            wrong.setdefault(row, reason)
        return values.alias(column.name)

    return lift


def _of_element(place: str, any_place: str, reason: str) -> Reason:
    """The reason for a list's element, which was decoded as the member ``x``, for its message."""

    def named(text: str, path: str) -> str:
        return text.replace('"x', f'"{path}', 1) if text.startswith('"x') else f'"{path}": {text}'

    return Reason(named(kind_of(reason), any_place), named(reason, place))


def _unescaped(raw: str) -> str | None:
    return python_json.loads(raw) if raw.startswith('"') else None
