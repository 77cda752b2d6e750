"""Columns of a message's metadata: key, headers, partition, offset and timestamp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from ...sketches.core.columns.lists import elements
from ...sketches.core.lazy import np, pa, pc, pl
from .decode import Decoded
from .messages import Messages, headers_type, texts
from .reasons import Reason


@cache
def parts_of_messages() -> dict[str, Any]:
    """The parts of a message that can be requested, and the types of their columns."""
    return {
        "key": pl.String,
        "key_bytes": pl.Binary,
        "headers": pl.List(pl.Struct({"key": pl.String, "value": pl.Binary})),
        "partition": pl.Int32,
        "offset": pl.Int64,
        "timestamp": pl.Datetime("ms", "UTC"),
        "timestamp_type": pl.String,
    }


_HEADER = "header:"


def message_columns(
    parts: Sequence[str] | Mapping[str, str], value_columns: Mapping[str, Any]
) -> dict[str, str]:
    """The part of a message in each column, by column name.

    `parts` lists parts, or maps column names to parts: ``key`` (text), ``key_bytes``, ``headers``,
    ``header:NAME`` (the text of the last header of that name, null if there is none), ``partition``,
    ``offset``, ``timestamp`` and ``timestamp_type`` (``create`` if the producer set it, ``append`` if the
    broker did). `value_columns` are the columns of the value.

    >>> message_columns({"user": "key", "trace": "header:trace-id"}, {"price": pl.Float64})
    {'user': 'key', 'trace': 'header:trace-id'}

    Raises `TypeError` or `ValueError` for anything that isn't a part of a message, and for names that are
    taken.
    """
    if isinstance(parts, str) or not isinstance(parts, (Sequence, Mapping)):
        raise TypeError(f'message must list parts, as in ["key", "offset"], or map columns, got {parts!r}')
    columns = dict(parts) if isinstance(parts, Mapping) else {part: part for part in parts}
    for name, part in columns.items():
        if not isinstance(name, str) or not isinstance(part, str):
            raise TypeError(
                f'message must map names of columns to parts, such as {{"at": "timestamp"}}, got {name!r}: '
                f"{part!r}"
            )
        if part not in parts_of_messages() and not _named(part):
            near = get_close_matches(part, parts_of_messages(), 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            known = ", ".join(parts_of_messages())
            raise ValueError(
                f"message: {part!r} is not a part of a message; {meant}There are {known} and header:NAME"
            )
        if name in value_columns:
            raise ValueError(
                f"message: {name!r} is a field of the value already; choose another name for the column, "
                f'as in message={{"message_{name}": "{part}"}}'
            )
    return columns


def types_of(columns: Mapping[str, str]) -> dict[str, Any]:
    """The Polars types of these columns."""
    return {name: parts_of_messages().get(part, pl.String) for name, part in columns.items()}


def need_headers(columns: Mapping[str, str]) -> bool:
    """Whether they require reading headers."""
    return any(part == "headers" or part.startswith(_HEADER) for part in columns.values())


def with_message(decoded: Decoded, messages: Messages, columns: Mapping[str, str]) -> Decoded:
    """A batch's rows with these columns added; refused if a key or header should be text and isn't."""
    rows = decoded.rows
    series_of = {name: _part(messages, part, rows) for name, part in columns.items()}
    reasons: dict[int, str] = {}
    for name, part in columns.items():
        if types_of({name: part})[name] != pl.String or part == "timestamp_type":
            continue
        given = series_of[name]
        series_of[name] = texts(given)
        unread = series_of[name].is_null() & given.is_not_null()
        what = "the key" if part == "key" else f"the header {_named(part)!r}"
        bytes_of = "key_bytes" if part == "key" else "headers"
        for row in unread.arg_true().to_list():
            reason = Reason(f'{what} is not UTF-8 text; ask for "{bytes_of}" to have its bytes')
            reasons.setdefault(row, reason)
    frame = decoded.frame.with_columns(series.alias(name) for name, series in series_of.items())
    whole = replace(decoded, frame=frame)
    if not reasons:
        return whole
    gone = np.zeros(frame.height, bool)
    gone[list(reasons)] = True
    return whole.without(gone, [reasons[row] for row in sorted(reasons)])


def _part(messages: Messages, part: str, rows: np.ndarray | None) -> pl.Series:
    """One part of the messages that are rows; text still as bytes."""
    column: Any
    if part in ("key", "key_bytes"):
        column = messages.key
    elif part in ("partition", "offset"):
        return pl.Series(_selected(getattr(messages, part), rows))
    elif part == "timestamp":
        stamps = pl.Series(_selected(messages.timestamp, rows))
        return pl.select(pl.when(stamps >= 0).then(stamps)).to_series().cast(parts_of_messages()["timestamp"])
    elif part == "timestamp_type":
        appended = np.zeros(len(messages), bool) if messages.appended is None else messages.appended
        kinds = pl.Series(np.where(_selected(appended, rows), "append", "create"), dtype=pl.String)
        stamps = pl.Series(_selected(messages.timestamp, rows))
        return pl.select(pl.when(stamps >= 0).then(kinds)).to_series()
    else:
        headers = messages.headers
        if headers is None:
            headers = pa.array([[]] * len(messages), headers_type())
        column = headers if part == "headers" else _last(headers, _named(part))
    series = pl.from_arrow(column if rows is None else column.take(pa.array(rows)))
    assert isinstance(series, pl.Series)
    return series.cast(parts_of_messages()["headers"]) if part == "headers" else series.cast(pl.Binary)


def _selected(column: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    return column if rows is None else column[rows]


def _named(part: str) -> str:
    """The name of the header that a part requests; empty for other parts."""
    return part[len(_HEADER) :] if part.startswith(_HEADER) else ""


def _last(headers: pa.ListArray, name: str) -> pa.Array:
    """The value of each message's last header with a name; null if there is none."""
    flat, rows = elements(headers)
    keys, values = flat.flatten()
    at = np.flatnonzero(pc.equal(keys, name).to_numpy(zero_copy_only=False))
    place = np.full(len(headers), -1, np.int64)
    place[rows[at]] = at  # if there are several, the last one stays
    return values.take(pa.array(place, mask=place < 0))
