"""Aggregates: what a family refuses is refused where it is requested, by name."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.operators.definition import aggregates
from streamgauge.sketches.core.protocol import SketchError

from ...cases import each

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("top_k", {"k": -1}, "top_k: k must be"),
    ("top_k", {"k": 2.5}, "top_k: k must be"),
    ("top_k", {"max_size": 100}, "max_size must be a power of two"),
    ("distinct", {"lg_k": 99}, "lg_k must be a whole number from 4 to 21, got 99"),
    ("distinct_set", {"lg_k": "12"}, "lg_k"),
    ("quantiles", {"relative_accuracy": 1}, "relative_accuracy"),
    ("kll_quantiles", {"k": True}, "k must be"),
    ("frequency", {"eps": 2}, "eps"),
    ("membership", {"capacity": 1e6}, "capacity must be .* write 1000000"),
    ("sample", {"k": 0}, "sample: k must be"),
    ("recent_sample", {"window": -1}, "window"),
    ("decayed_count", {"half_life": 0}, "half_life"),
    ("hash_sample", {"key": "user", "p": 2}, "p must be"),
    ("stratified_sample", {"key": "user", "capacity": -5}, "capacity"),
]


@each(("name", "options", "reported"), WRONG)
def test_wrong_parameters_are_refused_at_once(name: str, options: dict[str, Any], reported: str) -> None:
    with pytest.raises(SketchError, match=reported):
        getattr(aggregates, name)("price", **options)
