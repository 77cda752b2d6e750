"""HLL and Theta against Spark's own functions, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamgauge.sketches.hll import HLL
from streamgauge.sketches.theta import Theta

pytestmark = pytest.mark.spark

SIZES = [1, 6, 200, 3_000, 30_000]


@pytest.fixture(scope="module")
def sketch_column(spark: Any) -> Any:
    """What Spark makes of groups of those sizes, as longs and as strings."""
    rows = [(g, sum(SIZES[:g]), n) for g, n in enumerate(SIZES)]
    spark.createDataFrame(rows, "g int, start long, n long").createOrReplaceTempView("sizes")
    numbers = spark.sql("select g, explode(sequence(start, start + n - 1)) v from sizes").repartition(1)
    numbers.createOrReplaceTempView("numbers")
    return spark.sql(
        """select g, min(v) start, count(*) n,
                  hll_sketch_agg(v) hll, hll_sketch_agg(concat('user-', v), 10) texts,
                  theta_sketch_agg(v) theta, theta_sketch_agg(concat('user-', v), 10) sets
           from numbers group by g order by g"""
    ).collect()


def values(row: Any) -> np.ndarray:
    return np.arange(row.start, row.start + row.n)


def registers_or_coupons(image: bytes) -> list[int]:
    """What an HLL_8 updatable image says, whatever the order in which Spark saw the rows."""
    if image[0] == 10:
        return list(image[40:])
    return sorted(np.frombuffer(image, np.uint32, offset=8 if image[0] == 2 else 12).tolist())


def test_spark_writes_what_we_write(sketch_column: Any) -> None:
    assert [row.n for row in sketch_column] == SIZES
    for row in sketch_column:
        texts = [f"user-{v}" for v in values(row)]
        for single, theirs in ((HLL().update(values(row)), row.hll), (HLL(10).update(texts), row.texts)):
            assert registers_or_coupons(single.to_bytes()) == registers_or_coupons(bytes(theirs))
            assert HLL.from_bytes(bytes(theirs)).to_bytes() == bytes(theirs)
        sets = (Theta().update(values(row)), row.theta), (Theta(10).update(texts), row.sets)
        for ours, packed in sets:  # Spark writes version 4
            assert Theta.from_bytes(bytes(packed), ours.lg_k).to_bytes() == ours.to_bytes()


def test_spark_merges_ours_with_its_own(spark: Any, sketch_column: Any) -> None:
    made = [
        (HLL().update(values(row)).to_bytes(), Theta().update(values(row)).to_bytes())
        for row in sketch_column
    ]
    rows = [(bytearray(hll), bytearray(theta)) for hll, theta in made]
    rows += [(row.hll, row.theta) for row in sketch_column]
    merged = spark.createDataFrame(rows, "hll binary, theta binary").selectExpr(
        "hll_union_agg(hll) hll", "theta_union_agg(theta) theta"
    )
    answers = merged.selectExpr("*", "hll_sketch_estimate(hll) distinct", "theta_sketch_estimate(theta) sets")
    row = answers.first()
    everything = np.arange(sum(SIZES))
    hll, theta = HLL.from_bytes(bytes(row.hll)), Theta.from_bytes(bytes(row.theta), 12)
    assert row.distinct == round(hll.estimate()) and row.sets == round(theta.estimate())
    assert hll.to_bytes()[40:] == HLL().update(everything).to_bytes()[40:]
    assert theta.to_bytes() == Theta().update(everything).to_bytes()
