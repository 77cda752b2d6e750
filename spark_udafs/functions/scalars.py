"""The scalar functions: columns of sketches in, a column of answers out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ...operators.families import family
from ...sketches.frequent_items.approx_top_k import from_state
from .arguments import converted
from .questions import question_of
from .reading import check_sketches, read_options, reader


def answers_each(verb: str, name: str, kind: str, arguments: dict[str, pa.Array]) -> pa.Array:
    """Return a verb's answer for each row; null if a sketch or an argument is null.

    Raises `SketchError` for bytes that are not such a sketch, and for a question that it can't answer;
    `TypeError` for sketches that are not bytes, and for items of a different kind than the sketch's
    (`item_kinds`).
    """
    line, function = family(name), f"{verb}_{name}"
    question = question_of(verb, line, kind)
    assert question is not None, f"there is no {function}"
    read, likes = reader(function, line, kind), read_options(line)
    check_sketches(function, arguments)
    given_options = dict(arguments)
    images = given_options.pop("sketch").to_pylist()
    reading = {one: given_options.pop(one).to_pylist() for one in likes if one in given_options}
    options = {one: given_options.pop(one).to_pylist() for one in question.options if one in given_options}
    answers: list[Any] = []
    for row, image in enumerate(images):
        if image is None or any(not column[row].is_valid for column in given_options.values()):
            answers.append(None)
            continue
        how = {one: converted(function, one, value, likes[one]) for one, value in _given(reading, row)}
        beside = {
            one: read(column[row].as_py(), **how) if one == "other" else column[row : row + 1]
            for one, column in given_options.items()
        }
        sketch = read(image, **how)
        if "item" in given_options and sketch.item_kind not in ("long", "double"):
            _refuse_decimals(function, given_options["item"].type)
        answers.append(question.ask(sketch, **beside, **dict(_given(options, row))))
    return pa.array(answers, question.returns)


def _refuse_decimals(function: str, kind: pa.DataType) -> None:
    if pa.types.is_decimal(kind):
        raise TypeError(
            f"{function}: item is a decimal, and sketches of decimals hold their text: cast it to STRING, "
            "or to BIGINT or DOUBLE where such values were sketched"
        )


_KINDS = {pa.int64(): "long", pa.float64(): "double"}


def read_states(arguments: dict[str, pa.Array]) -> pa.Array:
    """Read the frequent items in the structs of Spark's ``approx_top_k_accumulate``.

    Raises `SketchError` for other structs, and for items that aren't of type string, bigint or double.
    """
    states = arguments["state"]
    items = states.type.field("itemDataType").type if _names_items(states.type) else None
    return from_state(states, _KINDS.get(items, "string"))


def _names_items(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and kind.get_field_index("itemDataType") >= 0


def _given(columns: dict[str, list[Any]], row: int) -> list[tuple[str, Any]]:
    """Return a row's options that are not null."""
    return [(one, values[row]) for one, values in columns.items() if values[row] is not None]
