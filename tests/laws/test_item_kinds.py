"""What counts as the same value, for every family: the same, converted or refused, never silently another."""

from __future__ import annotations

import copy
import pickle
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.sketches.bloom import Bloom, BloomGroups
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.count_min import CountMin, CountMinGroups, HeavyHitters
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.sketches.hll import HLL
from streamgauge.sketches.theta import Theta

from .families import FAMILIES, Family

NAN = float("nan")
DAYS = [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)]
COLUMNS: dict[str, tuple[str, Any]] = {
    "integers": ("number", [1, 2, 3]),
    "small integers": ("number", np.array([1, 2, 3], np.uint8)),
    "whole floats": ("number", [1.0, 2.0, 3.0]),
    "whole floats with a gap": ("number", np.array([1.0, NAN, 2.0, 3.0])),
    "pandas with a gap": ("number", pd.Series([1, None, 2, 3])),
    "short floats": ("number", np.array([1, 2, 3], np.float32)),
    "whole decimals": ("number", [Decimal("1.00"), Decimal("2.00"), Decimal("3.00")]),
    "texts": ("text", ["1", "2", "3"]),
    "bytes": ("text", [b"1", b"2", b"3"]),
    "dates": ("instant", DAYS),
    "times": ("instant", [datetime(day.year, day.month, day.day) for day in DAYS]),
    "instants of a zone": ("instant", pa.array(DAYS, pa.date32()).cast(pa.timestamp("ms", "UTC"))),
    "times of day": ("time of day", [time(1), time(2), time(3)]),
    "spans": ("span", [timedelta(hours=1), timedelta(hours=2), timedelta(hours=3)]),
}
"""Three values each, the same three in all columns of one sort."""
OTHERS = {
    "fractions": ("fraction", [1.5, 2.5, 3.5]),
    "decimal fractions": ("fraction", [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")]),
    "large integers": ("large", [2**53 + 1, 2**53 + 3, 2**53 + 5]),
}
PAIRS = [(one, other) for one in COLUMNS for other in {**COLUMNS, **OTHERS}]
REFUSED = (TypeError, ValueError)  # of which `SketchError` is one
HASHED = [family for family in FAMILIES if family.line.aggregate.hashes]
COUNTED = [family for family in HASHED if family.name not in ("Bloom", "SlidingBloom", "CountMin")]


def values_of(name: str) -> tuple[str, Any]:
    return {**COLUMNS, **OTHERS}[name]


def large(family: Family) -> dict[str, int]:
    """So large that no two of a few values meet in a register."""
    return {"lg_k": 18} if "lg_k" in family.line.params else {}


def new(family: Family) -> Any:
    return family.single(**large(family))


def feed(sketch: Any, family: Family, values: Any) -> None:
    rows = len(values)
    sketch.update(values, **family.inputs(np.arange(rows)))


def feed_groups(groups: Any, family: Family, values: Any) -> None:
    rows = len(values)
    groups.update(np.zeros(rows, np.int64), values, **family.inputs(np.arange(rows)))


def test_these_families_hold_hashes_of_one_kind() -> None:
    assert {family.name for family in HASHED} == {
        *("HLL", "Theta", "Tuple", "CPC", "SlidingHLL", "Bloom", "SlidingBloom", "CountMin"),
    }


def same_or_refused(first: Any, second: Any, equal: bool, mixes: Any) -> None:
    """Hold two columns of values to the law; `mixes` adds both and returns how many values it then knows."""
    try:
        known = mixes(first, second)
    except REFUSED:
        return
    assert equal and known == 3, known


@pytest.mark.parametrize("family", COUNTED, ids=str)
def test_what_is_added_is_the_same_value_or_refused(family: Family) -> None:
    accepted = 0
    for one, other in PAIRS:
        (sort, first), (other_sort, second) = values_of(one), values_of(other)
        for many in (False, True):
            sketch = family.groups(1, **large(family)) if many else new(family)
            give = feed_groups if many else feed
            try:
                give(sketch, family, first)
            except REFUSED:
                assert one in ("whole decimals", "bytes"), one
                continue
            single = sketch[0] if many else sketch
            expected = 3 + (one.endswith("gap") and sketch.item_kind == "double")
            assert round(single.estimate()) == expected, one
            before = single.to_bytes()
            try:
                give(sketch, family, second)
            except REFUSED:
                assert (sketch[0] if many else sketch).to_bytes() == before, (one, other)
                assert one != other and (sort != other_sort or "bytes" in (one, other)), (one, other)
                continue
            single, accepted = sketch[0] if many else sketch, accepted + 1
            gap = sketch.item_kind == "double" and "gap" in one + other
            fractions = other_sort in ("fraction", "large") and sort == "number"
            assert sort == other_sort or fractions, (one, other)
            assert round(single.estimate()) == 3 + gap + 3 * fractions, (one, other)
    assert accepted > 60


@pytest.mark.parametrize("many", [False, True], ids=["one", "groups"])
@pytest.mark.parametrize("name", ["Bloom", "CountMin", "FrequentItems"])
def test_what_is_asked_for_is_found_or_refused(name: str, many: bool) -> None:
    result = 0
    for one, other in PAIRS:
        (sort, first), (other_sort, second) = values_of(one), values_of(other)
        sketch: Any = {"Bloom": Bloom, "CountMin": CountMin, "FrequentItems": FrequentItems}[name]()
        try:
            if many:
                groups: Any = {"Bloom": BloomGroups, "CountMin": CountMinGroups}.get(name)
                if groups is None:
                    continue
                groups = groups(1)
                groups.update(np.zeros(len(first), np.int64), first)
                sketch = groups[0]
            else:
                sketch.update(first)
        except REFUSED:
            continue
        for value in pa.array(second).drop_null().to_pylist():
            if value != value:
                continue
            try:
                there = value in sketch if name == "Bloom" else sketch.estimate(value) == 1
            except REFUSED:
                assert one != other and (sort != other_sort or "decimals" in other or "bytes" in (one, other))
                continue
            # Of its own kind, and not there.
            absent = {"fraction": "double", "large": "long"}.get(other_sort) == sketch.item_kind
            if name == "FrequentItems" and sketch.item_kind != "long" and other_sort in ("number", "large"):
                continue  # its `top` gives times as whole numbers
            assert there if sort == other_sort else absent, (one, other, value)
            result += there
    assert result > 30 or (many and name == "FrequentItems")


@pytest.mark.parametrize("family", HASHED, ids=str)
def test_sketches_of_two_kinds_do_not_merge(family: Family) -> None:
    def of(values: Any) -> Any:
        sketch = new(family)
        feed(sketch, family, values)
        return sketch

    for first, second in (([1], ["1"]), (["1"], DAYS[:1]), (DAYS[:1], [1])):
        one, other = of(first), of(second)
        before = one.to_bytes()
        with pytest.raises(SketchError, match="different hashes"):
            one.merge(other)
        assert one.to_bytes() == before
        with pytest.raises(SketchError, match="different hashes"):
            one | other
        assert one.merge(of(first)).merge(new(family)).item_kind == other_kind(first)


def other_kind(values: Any) -> str:
    return {int: "long", float: "double", str: "string", date: "timestamp"}[type(values[0])]


@pytest.mark.parametrize("family", HASHED, ids=str)
def test_copies_know_the_kind(family: Family) -> None:
    sketch = new(family)
    feed(sketch, family, [1, 2])
    groups = family.groups(2)
    feed_groups(groups, family, [1, 2])
    known = [sketch.copy(), copy.deepcopy(sketch), pickle.loads(pickle.dumps(sketch))]
    known += [copy.deepcopy(groups), pickle.loads(pickle.dumps(groups)), groups[0], groups[1]]
    assert [one.item_kind for one in known] == ["long"] * len(known)
    typed = Aggregate(family.line.name, "user", dict(family.line.params)).typed(pa.date32())
    assert typed.item_kind == "timestamp" and Aggregate.from_json(typed.to_json()) == typed
    with pytest.raises(TypeError, match="points in time"):
        feed_groups(typed.groups(1), family, [1, 2])


def test_our_own_bytes_know_the_kind() -> None:
    for values, kind in (([1], "long"), (["a"], "string"), (DAYS, "timestamp")):
        for sketch in (Bloom(), CountMin(), CountMin(0.9, 0.5), CountMin(0.9, 0.5, conservative=True)):
            sketch.update(values)
            careful = {"conservative": True} if getattr(sketch, "conservative", False) else {}
            read = type(sketch).from_bytes(sketch.to_bytes(), **careful)
            assert read.item_kind == kind and read == sketch
    for family, params in ((BloomGroups, ()), (CountMinGroups, ()), (CountMinGroups, (0.9, 0.5))):
        many: Any = family(1, *params)
        one, other = copy.deepcopy(many), copy.deepcopy(many)
        one.update([0], [1])
        other.update([0], ["1"])
        many.merge([0], one.to_arrow())
        assert many.item_kind == "long" and many.to_arrow() == one.to_arrow()
        with pytest.raises(SketchError, match="row 1: can't merge"):
            many.merge([0, 0], pa.concat_arrays([type(one)(1, *params).to_arrow(), other.to_arrow()]))
        assert many.to_arrow() == one.to_arrow()
        empty: Any = family(1, *params)
        with pytest.raises(SketchError, match="row 1: can't merge"):
            empty.merge([0, 0], pa.concat_arrays([one.to_arrow(), other.to_arrow()]))
        assert empty.item_kind is None and empty.to_arrow() == family(1, *params).to_arrow()


def test_bytes_of_others_take_the_kind_they_meet() -> None:
    filters = Bloom(layout="spark_v2").update([1, 2])
    read = Bloom.from_bytes(filters.to_bytes())
    assert read.item_kind is None and 1 in read and 2.0 in read
    assert read.update([3.0]).item_kind == "long" and 3 in read
    with pytest.raises(TypeError, match="whole numbers"):
        assert "1" in read
    counts = CountMin.from_bytes(CountMin().update([1]).to_spark())
    assert counts.item_kind is None and counts.estimate(1.0) == 1


def test_sets_of_two_kinds_are_not_compared() -> None:
    numbers, texts = Theta().update([1, 2]), Theta().update(["1", "2"])
    for ask in (lambda: numbers & texts, lambda: numbers - texts, lambda: numbers.jaccard(texts)):
        with pytest.raises(SketchError, match="different hashes"):
            ask()


def test_batches_of_a_column_that_pandas_made_floats_of() -> None:
    """Whole numbers with one gap are floats to pandas; users are the same users in either batch."""
    whole, gap = pd.Series([17, 4, 2**40]), pd.Series([17, None, 2**40])
    assert gap.dtype == np.float64
    assert HLL().update(whole).update(gap).estimate() == pytest.approx(3, abs=0.01)
    assert Theta().update(gap.dropna()).update(whole).estimate() == 3
    assert CountMin().update(gap).update(whole).estimate(17) == 2
    assert FrequentItems().update(gap).update(whole).bounds(17) == (2, 2)
    assert HeavyHitters(1).update(gap).update(whole).top()[0].estimate == 2
    assert HeavyHitters(1).update([DAYS[0]]).update([DAYS[0], DAYS[1]]).top()[0].estimate == 2
    assert Bloom().update(gap).contains(whole).tolist() == [True, False, True]


@pytest.mark.parametrize("one", [name for name, (sort, _) in COLUMNS.items() if sort == "number"])
def test_keys_that_are_equal_are_one_key(one: str) -> None:
    keys = pa.array(COLUMNS[one][1], from_pandas=True).drop_null()
    chosen: Any = REGISTRY["hash_sample"].sketch_class()
    strata: Any = REGISTRY["stratified_sample"].sketch_class()
    assert (
        chosen(0.5).update(range(3), key=keys).values()
        == chosen(0.5).update(range(3), key=[1, 2, 3]).values()
    )
    sample = strata(2, seed=1).update(range(3), key=keys)
    merged = strata(2, seed=2).update(range(3), key=keys).merge(sample)
    assert len(merged.strata()) == 3
    sample.update(range(3), key=[1.0, 2.0, 3.0]).update([9], key=[3])
    assert sorted(sample.strata()["n"].to_pylist()) == [2, 2, 3]


@pytest.mark.parametrize("name", ["sample", "bernoulli_sample", "recent_sample", "decayed_sample"])
def test_samples_keep_equal_values_or_refuse(name: str) -> None:
    line = REGISTRY[name]
    family = next(family for family in FAMILIES if family.line is line)
    params = {"p": 1.0} if "p" in line.params else {}
    for one, other in PAIRS:
        (sort, first), (_, second) = values_of(one), values_of(other)
        sketch = line.sketch_class()(**params)
        feed(sketch, family, first)
        try:
            feed(sketch, family, second)
        except (*REFUSED, pa.ArrowException):
            assert sort != values_of(other)[0] or one != other
            continue
        held = {value for value in sketch.values().to_pylist() if value == value}
        given = [*pa.array(first).to_pylist(), *pa.array(second).to_pylist()]
        assert held == {value for value in given if value is not None and value == value}, (one, other)
