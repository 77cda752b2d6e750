"""Text that isn't UTF-8 is kept as Spark shows it, wherever it is in a column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.sketches.core.columns.utf8_repair import readable

LATIN, READ = b"caf\xe9", "caf\ufffd"
TEXT = pa.string()


def as_spark_gives(values: list[Any], kind: pa.DataType) -> pa.Array:
    """An array whose texts are these bytes, which nobody has checked."""
    if kind == TEXT:
        given = pa.array(values, pa.binary())
        return pa.Array.from_buffers(kind, len(given), given.buffers())
    if pa.types.is_list(kind):
        ends = [0, *(sum(map(len, values[: at + 1])) for at in range(len(values)))]
        flat = [one for value in values for one in value]
        return pa.ListArray.from_arrays(ends, as_spark_gives(flat, kind.value_type))
    if pa.types.is_map(kind):
        keys, items = zip(*(pair for value in values for pair in value))
        ends = [0, *(sum(map(len, values[: at + 1])) for at in range(len(values)))]
        columns = as_spark_gives([*keys], kind.key_type), as_spark_gives([*items], kind.item_type)
        return pa.MapArray.from_arrays(ends, *columns)
    if pa.types.is_struct(kind):
        columns = [as_spark_gives([one[field.name] for one in values], field.type) for field in kind]
        return pa.StructArray.from_arrays(columns, fields=[*kind])
    return pa.array(values, kind)


@pytest.mark.parametrize(
    ("kind", "values", "read"),
    [
        (TEXT, [LATIN, b"", None, "π".encode(), b"a\x00"], [READ, "", None, "π", "a\x00"]),
        (pa.list_(TEXT), [[LATIN, None], [], [b"x"]], [[READ, None], [], ["x"]]),
        (
            pa.struct([("text", TEXT), ("bytes", pa.binary())]),
            [{"text": LATIN, "bytes": LATIN}],
            [{"text": READ, "bytes": LATIN}],
        ),
        (pa.map_(TEXT, pa.list_(TEXT)), [[(b"a", [LATIN])], [(LATIN, [])]], [[("a", [READ])], [(READ, [])]]),
    ],
)
def test_what_is_not_utf_8_is_replaced(kind: pa.DataType, values: list[Any], read: list[Any]) -> None:
    given = as_spark_gives(values, kind)
    with pytest.raises(pa.ArrowInvalid):
        given.validate(full=True)
    assert readable(given).type == kind
    assert readable(given).to_pylist() == read
    assert readable(pa.chunked_array([given, given])).to_pylist() == read * 2
    assert readable(given[1:]).to_pylist() == read[1:]


def test_readable_columns_are_left_as_they_are() -> None:
    given = (["a", None, "é"], [1, 2], [b"\xff"], [["x"], None])
    for column in map(pa.array, given):
        assert readable(column) is column
