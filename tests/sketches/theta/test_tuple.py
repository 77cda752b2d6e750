"""Tuple sketches: keys and totals against the naive answer, the package, and Spark both ways."""

from __future__ import annotations

from typing import Any

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.theta import Theta
from streamgauge.sketches.theta.tuple import Tuple


@pytest.mark.parametrize("mode", ["sum", "min", "max", "always_one"])
def test_exact_while_every_key_is_kept(mode: str) -> None:
    rng = np.random.default_rng(1)
    keys, numbers = rng.integers(0, 500, 5000), rng.integers(-50, 50, 5000)
    fold: Any = {"sum": np.sum, "min": np.min, "max": np.max, "always_one": lambda _: 1}[mode]
    true = float(sum(fold(numbers[keys == key]) for key in np.unique(keys)))
    whole = Tuple(10, mode=mode).update(keys, value=numbers)
    merged = Tuple(10, mode=mode)
    for part in np.array_split(np.arange(5000), 7):
        merged.merge(Tuple(12, mode=mode).update(keys[part], value=numbers[part]))
    assert merged == whole
    assert whole.estimate() == 500.0 and whole.totals() == [(true, true, true)]


def test_keys_and_totals_keep_their_bounds() -> None:
    inside = {"keys": 0, "totals": 0}
    for seed in range(80):
        rng = np.random.default_rng(seed)
        keys = rng.integers(0, 1 << 60, 20_000)
        numbers = rng.exponential(5, 20_000)
        sketch = Tuple(9).update(keys[:9000], value=numbers[:9000]) | Tuple(11).update(
            keys[9000:], value=numbers[9000:]
        )
        lower, upper = sketch.bounds()
        inside["keys"] += lower <= 20_000 <= upper
        total = sketch.totals()[0]
        inside["totals"] += total.lower <= numbers.sum() <= total.upper
        assert total.upper - total.lower < 0.5 * numbers.sum()
    assert min(inside.values()) >= 80 * 0.954 - 3.5 * np.sqrt(80 * 0.046)


def test_keys_are_a_theta_sketch() -> None:
    values = np.arange(30_000)
    assert Tuple(11).update(values).keys().to_bytes() == Theta(11).update(values).to_bytes()


def test_the_package_reads_bare_ones_and_the_reverse() -> None:
    peer = datasketches.update_tuple_sketch(datasketches.AccumulatorPolicy(), 8)
    for i in range(3000):
        peer.update(i, float(i % 7))
    serde = datasketches.PyDoublesSerDe()
    theirs = Tuple.from_bytes(peer.compact().serialize(serde), 8, kind="bare")
    ours = Tuple(8, kind="bare").update(np.arange(3000), value=np.arange(3000) % 7)
    read = datasketches.compact_tuple_sketch.deserialize(ours.to_bytes(), serde)
    assert read.get_estimate() == ours.estimate() == pytest.approx(theirs.estimate(), rel=0.2)
    assert dict(read) == dict(zip(ours._hashes.tolist(), ours._numbers[:, 0].tolist()))


def test_images_of_another_kind_or_mode_are_refused() -> None:
    double, integer = (
        Tuple().update([1, 2], value=5),
        Tuple(kind="integer", mode="max").update([1, 2], value=5),
    )
    for image, kind, mode in (
        (double, "integer", None),
        (double, "array", None),
        (double, "bare", None),
        (integer, "double", None),
        (integer, "integer", "sum"),
    ):
        with pytest.raises(SketchError):
            Tuple.from_bytes(image.to_bytes(), kind=kind, mode=mode)
    with pytest.raises(SketchError, match="kind, mode and width"):
        double.merge(integer)
    with pytest.raises(OverflowError, match="int32"):
        integer.update([1], value=1 << 40)
    with pytest.raises(ValueError, match="integer numbers a row"):
        integer.update([1], value=[0.5])
    with pytest.raises(SketchError, match="mode must be"):
        Tuple(kind="array", mode="max")


@pytest.mark.spark
def test_spark_writes_and_merges_them(spark: Any) -> None:
    rows = [(key, float(key % 7)) for key in range(3000)]
    spark.createDataFrame(rows, "key long, number double").createOrReplaceTempView("numbers")
    stored = spark.sql(
        """select tuple_sketch_agg_double(key, number, 10) doubles,
                  tuple_sketch_agg_integer(key, cast(number as int), 10, 'max') integers from numbers"""
    ).first()
    doubles = Tuple.from_bytes(bytes(stored.doubles), 10)
    integers = Tuple.from_bytes(bytes(stored.integers), 10, "integer")
    assert doubles.keys().to_bytes() != Theta(10).to_bytes() and integers.mode == "max"
    ours = Tuple(10).update(np.arange(2000, 6000), value=np.arange(2000, 6000) % 7)
    spark.createDataFrame(
        [(bytearray(ours.to_bytes()),), (stored.doubles,)], "s binary"
    ).createOrReplaceTempView("s")
    merged = spark.sql("select tuple_union_agg_double(s, 10) s from s")
    row = merged.selectExpr(
        "s", "tuple_sketch_estimate_double(s) n", "tuple_sketch_summary_double(s) total"
    ).first()
    united = doubles | ours
    assert row.n == pytest.approx(united.estimate())
    # Spark's total is that of the keys kept.
    assert row.total == pytest.approx(united.totals()[0].estimate * united.theta)
    assert Tuple.from_bytes(bytes(row.s), 10) == united


def test_integers_are_those_of_32_bits() -> None:
    limits = Tuple(kind="integer").update(["low", "high"], value=[-(2**31), 2**31 - 1])
    assert Tuple.from_bytes(limits.to_bytes(), kind="integer") == limits
    image = limits.to_bytes()
    for keys, value in ((["new", "low"], [1, -1]), (["new"], [2**31]), (["new"], [2**63])):
        with pytest.raises(OverflowError, match="int32"):
            limits.update(keys, value=np.array(value))
    with pytest.raises(OverflowError, match="int32"):
        limits.merge(limits.copy())
    assert limits.to_bytes() == image, "what raised has changed something"
