"""The rule of ranks that all quantile families share: a number has one, NaN has none."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.families import FAMILIES
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.functions.questions import _rank

from ..cases import each

SKETCHED = {name: family.sketch_class() for name, family in FAMILIES.items() if not family.exact}
RANKED = [name for name, single in SKETCHED.items() if hasattr(single, "rank")]
SHARED = [name for name, single in SKETCHED.items() if hasattr(single, "quantiles")]


def filled(name: str) -> Any:
    timed = {"time": np.zeros(100, np.int64)} if "time" in FAMILIES[name].inputs else {}
    return SKETCHED[name]().update(np.arange(1.0, 101.0), **timed)


def test_the_quantile_families_are_covered() -> None:
    assert {"quantiles", "kll_quantiles", "tail_quantiles", "classic_quantiles", "tdigest_quantiles"} <= set(
        RANKED
    )
    assert {*RANKED, "decayed_quantiles"} == set(SHARED)


@pytest.mark.parametrize("name", SHARED)
@each("point", [math.nan, np.float32("nan"), None, "7", b"7", [7.0], 1j, np.datetime64(7, "s")])
def test_what_is_no_number_has_no_rank(name: str, point: Any) -> None:
    sketch = filled(name)
    methods = [getattr(sketch, one) for one in ("rank", "rank_bounds") if hasattr(sketch, one)]
    methods += [lambda x: sketch.cdf([x]), lambda x: sketch.pmf([x])] if hasattr(sketch, "cdf") else []
    for method in methods:
        with pytest.raises(SketchError, match=r"a rank needs a number|points must be"):
            method(point)


@pytest.mark.parametrize("name", RANKED)
def test_nan_has_no_rank_in_sql(name: str) -> None:
    with pytest.raises(SketchError):
        _rank(filled(name), pa.array([math.nan]))


@pytest.mark.parametrize("name", SHARED)
@each("share", [math.nan, -0.1, 1.1, None, "0.5", b"0.5", np.datetime64(0, "s")])
def test_a_share_is_a_number_from_0_to_1(name: str, share: Any) -> None:
    sketch = filled(name)
    methods = ("quantile", "quantile_bounds", "quantiles", "quantiles_within")
    for method in (getattr(sketch, one) for one in methods if hasattr(sketch, one)):
        with pytest.raises(SketchError, match="share must be a number from 0 to 1, got"):
            method([share] if method.__name__.startswith("quantiles") else share)


@pytest.mark.parametrize("name", RANKED)
def test_numbers_of_every_type_have_ranks(name: str) -> None:
    sketch = filled(name)
    same = (7, 7.0, np.int8(7), np.uint64(7), np.float16(7), Decimal(7), Fraction(7))
    assert {sketch.rank(x) for x in same} == {sketch.rank(7.0)}
    assert sketch.rank(True) == sketch.rank(np.True_) == sketch.rank(1)
    assert (sketch.rank(-(10**400)), sketch.rank(10**400)) == (0.0, 1.0)


@pytest.mark.parametrize("name", [name for name in RANKED if name != "quantiles"])  # by buckets, not values
def test_the_ends_have_a_value_on_their_side(name: str) -> None:
    wrong, rng = [], np.random.default_rng(5)
    for n in (2, 700, 30_000):
        sketch, values = SKETCHED[name]().update(np.arange(1.0, n + 1)), np.arange(1.0, n + 1)
        for _ in range(3):
            sketch.merge(SKETCHED[name]().update(rng.permutation(values)))
        low, high = (sketch.quantile(q) for q in (0.0, 1.0))
        ranks = [sketch.rank(x) for x in (low, high - 0.5, high)]
        bounds = [sketch.rank_bounds(x) for x in (low, 1, n - 0.5, n)] if name == "kll_quantiles" else []
        least = (0.5 if "tdigest" in name else 1) / sketch.n  # a t-digest interpolates, as Java's does
        if not (least <= ranks[0] and ranks[1] <= 1 - 1 / sketch.n and ranks[2] == 1):
            wrong.append((n, ranks))
        if bounds and not (bounds[0][0] > 0 and bounds[2][1] < 1 and bounds[3] == (1, 1)):
            wrong.append((n, bounds))
    assert not wrong


@pytest.mark.parametrize("name", SHARED)
def test_quantiles_of_the_largest_doubles_lie_between_their_ends(name: str) -> None:
    wrong = []
    top = 1e308 if name != "tail_quantiles" else 3e38
    for values in ([top, -top], [-top] * 3 + [top] * 4, np.geomspace(top / 1e8, top, 900), [top] * 50):
        timed = {"time": np.zeros(len(values), np.int64)} if "time" in FAMILIES[name].inputs else {}
        sketch = SKETCHED[name]().update(values, **timed)
        quantiles = np.array(sketch.quantiles(np.linspace(0, 1, 41)))
        slack = 1 + getattr(sketch, "relative_accuracy", 1e-6)  # of floats: their rounding
        if not (-top * slack <= quantiles.min() <= quantiles.max() <= top * slack):
            wrong.append((values, quantiles))
        if (quantiles != np.sort(quantiles)).any() or quantiles.max() < 0:
            wrong.append((values, quantiles))
    assert not wrong


@pytest.mark.parametrize("name", RANKED)
def test_a_number_between_two_doubles_has_the_rank_of_the_lower(name: str) -> None:
    gap = 2 if name != "tail_quantiles" else 2**30
    values = [2.0**53 + gap * i for i in range(40)]
    sketch = SKETCHED[name]().update(values)
    for i, value in enumerate(values):
        below = int(value)
        for above in (below + gap - 1, Fraction(2 * below + 1, 2), Decimal(f"{below}.1")):
            if gap == 2 or above != below + gap - 1:
                assert sketch.rank(above) == sketch.rank(value), (i, above)
    if name != "tdigest_quantiles":  # which has no place for infinities
        assert SKETCHED[name]().update([1.0, 2.0, math.inf, 3.0]).rank(10**400) == 0.75


@pytest.mark.parametrize("name", RANKED)
def test_infinities_have_the_ranks_of_the_ends(name: str) -> None:
    sketch = filled(name)
    assert (sketch.rank(-math.inf), sketch.rank(math.inf)) == (0.0, 1.0)
