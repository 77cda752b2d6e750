"""The scalar functions: columns of sketches in, a column of answers out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ...operators.families import Family, family
from ...sketches.frequent_items.approx_top_k import from_state
from .arguments import converted
from .questions import question_of
from .reading import read, read_options


def asked_each(verb: str, name: str, kind: str, arguments: dict[str, pa.Array]) -> pa.Array:
    """What a verb finds for each row; null where a sketch, or what is asked about it, is null.

    Raises `SketchError` for bytes that are not such a sketch, and for what it can't be asked.
    """
    line, function = family(name), f"{verb}_{name}"
    asked = question_of(verb, line, kind)
    assert asked is not None, f"there is no {function}"
    told = dict(arguments)
    images = told.pop("sketch").to_pylist()
    reading = {one: told.pop(one).to_pylist() for one in read_options(line) if one in told}
    options = {one: told.pop(one).to_pylist() for one in asked.options if one in told}
    found: list[Any] = []
    for row, image in enumerate(images):
        if image is None or any(not column[row].is_valid for column in told.values()):
            found.append(None)
            continue
        how = _options(function, line, reading, row)
        sketch = read(function, line, kind, image, how)
        beside = {
            one: read(function, line, kind, column[row].as_py(), how)
            if one == "other"
            else column[row : row + 1]
            for one, column in told.items()
        }
        given = {one: values[row] for one, values in options.items() if values[row] is not None}
        found.append(asked.ask(sketch, **beside, **given))
    return pa.array(found, asked.returns)


def read_states(arguments: dict[str, pa.Array]) -> pa.Array:
    """The frequent items in the structs of Spark's ``approx_top_k_accumulate``.

    Raises `SketchError` for other structs, and for items that are neither strings nor of type bigint.
    """
    states = arguments["state"]
    items = states.type.field("itemDataType").type if _names_items(states.type) else None
    return from_state(states, "long" if items == pa.int64() else "string")


def _names_items(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and kind.get_field_index("itemDataType") >= 0


def _options(function: str, line: Family, columns: dict[str, list[Any]], row: int) -> dict[str, Any]:
    given = {one: values[row] for one, values in columns.items() if values[row] is not None}
    likes = read_options(line)
    return {one: converted(function, one, value, likes[one]) for one, value in given.items()}
