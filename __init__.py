"""Approximate analytics for streams that never end.

How many different, which are the most frequent, how are they spread, show me a fair sample: answered in
bounded memory, with stated error bounds, on Spark and straight off Kafka. Everything public is importable
from here; nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# name → the module that defines it; imported on first use so that `import streamgauge` stays instant.
_EXPORTS: dict[str, str] = {
    "Aggregate": ".operators.aggregates",
    "BernoulliSample": ".sampling.bernoulli",
    "Bloom": ".sketches.bloom",
    "CPC": ".sketches.cpc",
    "ClassicQuantiles": ".sketches.classic_quantiles",
    "CountMin": ".sketches.count_min",
    "DDSketch": ".sketches.ddsketch",
    "DecayedCount": ".sampling.decayed_counts",
    "DecayedQuantiles": ".sampling.decayed_quantiles",
    "DecayedReservoir": ".sampling.decayed",
    "FrequentItems": ".sketches.frequent_items",
    "HLL": ".sketches.hll",
    "HashSample": ".sampling.bernoulli",
    "HeavyHitters": ".sketches.heavy_hitters",
    "KLL": ".sketches.kll",
    "REQ": ".sketches.req",
    "Reservoir": ".sampling.reservoir",
    "SketchError": ".sketches.protocol",
    "SlidingHLL": ".sketches.sliding_hll",
    "SlidingWindowSample": ".sampling.sliding",
    "StratifiedReservoir": ".sampling.stratified",
    "Stream": ".operators.stream",
    "Theta": ".sketches.theta",
    "TDigest": ".sketches.tdigest",
    "Tuple": ".sketches.tuple",
    "VarOpt": ".sketches.var_opt",
    "WeightedReservoir": ".sampling.weighted",
    "bernoulli_sample": ".operators.aggregates",
    "compare": ".operators.sets",
    "count": ".operators.aggregates",
    "decayed_count": ".operators.aggregates",
    "decayed_quantiles": ".operators.aggregates",
    "decayed_sample": ".operators.aggregates",
    "distinct": ".operators.aggregates",
    "distinct_set": ".operators.aggregates",
    "first": ".operators.aggregates",
    "frequency": ".operators.aggregates",
    "hash_sample": ".operators.aggregates",
    "json": ".operators.kafka.json",
    "kll_quantiles": ".operators.aggregates",
    "last": ".operators.aggregates",
    "max": ".operators.aggregates",
    "mean": ".operators.aggregates",
    "membership": ".operators.aggregates",
    "merge": ".operators.merge",
    "min": ".operators.aggregates",
    "quantiles": ".operators.aggregates",
    "query": ".operators.query",
    "recent_sample": ".operators.aggregates",
    "sample": ".operators.aggregates",
    "sliding_distinct": ".operators.aggregates",
    "stratified_sample": ".operators.aggregates",
    "sum": ".operators.aggregates",
    "top_k": ".operators.aggregates",
    "variance": ".operators.aggregates",
    "weighted_sample": ".operators.aggregates",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
