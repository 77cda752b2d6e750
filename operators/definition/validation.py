"""Validation of a request against the columns of its rows: keys, and aggregates by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...sketches.core.lazy import pa, pl
from .aggregate import Aggregate
from .input_cleaning import check_input

RESERVED = ("window_start", "window_end")
"""Columns that every table of sketches has."""


def check_keys(verb: str, keys: Sequence[str], columns: Mapping[str, pl.DataType]) -> None:
    """Raise `ValueError` for keys that can't be grouped by, `TypeError` for columns of lists or structs.

    >>> check_keys("group_by", ["lang"], {"user": pl.String()})
    Traceback (most recent call last):
    ValueError: group_by: no column 'lang' in user
    """
    if len(set(keys)) < len(keys):
        raise ValueError(f"{verb}: a key is named twice in {_names(keys)}; name it once")
    missing = [key for key in keys if key not in columns]
    if missing:
        raise ValueError(f"{verb}: no column {', '.join(map(repr, missing))} in {_names([*columns])}")
    for key in keys:
        if columns[key].is_nested():
            instead = "take its fields" if columns[key] == pl.Struct else "explode it first"
            raise TypeError(f"{verb}: {key!r} is of type {columns[key]}; {instead}")


def typed_aggregates(
    aggregates: Mapping[str, Aggregate], keys: Sequence[str], types: Mapping[str, pa.DataType]
) -> dict[str, Aggregate]:
    """The aggregates, with the parameters that the types of their columns determine.

    Raises `ValueError` for invalid names and columns, `TypeError` for values that aren't aggregates and for
    columns that an aggregate doesn't accept.
    """
    if not aggregates:
        raise ValueError("agg: no aggregate was given; name one, such as posts=count()")
    typed = {}
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise TypeError(
                f"agg: {name!r} is {aggregate!r}, which is not an aggregate; write one, such as "
                'distinct("user")'
            )
        if name in keys or name in RESERVED:
            raise ValueError(f"agg: {name!r} is already a column of the table; choose another name")
        if aggregate.column is None and aggregate.name != "count":
            raise ValueError(f"agg: {aggregate.name} of {name!r} needs a column")
        for column in aggregate.columns:
            if column not in types:
                raise ValueError(
                    f"agg: {name!r} aggregates {column!r}, which is not a column of the stream; there are "
                    f"{_names([*types])}"
                )
        for given, column in aggregate.inputs.items():
            check_input(given, column, types[column])
        typed[name] = aggregate.typed(types[aggregate.column] if aggregate.column is not None else None)
    return typed


def _names(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "no columns"
