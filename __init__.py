"""Approximate analytics for streams that never end.

How many different, which are the most frequent, how are they spread, show me a fair sample: answered in
bounded memory, with stated error bounds, on Spark and straight off Kafka.

    Stream, json, count, distinct, …    say what is asked of a topic; run(), start() and on_spark() count it
    StreamTester                        tries a stream out with no broker
    query, merge, compare               ask tables of sketches
    session, write, sketch, register    are for Spark
    HLL, KLL, FrequentItems, …          are the sketches by themselves

Everything public is importable from here; nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# name → the module that defines it; imported on first use so that `import streamgauge` stays instant.
_EXPORTS: dict[str, str] = {
    "Account": ".operators.accounting",
    "Aggregate": ".operators.aggregates",
    "BernoulliSample": ".sampling.bernoulli",
    "Bloom": ".sketches.bloom",
    "CPC": ".sketches.cpc",
    "ClassicQuantiles": ".sketches.classic_quantiles",
    "ConsoleSink": ".spark_udafs.sinks",
    "CountMin": ".sketches.count_min",
    "DDSketch": ".sketches.ddsketch",
    "DecayedCount": ".sampling.decayed_counts",
    "DecayedQuantiles": ".sampling.decayed_quantiles",
    "DecayedReservoir": ".sampling.decayed",
    "Decoded": ".operators.kafka.decode",
    "Decoder": ".operators.kafka.decode",
    "FrequentItems": ".sketches.frequent_items",
    "HLL": ".sketches.hll",
    "HashSample": ".sampling.bernoulli",
    "HeavyHitters": ".sketches.heavy_hitters",
    "KLL": ".sketches.kll",
    "KafkaSink": ".spark_udafs.sinks",
    "Messages": ".operators.kafka.messages",
    "ParquetSink": ".spark_udafs.sinks",
    "REQ": ".sketches.req",
    "Reservoir": ".sampling.reservoir",
    "Run": ".operators.runner",
    "SketchError": ".sketches.protocol",
    "SlidingHLL": ".sketches.sliding_hll",
    "SlidingWindowSample": ".sampling.sliding",
    "StratifiedReservoir": ".sampling.stratified",
    "Stream": ".operators.stream",
    "StreamTester": ".operators.testing",
    "Summary": ".operators.runner",
    "TDigest": ".sketches.tdigest",
    "Theta": ".sketches.theta",
    "Tuple": ".sketches.tuple",
    "VarOpt": ".sketches.var_opt",
    "WeightedReservoir": ".sampling.weighted",
    "account_of": ".spark_udafs.run",
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
    "register": ".spark_udafs.functions",
    "sample": ".operators.aggregates",
    "session": ".spark_udafs.session",
    "sketch": ".spark_udafs.frames",
    "sliding_distinct": ".operators.aggregates",
    "stratified_sample": ".operators.aggregates",
    "sum": ".operators.aggregates",
    "top_k": ".operators.aggregates",
    "variance": ".operators.aggregates",
    "weighted_sample": ".operators.aggregates",
    "window": ".spark_udafs.frames",
    "write": ".spark_udafs.run",
}

# `from streamgauge import *` leaves Python's own names as they are; these must be imported by name.
_SHADOWING = ("json", "max", "min", "sum")

__all__ = ["__version__", *(name for name in _EXPORTS if name not in _SHADOWING)]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(["__version__", *_EXPORTS])
