"""Frequent doubles and bytes: counted as longs and strings, and given back as they were."""

from __future__ import annotations

import math
import struct
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.sketches.core.columns.columns import as_values
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.sketches.frequent_items.groups import FrequentItemsGroups
from streamgauge.sketches.frequent_items.item_forms import bytes_of, stored_bytes

ZEROS = [0.0, -0.0, float("nan"), -struct.unpack("<d", b"\x01\0\0\0\0\0\xf8\x7f")[0]]
POOLS: dict[str, list[Any]] = {
    "double": [*ZEROS, 1.5, -2.5, -3.5, math.inf, -math.inf, 5e-324, 1e308],
    "binary": [b"", b"a", b"\xff\xfe", b"\x80", b"\xc3\xa9", bytes(range(256)), "é".encode() * 20],
}
TYPES = {"double": pa.float64(), "binary": pa.binary()}


def as_key(value: Any) -> Any:
    """NaN is one value here."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@given(st.lists(st.one_of(st.none(), st.binary(max_size=9))), st.integers(0, 5))
def test_bytes_come_back(values: list[bytes | None], first: int) -> None:
    column = pa.array(values, pa.binary())[first:]
    text = stored_bytes(as_values(column)).to_arrow()
    text.validate(full=True)
    assert bytes_of(text).to_pylist() == column.drop_null().to_pylist()
    assert bytes_of(text[1:]).to_pylist() == column.drop_null()[1:].to_pylist()


@pytest.mark.parametrize("kind", POOLS)
def test_groups_and_single_sketches_count_and_return_items_of_their_type(kind: Any) -> None:
    random = np.random.default_rng(7)
    owners, drawn = random.integers(0, 3, 600), random.integers(0, len(POOLS[kind]), 600)
    values = [POOLS[kind][at] for at in drawn]
    exact = [Counter(as_key(v) for v, of in zip(values, owners) if of == group) for group in range(3)]
    groups = FrequentItemsGroups(3, kind=kind)
    groups.update(owners, pa.array(values, TYPES[kind]))
    merged = FrequentItemsGroups(3, kind=kind)
    merged.merge(np.arange(3), groups.to_arrow())
    for tables in (groups, merged):
        lists = tables.answers(100)
        assert lists.type.value_type.field("item").type == TYPES[kind]
        for group, answer in enumerate(lists.to_pylist()):
            assert {as_key(row["item"]): row["estimate"] for row in answer} == exact[group]
            one = tables[group]
            again = FrequentItems.from_bytes(one.to_bytes())
            for sketch in (one, again):
                listed = [(as_key(item.item), item.estimate) for item in sketch.top(100)]
                assert listed == [(as_key(row["item"]), row["estimate"]) for row in answer]
                assert all(sketch.bounds(v) == (exact[group][as_key(v)],) * 2 for v in POOLS[kind])
            assert again.kind == kind


def test_the_first_values_decide_and_kinds_do_not_mix() -> None:
    assert FrequentItems().update([1.0, 2.0]).kind == "long"
    doubles, blobs = FrequentItems().update([1.5, 2.0, 2.0]), FrequentItems().update([b"a"])
    assert (doubles.kind, blobs.kind) == ("double", "binary")
    assert [item.item for item in doubles.update([1.5, 1.5]).top(1)] == [1.5]
    assert FrequentItems(kind="double").update([3, 3]).top(1)[0].item == 3.0
    for kind in ("long", "string", "binary"):
        with pytest.raises(SketchError, match="of another kind"):
            FrequentItems.from_bytes(doubles.to_bytes(), kind)  # type: ignore[arg-type]
    for other in (blobs, FrequentItems().update([1]), FrequentItems().update(["a"])):
        with pytest.raises(SketchError, match="can't merge"):
            doubles.merge(other)
    with pytest.raises(TypeError, match="can't be equal"):
        doubles.update(["a"])
    with pytest.raises(SketchError, match="no text of bytes"):
        bytes_of(pa.array(["漢"]))
