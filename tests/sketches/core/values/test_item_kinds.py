"""The rule of equal values by itself; `tests/laws/test_item_kinds.py` holds every family to it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.core.values.item_kinds import (
    WORDS,
    as_items,
    code_of,
    from_text,
    joint_kind,
    kind_of_code,
    kind_of_type,
    kind_with,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "kind", "expected", "rows"),
    [
        ([1.0, NAN, -3.0], "long", [1, -3], [0, 2]),
        ([[1.0, NAN], [], [2.0]], "long", [1, 2], [0, 2]),
        ([-(2.0**63), 0.0, -0.0], "long", [-(2**63), 0, 0], None),
        ([2**53, -(2**53), 2**60], "double", [2.0**53, -(2.0**53), 2.0**60], None),
        ([2**53, 2**63], "double", [2.0**53, 2.0**63], None),
        ([Decimal("1.00"), None, Decimal("7.00")], "long", [1, 7], [0, 2]),
        ([[Decimal("0.1")], [Decimal("2.5"), Decimal("3.0")]], "double", [0.1, 2.5, 3.0], [0, 1, 1]),
        ([True, False], "double", [1.0, 0.0], None),
    ],
)
def test_equal_numbers_are_converted(values: Any, kind: str, expected: Any, rows: Any) -> None:
    result = as_items(values, kind, "bloom")
    assert result.numbers.tolist() == expected and result.item_kind == kind
    assert (None if result.rows is None else result.rows.tolist()) == rows
    assert result.length == len(values)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        *(([value], "long") for value in (1.5, 2.0**63, float("inf"), Decimal("1.5"), Decimal(2**64))),
        *(
            ([value], "double")
            for value in (2**53 + 1, -(2**53) - 1, 2**64 - 1, Decimal("0.12345678901234567890"))
        ),
    ],
)
def test_a_number_without_an_equal_is_refused(values: Any, kind: str) -> None:
    with pytest.raises(SketchError, match="bloom: holds"):
        as_items(values, kind, "bloom")


def test_nothing_is_of_any_kind() -> None:
    for nothing in ([], [None], pa.array([], pa.date32()), np.empty(0)):
        for kind in WORDS:
            result = as_items(nothing, kind, "bloom")
            assert not len(result) and kind_with(kind, result) == kind and kind_with(None, result) is None


def test_every_kind_has_a_byte_of_its_own() -> None:
    codes = [code_of(kind, b"1")[0] for kind in WORDS]
    assert [kind_of_code(code, b"1", "bloom") for code in codes] == list(WORDS)
    for one in codes:
        for other in codes:
            assert one == other or (one ^ other).bit_count() > 1  # a flipped bit makes no other kind
    assert kind_of_code(ord("1"), b"1", "bloom") is None
    with pytest.raises(SketchError, match="is unknown"):
        kind_of_code(0, b"1", "bloom")


def test_types_texts_and_pairs_of_kinds() -> None:
    types = [pa.uint64(), pa.bool_(), pa.float32(), pa.large_binary(), pa.time32("s"), pa.duration("ns")]
    kinds = ["long", "long", "double", "string", "time", "duration"]
    assert [kind_of_type(one) for one in types] == kinds
    assert from_text("1", "string", "bloom") == "1" and from_text("+1", "long", "bloom") == 1
    assert joint_kind(None, None, "bloom") is None and joint_kind("long", "long", "bloom") == "long"
    with pytest.raises(SketchError, match="can't merge a sketch of whole numbers with one of texts"):
        joint_kind("long", "string", "bloom")
