"""Scalar functions as Spark's workers call them: row by row, nulls through, questions of one's choice."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sampling.reservoir import Reservoir
from streamgauge.sketches.bloom import Bloom
from streamgauge.sketches.core.answers import USUAL_QUANTILES
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.count_min import CountMin
from streamgauge.sketches.ddsketch import DDSketch
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.sketches.kll import KLL
from streamgauge.sketches.req import REQ
from streamgauge.sketches.sliding_hll import SlidingHLL
from streamgauge.sketches.theta import Theta, Tuple
from streamgauge.spark_udafs.functions.catalogue import catalogue

DAYS = [date(2026, 1, 1), date(2026, 1, 2)]


def ask(name: str, sketch: Any, *given: Any, **named: Any) -> Any:
    """What a function finds for one sketch; bytes and further arguments are columns of one row."""
    columns = [value if isinstance(value, pa.Array) else pa.array([value]) for value in given]
    options = {one: pa.array([value]) for one, value in named.items()}
    image = pa.array([None if sketch is None else sketch.to_bytes()], pa.binary())
    return catalogue()[name].run()(image, *columns, **options)[0].as_py()


def test_quantiles_of_ones_choice() -> None:
    spread = DDSketch().update(np.arange(1.0, 1_001))
    usual = ask("answer_quantiles", spread)
    assert [row["q"] for row in usual["quantiles"]] == list(USUAL_QUANTILES) and usual["n"] == 1_000
    for given in (0.99, Decimal("0.99"), [0.99]):
        (row,) = ask("answer_quantiles", spread, given)["quantiles"]
        assert row["lower"] <= 990 <= row["upper"]
    rows = ask("answer_quantiles", spread, q=[1.0, 0.0])["quantiles"]
    assert [row["q"] for row in rows] == [1.0, 0.0] and rows[0]["value"] > 980 and rows[1]["value"] < 1.02
    assert ask("answer_quantiles", DDSketch(), 0.5) == {"n": 0.0, "quantiles": []}
    with pytest.raises(SketchError, match=r"0\.5"):
        ask("answer_quantiles", spread, "half")
    with pytest.raises((SketchError, ValueError), match=r"1\.5"):
        ask("answer_quantiles", spread, 1.5)
    (row,) = ask("answer_tail_quantiles", REQ().update(np.arange(100.0)), 0.5)["quantiles"]
    assert row["lower"] <= 50 <= row["upper"]


def test_whole_numbers_and_times_keep_their_type() -> None:
    far = 1 << 60
    (row,) = ask("answer_kll_quantiles_long", KLL(kind="long").update([far, far + 1, far + 2]), 0.5)[
        "quantiles"
    ]
    assert row["value"] == far + 1
    hours = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in range(10)]
    times = KLL(kind="long").update(pa.array(hours, pa.timestamp("us", "UTC")))
    when = pa.array([hours[4]], pa.timestamp("us", "UTC"))
    assert ask("rank_kll_quantiles_long", times, when)["estimate"] == 0.5


def test_an_item_its_count_and_whether_it_is_there() -> None:
    words = ["a"] * 3 + ["b"]
    assert ask("count_frequency", CountMin().update(words), "a") == {"estimate": 3, "lower": 3, "upper": 3}
    top = FrequentItems(kind="string").update(words)
    assert ask("count_top_k_string", top, "b") == {"estimate": 1, "lower": 1, "upper": 1}
    assert ask("answer_top_k_string", top, 1) == [{"item": "a", "estimate": 3, "lower": 3, "upper": 3}]
    prices = pa.array([Decimal("1.50")], pa.decimal128(10, 2))
    assert ask("contains_membership", Bloom().update(["x", "y"]), "x") is True
    assert ask("count_frequency", CountMin().update([7, 7]), pa.array([7], pa.int8()))["estimate"] == 2
    with pytest.raises(TypeError, match=r"count_frequency: item is a decimal, .* cast it to STRING"):
        ask("count_frequency", CountMin().update(words), prices)


def test_an_item_of_another_type_is_converted_or_refused() -> None:
    doubles, longs, days = Bloom().update([3.0, 4.5]), CountMin().update([3, 3]), Bloom().update(DAYS)
    many = CountMin(0.01).update(np.arange(5_000))
    assert ask("contains_membership", doubles, pa.array([3], pa.int32())) is True
    assert ask("contains_membership", doubles, pa.array([Decimal("4.5")])) is True
    assert ask("contains_membership", days, pa.array([datetime(2026, 1, 2, tzinfo=UTC)])) is True
    assert ask("count_frequency", longs, 3.0)["estimate"] == 2
    assert ask("count_frequency", longs, pa.array([Decimal("3.00")]))["estimate"] == 2
    assert ask("count_frequency", many, 3.0)["lower"] <= 1 <= ask("count_frequency", many, 3.0)["upper"]
    for name, sketch, item in (
        ("contains_membership", doubles, "3"),
        ("contains_membership", doubles, DAYS[0]),
        ("contains_membership", days, "2026-01-01"),
        ("contains_membership", days, 20_454),
        ("count_frequency", longs, "3"),
        ("count_frequency", many, "3"),
        ("count_frequency", longs, DAYS[0]),
        ("count_frequency", CountMin().update(["3"]), 3),
        ("count_top_k_string", FrequentItems().update(["3"]), 3),
        ("count_top_k_long", FrequentItems().update([3]), "3"),
    ):
        with pytest.raises(TypeError, match=r"holds .* can't be equal|this sketch counts"):
            ask(name, sketch, item)
    for item in (3.5, Decimal("3.5")):
        with pytest.raises(SketchError, match="holds whole numbers"):
            ask("count_frequency", longs, item)


def test_ranks() -> None:
    result = ask("rank_quantiles", DDSketch().update(np.arange(1.0, 101)), Decimal("50"))
    assert result["lower"] <= 0.5 <= result["upper"] + 0.01
    assert ask("rank_tdigest_quantiles", _tdigest(), 50)["lower"] is None
    assert ask("rank_quantiles", DDSketch(), 1.0) is None


def _tdigest() -> Any:
    from streamgauge.sketches.tdigest import TDigest

    return TDigest().update(np.arange(100.0))


def test_sets() -> None:
    one, other = Theta().update(range(60)), Theta().update(range(40, 100))
    image = other.to_bytes()
    for verb, expected in (("union", one | other), ("intersect", one & other), ("subtract", one - other)):
        assert Theta.from_bytes(ask(f"{verb}_distinct_set", one, image)) == expected
    result = ask("compare_distinct_set", one, image)
    assert [result[name]["estimate"] for name in ("union", "intersection", "difference", "jaccard")] == [
        100,
        20,
        40,
        0.2,
    ]
    large = [Theta(14).update(range(n, n + 10_000)) for n in (0, 10_000)]
    reported = ask("union_distinct_set", large[0], large[1].to_bytes(), lg_k=14)
    assert Theta.from_bytes(reported, 14).estimate() == Theta(14).update(range(20_000)).estimate()
    assert (
        CountMin.from_bytes(
            ask("subtract_frequency", CountMin().update([1, 1, 2]), CountMin().update([1]).to_bytes())
        ).estimate(1)
        == 1
    )
    kept = Bloom.from_bytes(
        ask("intersect_membership", Bloom().update([1, 2]), Bloom().update([2, 3]).to_bytes())
    )
    assert 2 in kept and 1 not in kept


def test_totals_of_integers() -> None:
    whole = Tuple(kind="integer").update(["ann", "bob", "ann"], value=np.array([1, 2, 3]))
    result = ask("answer_tuple_integer", whole)
    assert result["totals"][0]["estimate"] == 6 and result["estimate"] == 2
    with pytest.raises(SketchError, match="Tuple"):
        ask("answer_tuple", whole)


def test_a_shorter_span_of_a_sliding_sketch() -> None:
    minutes = pa.array([datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in range(30)])
    sliding = SlidingHLL(window=3600.0).update(range(30), time=minutes)
    assert ask("answer_sliding_distinct", sliding)["estimate"] == pytest.approx(30, rel=0.01)
    result = ask("answer_sliding_distinct", sliding, 600)
    assert result == ask("answer_sliding_distinct", sliding, window=Decimal(600))
    assert result["lower"] <= 10 <= result["upper"]


def test_items_of_samples_as_text_and_by_type() -> None:
    rows = Reservoir(10).update([{"user": "ann", "n": 1}])
    assert ask("answer_sample", rows)["values"] == ['{"user": "ann", "n": 1}']
    assert sorted(ask("answer_sample", Reservoir(10).update(["x", "y"]))["values"]) == ["x", "y"]
    numbers = Reservoir(10).update([3, 1])
    assert sorted(ask("answer_sample_long", numbers)["values"]) == [1, 3]
    assert sorted(ask("answer_sample_double", numbers)["values"]) == [1.0, 3.0]
    with pytest.raises(SketchError, match="items of the type string, not longs"):
        ask("answer_sample_long", Reservoir(10).update(["x"]))
    assert ask("answer_sample_long", Reservoir(10)) == {"n": 0, "values": [], "error": 0.0}


def test_nulls_give_null_and_other_bytes_an_error() -> None:
    assert ask("answer_top_k", None) is None and ask("union_distinct_set", None, b"x") is None
    assert ask("contains_membership", Bloom(), pa.nulls(1, pa.string())) is None
    with pytest.raises(SketchError, match="HLL"):
        catalogue()["answer_distinct"].run()(pa.array([b"no sketch"]))
    for name, more in (("answer_distinct", []), ("merge_distinct", []), ("union_cpc", [pa.array([b""])])):
        with pytest.raises(TypeError, match=f"{name}: sketch must be a sketch, a column of type BINARY; got"):
            catalogue()[name].run()(pa.array(["text"]), *more)
    with pytest.raises(SketchError, match=r"answer_kll_quantiles: .* write answer_kll_quantiles_double"):
        ask("answer_kll_quantiles", KLL())
    with pytest.raises(TypeError, match=r"answer_distinct\(sketch\): too many"):
        ask("answer_distinct", Theta(), 1)


def test_the_struct_of_sparks_frequent_items() -> None:
    top = FrequentItems(64, "long").update([7, 7, 8])
    state = ask("to_spark_top_k_long", top)
    assert state["maxItemsTracked"] == 48 and state["itemDataTypeDDL"] == "item BIGINT NOT NULL"
    states = pa.array([state, None], catalogue()["to_spark_top_k_long"].returns)
    image, none = catalogue()["from_spark_top_k"].run()(states).to_pylist()
    assert FrequentItems.from_bytes(image, "long") == top and none is None
    with pytest.raises(SketchError, match="expected a struct of sketch, maxItemsTracked"):
        catalogue()["from_spark_top_k"].run()(pa.array([{"sketch": b"x"}]))
