"""Types that the JSON kernel doesn't read itself, made of the raw JSON text that it gives for them.

Lists of objects, of lists and of times: the kernel gives each element's text, all elements of a batch are
read as messages of their own, and lists are made of what comes out. Values that may stand as strings are read
from their text. A message is refused for any part that doesn't fit.
"""

from __future__ import annotations

import json as python_json
from collections.abc import Callable
from typing import Any

from ....sketches.core.lazy import np, pa, pl
from ..decode import Decoder
from ..messages import from_texts
from ..reasons import Reason, kind_of
from ..text.values import read_text

Lift = Callable[["pl.Series", dict[int, str]], "pl.Series"]
"""A column as the kernel gives it, to the column that was requested; notes rows that don't fit, and why."""

_SHOWN = 40


def lowered(kind: Any) -> Any:
    """The type as which the kernel is to read a type."""
    whole = kind() if isinstance(kind, type) else kind
    if isinstance(whole, pl.Struct):
        return pl.Struct({f.name: lowered(f.dtype) for f in whole.fields})
    if isinstance(whole, pl.List) and _by_element(whole.inner):
        return pl.List(pl.Binary)
    return whole


def _by_element(inner: Any) -> bool:
    return inner.is_nested() or inner.is_temporal()


def lifting(kind: Any, path: str, decoder_of: Callable[[Any], Decoder]) -> Lift | None:
    """What makes a column of `kind` of a lowered one; None if it is that already.

    `decoder_of` gives a decoder of objects with a member ``x`` of a type. Raises `TypeError` for types
    without a counterpart.
    """
    whole = kind() if isinstance(kind, type) else kind
    if isinstance(whole, pl.Struct):
        lifts = {f.name: lifting(f.dtype, f"{path}.{f.name}", decoder_of) for f in whole.fields}
        return _of_struct(lifts) if any(lifts.values()) else None
    if isinstance(whole, pl.List) and _by_element(whole.inner):
        try:
            return _of_list(decoder_of(whole.inner), path)
        except TypeError as error:
            raise TypeError(str(error).replace("field 'x", f"field '{path}[]", 1)) from None
    return None


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
        decoded = decoder.decode(from_texts(pl.select('{"x":' + texts + "}").to_series()))
        ends = np.concatenate([[0], np.cumsum(lengths)])
        owner = np.repeat(np.arange(len(column)), lengths)
        for element, reason in zip(decoded.refused.tolist(), decoded.reasons):
            row = int(owner[element])
            wrong.setdefault(row, _of_element(f"{path}[{element - int(ends[row])}]", f"{path}[]", reason))
        elements = decoded.frame["x"]
        if decoded.rows is not None:
            # A row that is refused may hold anything.
            at = np.zeros(len(texts), np.int64)
            at[decoded.rows] = np.arange(len(decoded.rows))
            elements = elements.gather(at) if len(elements) else elements.extend_constant(None, len(texts))
        mask = None if not column.null_count() else pa.array(column.is_null().to_numpy())
        lists = pa.LargeListArray.from_arrays(pa.array(ends), elements.to_arrow(), mask=mask)
        return pl.Series(column.name, pl.from_arrow(lists))

    return lift


def from_string(kind: Any, path: str) -> Lift:
    """Reads values that may stand as strings."""

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
    """The reason of a list's element, which was decoded as the member ``x``, for its message."""

    def named(text: str, path: str) -> str:
        return text.replace('"x', f'"{path}', 1) if text.startswith('"x') else f'"{path}": {text}'

    return Reason(named(kind_of(reason), any_place), named(reason, place))


def _unescaped(raw: str) -> str | None:
    return python_json.loads(raw) if raw.startswith('"') else None
