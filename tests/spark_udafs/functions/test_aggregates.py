"""The aggregates as Spark's workers call them: Arrow columns of one group in, bytes out."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.sampling.decayed_count import DecayedCount
from streamgauge.sampling.reservoir import Reservoir
from streamgauge.sampling.weighted import WeightedReservoir
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.ddsketch import DDSketch
from streamgauge.sketches.hll import HLL
from streamgauge.sketches.kll import KLL
from streamgauge.sketches.theta import Theta, Tuple
from streamgauge.spark_udafs import seeds as seeding
from streamgauge.spark_udafs.functions.aggregates import TaskSeeds, merged, sketch_of

SEEDS = TaskSeeds(0)


def test_options_reach_the_sketch() -> None:
    users = pa.array(["ann", "bob", None, "ann"])
    image = sketch_of("distinct", SEEDS, {"column": users, "lg_k": pa.array([11] * 4)})
    assert HLL.from_bytes(image).lg_k == 11
    assert HLL.from_bytes(image) == HLL(11).update(users)
    assert HLL.from_bytes(sketch_of("distinct", SEEDS, {"column": users})).lg_k == 12
    with pytest.raises(SketchError, match="distinct: lg_k must be a whole number from 4 to 21, got 99"):
        sketch_of("distinct", SEEDS, {"column": users, "lg_k": pa.array([99] * 4)})


def test_text_that_is_not_utf_8_is_kept_as_spark_shows_it() -> None:
    given = pa.array([b"caf\xe9", b"caf\xe8", b"caf"])
    lines = pa.Array.from_buffers(pa.string(), len(given), given.buffers())
    image = sketch_of("sample", SEEDS, {"column": lines})
    assert sorted(Reservoir.from_bytes(image).values().to_pylist()) == ["caf", "caf\ufffd", "caf\ufffd"]
    assert round(HLL.from_bytes(sketch_of("distinct", SEEDS, {"column": lines})).estimate()) == 3


def test_a_group_without_rows_has_an_empty_sketch() -> None:
    none = pa.array([], pa.string())
    image = sketch_of("distinct", SEEDS, {"column": none, "lg_k": pa.array([], pa.int32())})
    assert HLL.from_bytes(image).estimate() == 0


def test_rows_without_a_time_or_a_fit_weight_are_skipped() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    times = [begin, None, begin + timedelta(hours=1)]
    given = {
        "column": pa.array(["a", "b", "c"]),
        "time": pa.array(times),
        "half_life": pa.array([3600.0] * 3),
    }
    result = DecayedCount.from_bytes(sketch_of("decayed_count", SEEDS, given))
    assert result.n == 2 and result.estimate() == pytest.approx(1.5)
    weights = pa.array([1.0, None, float("nan"), -1.0, 2.0])
    image = sketch_of("weighted_sample", SEEDS, {"column": pa.array(list("abcde")), "weight": weights})
    assert sorted(WeightedReservoir.from_bytes(image).values().to_pylist()) == ["a", "e"]
    with pytest.raises(TypeError, match=r"weight='weight' must name a column of numbers"):
        sketch_of("weighted_sample", SEEDS, {"column": pa.array(["a"]), "weight": pa.array(["b"])})
    with pytest.raises(TypeError, match="distinct"):
        sketch_of("distinct", SEEDS, {"column": pa.array([{"a": 1}])})


def test_decimals_are_counted_as_their_text_and_days_are_times() -> None:
    paid = pa.array([Decimal("1E-7"), Decimal(0), None, Decimal(-2)], pa.decimal128(38, 18))
    texts = pa.array(["0.000000100000000000", "0.000000000000000000", None, "-2.000000000000000000"])
    for name in ("distinct", "top_k", "frequency"):
        one, other = (sketch_of(name, SEEDS, {"column": column}) for column in (paid, texts))
        assert one == other
    assert KLL.from_bytes(sketch_of("kll_quantiles", SEEDS, {"column": paid}), kind="double").n == 3
    days = {"column": pa.array([1, 2]), "time": pa.array([date(2026, 1, 1), None])}
    assert DecayedCount.from_bytes(sketch_of("decayed_count", SEEDS, days)).n == 1


def test_samples_of_groups_and_tasks_are_drawn_independently(monkeypatch: pytest.MonkeyPatch) -> None:
    column = {"column": pa.array(range(1_000)), "k": pa.array([20] * 1_000)}
    seeds = TaskSeeds(7)

    def drawn(seeds: TaskSeeds) -> list[int]:
        return Reservoir.from_bytes(sketch_of("sample", seeds, column)).values().to_pylist()

    def in_task(stage: int, partition: int) -> None:
        task = SimpleNamespace(
            stageId=lambda: stage, partitionId=lambda: partition, getLocalProperty=lambda place: None
        )
        monkeypatch.setattr(seeding, "TaskContext", SimpleNamespace(get=lambda: task))

    in_task(3, 0)
    first, second = drawn(seeds), drawn(seeds)
    assert first == drawn(TaskSeeds(7)), "a task that Spark repeats draws the same"
    assert first != drawn(TaskSeeds(8)), "another driver draws others"
    in_task(3, 1)
    assert len({tuple(first), tuple(second), tuple(drawn(TaskSeeds(7)))}) == 3


def test_merging_reads_each_kind_and_size() -> None:
    images = [HLL(lg_k).update(range(lg_k)).to_bytes() for lg_k in (11, 12)]
    image = merged("distinct", "", {"sketch": pa.array([*images, None], pa.binary())})
    assert image is not None and HLL.from_bytes(image).estimate() == pytest.approx(12, rel=0.01)
    assert merged("distinct", "", {"sketch": pa.nulls(2, pa.binary())}) is None
    with pytest.raises(SketchError, match="write merge_top_k_string, merge_top_k_long"):
        merged("top_k", "", {"sketch": pa.array([b"x"])})
    with pytest.raises(SketchError, match="HLL"):
        merged("distinct", "", {"sketch": pa.array([b"no sketch"])})


def test_merging_keeps_the_size_that_is_requested() -> None:
    sets = [Theta(14).update(range(n, n + 10_000)).to_bytes() for n in (0, 10_000)]
    arguments: dict[str, Any] = {"sketch": pa.array(sets)}
    reported = merged("distinct_set", "", {**arguments, "lg_k": pa.array([14, 14])})
    assert reported is not None
    assert Theta.from_bytes(reported, 14) == Theta(14).update(range(20_000))
    most = [Tuple(mode="max").update(["ann"], value=[n]).to_bytes() for n in (1.0, 3.0, 2.0)]
    image = merged("tuple", "", {"sketch": pa.array(most), "mode": pa.array(["max"] * 3)})
    assert image is not None and Tuple.from_bytes(image).totals()[0].estimate == 3.0


def test_weights_that_may_be_left_out_reach_the_sketch() -> None:
    values, weights = pa.array([10.0, 20.0, None, 40.0]), pa.array([3, None, 5, 1])
    image = sketch_of("kll_quantiles", SEEDS, {"column": values, "weight": weights})
    assert KLL.from_bytes(image, "double").quantiles([0.5, 1]) == [10.0, 40.0]
    given = {"column": values, "relative_accuracy": pa.array([0.02] * 4), "weight": weights}
    result = DDSketch.from_bytes(sketch_of("quantiles", SEEDS, given))
    assert (result.n, round(result.relative_accuracy, 3)) == (4, 0.02)
    with pytest.raises(ValueError, match=r"weight='weight'.*whole numbers from 0.*got -1"):
        sketch_of("kll_quantiles", SEEDS, {"column": values, "weight": pa.array([1, -1, 1, 1])})
