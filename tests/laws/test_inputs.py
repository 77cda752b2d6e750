"""One way in: the same values are the same in whatever form they come, for every family and its groups."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.sampling.core.bottom_k import BottomK
from streamgauge.sketches.bloom import Bloom
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.count_min import CountMin
from streamgauge.sketches.frequent_items import FrequentItems

from ..cases import each
from .families import FAMILIES, Family
from .family import each_family
from .inputs import BYTES, FORMS, LONGS, MOMENTS, NAN, SCALARS, TEXTS, Form

WITHOUT_BINARY = ("FrequentItems", "CPC", "VarOpt")


def kind_for(family: Family, form_kind: str) -> str | None:
    """The kind of sketch that takes a form's values, None if the family takes none of them."""
    if form_kind.startswith("binary"):
        return "string" if "string" in family.kinds and family.name not in WITHOUT_BINARY else None
    if form_kind in ("nothing", "no rows"):
        return family.kinds[0]
    if form_kind.startswith("instant") or form_kind == "boolean":
        keeps = issubclass(family.single, BottomK)
        return None if keeps and "zone" in form_kind else "long"
    if form_kind == "decimal":
        numbers = "double" in family.kinds and "string" not in family.kinds
        return "double" if numbers else None
    kind = "double" if form_kind in ("half", "NaN", "NaN without gaps") else form_kind.split()[0]
    return kind if kind in family.kinds else None


KINDS = {form.kind: [other for other in FORMS if other.kind == form.kind] for form in FORMS}
CASES = [
    pytest.param(family, kind, forms, id=f"{family}-{name}")
    for family in FAMILIES
    for name, forms in KINDS.items()
    if (kind := kind_for(family, name))
]


def in_groups(family: Family, kind: str, column: Any, rows: int) -> pa.Array:
    groups = family.many(3, kind)
    groups.update(np.arange(rows) % 3, column, **family.inputs(np.arange(rows)))
    return groups.to_arrow()


@each_family(("family", "kind", "forms"), CASES)
def test_every_form_is_the_plain_one(family: Family, kind: str, forms: list[Form]) -> None:
    plain = forms[0].plain
    inputs = family.inputs(np.arange(len(plain)))
    single = family.new(kind).update(plain, **inputs).to_bytes()
    groups = in_groups(family, kind, plain, len(plain))
    for form in forms:
        assert family.new(kind).update(form.make(), **inputs).to_bytes() == single, form.name
        assert in_groups(family, kind, form.make(), len(plain)) == groups, form.name


def test_every_family_of_the_registry_is_here() -> None:
    sketches = {line.place.split(":")[1] for line in REGISTRY.values() if not line.exact}
    assert sketches == {family.name for family in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_scalars_are_columns_of_one(family: Family) -> None:
    for scalar, column in SCALARS:
        outcomes = []
        for given in (scalar, column):
            try:
                sketch = family.new(family.kinds[0])
                outcomes.append(sketch.update(given, **family.inputs(np.arange(1))).to_bytes())
            except (TypeError, SketchError) as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1], scalar


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_a_moment_is_its_microseconds(family: Family) -> None:
    if issubclass(family.single, BottomK):
        pytest.skip("samples keep their items' type")
    inputs = family.inputs(np.arange(len(MOMENTS)))
    micros = pa.array(MOMENTS, pa.timestamp("us")).view(pa.int64())
    sketch = family.new("long").update(MOMENTS, **inputs)
    # Our own bytes say which of both they hold, and nothing else.
    assert sketch._image() == family.new("long").update(micros, **inputs)._image()


REFUSED = {
    "a record": {"a": 1},
    "a data frame": pd.DataFrame({"a": [1]}),
    "a matrix": np.zeros((2, 2)),
    "complex numbers": np.array([1j]),
    "a structured array": np.array([(1,)], [("a", int)]),
    "numbers and texts": [1, "a"],
    "more than 64 bits": [2**64],
    "pandas periods": pd.Series(pd.period_range("2025", "2026", freq="Y")),
    "an object": object(),
    "a broken text": ["\ud800"],
    "Polars Int128": pl.Series([1], dtype=pl.Int128),
    "decimals": [decimal.Decimal("1.5")],
    "calendar spans": pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
}
KEPT = ("a record", "a data frame", "decimals", "calendar spans")


@each("what", REFUSED)
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_what_cannot_be_taken_is_refused_by_name(family: Family, what: str) -> None:
    if what in KEPT and (issubclass(family.single, BottomK) or family.name == "DecayedCount"):
        pytest.skip("items of any type are kept")
    if what == "decimals" and kind_for(family, "decimal"):
        pytest.skip("decimals are numbers to this family")
    kind = family.kinds[0]
    sketch, inputs = family.new(kind), family.inputs(np.arange(1))
    image = sketch.to_bytes()
    with pytest.raises((TypeError, SketchError), match=r"cast|got an array|expected a column of one type"):
        sketch.update(REFUSED[what], **inputs)
    assert sketch.to_bytes() == image
    with pytest.raises((TypeError, SketchError)):
        family.many(1, kind).update(np.zeros(1, int), REFUSED[what], **inputs)


EXACT = [name for name, line in REGISTRY.items() if line.exact]
NUMBERS = ("long", "double", "half", "boolean", "decimal")


@pytest.mark.parametrize("name", EXACT)
def test_exact_aggregates_take_every_form_alike(name: str) -> None:
    line = REGISTRY[name]
    adds, orders = name in ("sum", "mean", "variance"), name in ("min", "max", "first", "last")
    for form in FORMS:
        if adds and not form.kind.startswith((*NUMBERS, "NaN")):
            continue
        if orders and (form.kind == "decimal" or "nanoseconds" in form.name):
            continue  # no order of decimals is kept; of times the exact ones keep every nanosecond
        rows = len(form.plain)
        inputs: dict[str, Any] = {"time": np.arange(rows)} if line.inputs else {}
        answers = []
        for column in (form.make(), form.plain):
            groups = line.groups_class()(2)
            groups.update(np.arange(rows) % 2, column, **inputs)
            result = groups.answers()
            if pa.types.is_temporal(result.type):
                zone = getattr(result.type, "tz", None)
                result = result.cast(pa.timestamp("us", zone)).cast(pa.timestamp("us"))
            answers.append(str(result.to_pylist()))
        assert answers[0] == answers[1], form


def test_other_questions_take_the_same_forms() -> None:
    bloom, counts, tops = Bloom().update(LONGS), CountMin().update(LONGS), FrequentItems(64, "long")
    tops.update(LONGS)
    for form in FORMS:
        if form.kind.startswith("long"):
            assert bloom.contains(form.make()).all()
            assert counts.estimates(form.make()).tolist() == counts.estimates(form.plain).tolist()
            twin = tops.copy().delete(form.make())
            assert twin == tops.copy().delete(form.plain)
    texts = Bloom().update(TEXTS)
    assert all(texts.contains(form.make()).all() for form in FORMS if form.kind.startswith("string"))
    assert bytearray(b"fig") in Bloom().update(BYTES) and MOMENTS[0] in Bloom().update(MOMENTS)


def test_nan_is_one_value_and_a_gap_is_none() -> None:
    for family in FAMILIES:
        if family.name in ("HLL", "Theta", "SlidingHLL", "CPC"):
            for column in ([NAN, NAN, 1.0], np.array([NAN, -NAN, 1.0]), pd.Series([NAN, None, 1.0])):
                sketch = family.new("double").update(column, **family.inputs(np.arange(3)))
                assert round(sketch.estimate()) == 2, family
            sketch = family.new("string").update(["a", NAN, None], **family.inputs(np.arange(3)))
            assert round(sketch.estimate()) == 1, family


TIMES = np.array(MOMENTS, "M8[us]").astype(np.int64)
ROW_INPUTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "time": (
        TIMES,
        {
            "list": lambda: TIMES.tolist(),
            "generator": lambda: (int(time) for time in TIMES),
            "big-endian": lambda: TIMES.astype(">i8"),
            "datetimes": lambda: MOMENTS,
            "dates": lambda: [moment.date() for moment in MOMENTS],
            "NumPy seconds": lambda: np.array(MOMENTS, "M8[s]"),
            "pandas": lambda: pd.Series(MOMENTS),
            "pandas of a zone": lambda: pd.Series(MOMENTS).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            "Polars": lambda: pl.Series(MOMENTS, dtype=pl.Datetime("ms", "UTC")),
            "chunks": lambda: pa.chunked_array([TIMES[:2], TIMES[2:]]),
        },
    ),
    "weight": (
        np.array([1.0, 2.0, 0.5, 4.0, 1.0]),
        {
            "list": lambda: [1, 2, 0.5, 4, 1],
            "generator": lambda: (weight for weight in (1.0, 2.0, 0.5, 4.0, 1.0)),
            "big-endian": lambda: np.array([1, 2, 0.5, 4, 1], ">f4"),
            "decimals": lambda: [decimal.Decimal(text) for text in ("1", "2", "0.5", "4", "1")],
            "pandas": lambda: pd.Series([1, 2, 0.5, 4, 1], index=range(3, 8)),
            "Polars": lambda: pl.Series([1.0, 2.0, 0.5, 4.0, 1.0]),
        },
    ),
    "value": (
        np.array([1.0, 2.0, 0.5, 4.0, 1.0]),
        {
            "generator": lambda: (value for value in (1.0, 2.0, 0.5, 4.0, 1.0)),
            "big-endian": lambda: np.array([1, 2, 0.5, 4, 1], ">f8"),
            "decimals": lambda: [decimal.Decimal(text) for text in ("1", "2", "0.5", "4", "1")],
            "pandas": lambda: pd.Series([1, 2, 0.5, 4, 1]),
            "Polars lists": lambda: pl.Series([[1], [2], [0.5], [4], [1]]),
            "a matrix": lambda: np.array([[1], [2], [0.5], [4], [1]]),
        },
    ),
    "key": (
        pa.array(["a", "b", "a", "c", "b"]),
        {
            "generator": lambda: (key for key in "abacb"),
            "NumPy": lambda: np.array(list("abacb")),
            "pandas": lambda: pd.Series(list("abacb"), dtype="category"),
            "Polars": lambda: pl.Series(list("abacb")),
            "Polars Categorical": lambda: pl.Series(list("abacb"), dtype=pl.Categorical),
        },
    ),
}


@each_family(
    ("family", "name", "form"),
    [
        pytest.param(family, name, form, id=f"{family}-{name}-{form}")
        for family in FAMILIES
        for name, (_, forms) in ROW_INPUTS.items()
        for form in forms
        if name in family.inputs(np.arange(1))
    ],
)
def test_row_wise_inputs_take_every_form_alike(family: Family, name: str, form: str) -> None:
    plain, forms = ROW_INPUTS[name]
    kind, column = family.kinds[0], [5, 6, None, 7, 5]
    made = []
    for given in (plain, forms[form]()):
        values = (value for value in column)  # a generator, read once
        made.append(family.new(kind).update(values, **{name: given}).to_bytes())
    assert made[0] == made[1]
    many = []
    for given in (plain, forms[form]()):
        groups = family.many(2, kind)
        groups.update(np.arange(5) % 2, iter(column), **{name: given})
        many.append(groups.to_arrow())
    assert many[0] == many[1]


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.inputs(np.arange(1))], ids=str)
def test_masked_inputs_are_missing_ones(family: Family) -> None:
    (name,) = family.inputs(np.arange(1))
    given = np.ma.MaskedArray([1, 2, 3], [0, 1, 0])
    sketch = family.new(family.kinds[0])
    image = sketch.to_bytes()
    if name == "key":
        gap = family.new(family.kinds[0]).update([5, 6, 7], key=[1, None, 3])
        assert sketch.update([5, 6, 7], key=given).to_bytes() == gap.to_bytes()
        return
    with pytest.raises(ValueError, match=r"null|without|must be"):
        sketch.update([5, 6, 7], **{name: given})
    assert sketch.to_bytes() == image


@pytest.mark.parametrize("single", [CountMin, FrequentItems])
def test_counts_take_weights_in_every_form(single: Any) -> None:
    expected = single().update(["a", None, "b"], [2, 5, 3])
    for weights in ((2, 5, 3), (w for w in (2, 5, 3)), np.array([2, 5, 3], ">u2"), pl.Series([2, 5, 3])):
        assert single().update(iter(["a", None, "b"]), weights) == expected
    assert single().update(["a", "b"], 3) == single().update(["a", "b"], [3, 3])
    with pytest.raises(ValueError, match="without nulls"):
        single().update(["a", "b"], np.ma.MaskedArray([1, 2], [0, 1]))


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_images_and_group_numbers_come_in_every_form(family: Family) -> None:
    kind, column, rows = family.kinds[0], [5, 6, None, 7, 5, 8], np.arange(6)
    numbers = rows % 3
    expected = family.many(3, kind)
    family.feed_groups(expected, numbers, pa.array(column))
    images = expected.to_arrow()
    listed, whole = images.to_pylist(), family.many(3, kind, seed=7)
    whole.merge(rows[:3], images)
    for made in (
        numbers.tolist(),
        numbers.astype(">u2"),
        pa.array(numbers, pa.uint8()),
        pa.chunked_array([numbers[:2], numbers[2:]]),
        pl.Series(numbers),
        pd.Series(numbers, index=rows + 3),
        pd.Series(numbers, dtype="Int16"),
        np.ma.MaskedArray(numbers),
        np.repeat(numbers, 2)[::2],
    ):
        groups = family.many(3, kind)
        groups.update(made, column, **family.inputs(rows))
        assert groups.to_arrow() == images, type(made)
    for made in (
        listed,
        [bytearray(image) for image in listed],
        images.cast(pa.large_binary()),
        images.cast(pa.binary_view()),
        images.dictionary_encode(),
        pa.chunked_array([images[:1], images[1:]]),
        pa.concat_arrays([images, images]).slice(3),
        pl.Series(listed),
        pd.Series(listed),
        np.array(listed, object),
    ):
        merged = family.many(3, kind, seed=7)
        merged.merge(rows[:3], made)
        assert merged.to_arrow() == whole.to_arrow(), type(made)
    for wrong in (np.ma.MaskedArray(numbers, numbers == 1), [0, 1, None, 0, 1, 2], numbers / 1, numbers[:5]):
        with pytest.raises(ValueError, match="group number"):
            family.many(3, kind).update(wrong, column, **family.inputs(rows))
