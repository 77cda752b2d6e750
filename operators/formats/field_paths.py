"""Columns selected from nested fields: by name, by path, or renamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...sketches.core.lazy import np, pa, pc, pl

Path = tuple[str, ...]
Paths = tuple[tuple[str, Path], ...]
"""Columns in order, each with the path of its field."""


def paths_of(
    who: str, columns: Sequence[str] | Mapping[str, str], known: Callable[[Path], list[str] | None]
) -> Paths:
    """The paths that `columns` requests: dotted paths, or a mapping from columns to them.

    `known` returns None for a path that leads to a field, otherwise the available names where it goes wrong.
    Raises `TypeError` for an invalid selection and `ValueError` for paths that lead nowhere.

    >>> paths_of("avro", {"who": "actor.id"}, lambda path: None)
    (('who', ('actor', 'id')),)
    """
    if isinstance(columns, str) or not isinstance(columns, (Sequence, Mapping)) or not columns:
        raise TypeError(
            f'{who}: columns must list fields, as in ["user", "actor.id"], or map columns, got {columns!r}'
        )
    path_of = columns if isinstance(columns, Mapping) else {path: path for path in columns}
    if not all(isinstance(part, str) for pair in path_of.items() for part in pair):
        raise TypeError(
            f'{who}: columns is {columns!r}; columns and paths are strings, as in {{"who": "actor.id"}}'
        )
    paths = []
    for column, path in path_of.items():
        names = tuple(path.split("."))
        there = known(names)
        if there is not None:
            some = f"there are {', '.join(there)}" if there else "it leads into what has no fields"
            raise ValueError(f"{who}: the schema has no field {path!r}; {some}")
        paths.append((column, names))
    return tuple(paths)


def picked(rows: pa.StructArray, paths: Paths) -> pl.DataFrame:
    """The columns at these paths of an array of structs; null if a struct on the way is null.

    Maps become lists of structs of ``key`` and ``value``, because not every version of Polars has maps.
    """
    kind = without_maps(rows.type)
    rows = rows if kind == rows.type else rows.cast(kind)
    arrays = {column: pc.struct_field(rows, list(path)) for column, path in paths}
    frame = pl.from_arrow(pa.table(arrays)) if arrays else pl.DataFrame(height=len(rows))
    assert isinstance(frame, pl.DataFrame)
    return frame


def without_maps(kind: pa.DataType) -> pa.DataType:
    """An Arrow type in which maps are lists of structs of ``key`` and ``value``.

    >>> without_maps(pa.map_(pa.string(), pa.int64()))
    ListType(list<item: struct<key: string, value: int64>>)
    """
    if pa.types.is_map(kind):
        pairs = [("key", without_maps(kind.key_type)), ("value", without_maps(kind.item_type))]
        return pa.list_(pa.struct(pairs))
    if pa.types.is_list(kind):
        return pa.list_(without_maps(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct(
            [(kind.field(i).name, without_maps(kind.field(i).type)) for i in range(kind.num_fields)]
        )
    return kind


def listed(rows: pl.DataFrame, column: str, lengths: Sequence[int]) -> pl.DataFrame:
    """One column of lists of structs, with `lengths` consecutive rows each.

    >>> listed(pl.DataFrame({"n": [1, 2, 3]}), "records", [2, 0, 1])["records"].to_list()
    [[{'n': 1}, {'n': 2}], [], [{'n': 3}]]
    """
    ends = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)
    items: Any = rows.to_struct(column).to_arrow()
    lists = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), items)
    return pl.DataFrame({column: pl.Series(column, pl.from_arrow(lists))})
