"""The rule of ranks that all quantile families share: a number has one, NaN has none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.families import FAMILIES
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.functions.questions import _rank

RANKED = [
    name for name, family in FAMILIES.items() if not family.exact and hasattr(family.sketch_class(), "rank")
]


def filled(name: str) -> Any:
    sketch = FAMILIES[name].sketch_class()()
    return sketch.update(np.arange(1.0, 101.0))


def test_the_quantile_families_are_covered() -> None:
    assert {"quantiles", "kll_quantiles", "req", "classic_quantiles", "tdigest"} <= set(RANKED)


@pytest.mark.parametrize("name", RANKED)
def test_nan_has_no_rank(name: str) -> None:
    sketch = filled(name)
    questions = [sketch.rank, lambda x: _rank(sketch, pa.array([x]))]
    questions += [sketch.rank_bounds] if hasattr(sketch, "rank_bounds") else []
    questions += [lambda x: sketch.cdf([x]), lambda x: sketch.pmf([x])] if hasattr(sketch, "cdf") else []
    for question in questions:
        with pytest.raises(SketchError):
            question(math.nan)


@pytest.mark.parametrize("name", RANKED)
def test_infinities_have_the_ranks_of_the_ends(name: str) -> None:
    sketch = filled(name)
    assert (sketch.rank(-math.inf), sketch.rank(math.inf)) == (0.0, 1.0)
