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
    "Account": ".operators.sketching.accounting",
    "Aggregate": ".operators.definition.aggregates",
    "BernoulliSample": ".sampling.bernoulli",
    "Bloom": ".sketches.bloom",
    "CPC": ".sketches.stored.cpc",
    "ClassicQuantiles": ".sketches.stored.classic_quantiles",
    "ConsoleSink": ".spark_udafs.sinks",
    "CountMin": ".sketches.count_min",
    "DDSketch": ".sketches.ddsketch",
    "DecayedCount": ".sampling.decayed",
    "DecayedQuantiles": ".sampling.decayed",
    "DecayedReservoir": ".sampling.decayed",
    "Decoded": ".operators.formats.decode",
    "Decoder": ".operators.formats.decode",
    "FrequentItems": ".sketches.frequent_items",
    "HLL": ".sketches.hll",
    "HashSample": ".sampling.bernoulli",
    "HeavyHitters": ".sketches.count_min",
    "KLL": ".sketches.kll",
    "KafkaSink": ".spark_udafs.sinks",
    "Messages": ".operators.formats.messages",
    "ParquetSink": ".spark_udafs.sinks",
    "REQ": ".sketches.stored.req",
    "Reservoir": ".sampling.reservoir",
    "Run": ".operators.consumer.runner",
    "SketchError": ".sketches.core.protocol",
    "SlidingHLL": ".sketches.sliding_hll",
    "SlidingWindowSample": ".sampling.sliding",
    "StratifiedReservoir": ".sampling.stratified",
    "Stream": ".stream",
    "StreamTester": ".operators.testing",
    "Summary": ".operators.consumer.runner",
    "TDigest": ".sketches.stored.tdigest",
    "Theta": ".sketches.theta",
    "Tuple": ".sketches.theta",
    "VarOpt": ".sketches.stored.var_opt",
    "WeightedReservoir": ".sampling.weighted",
    "account_of": ".spark_udafs.run",
    "as_frame": ".spark_udafs.tables",
    "as_table": ".spark_udafs.tables",
    "bernoulli_sample": ".operators.definition.aggregates",
    "compare": ".operators.table.sets",
    "count": ".operators.definition.aggregates",
    "decayed_count": ".operators.definition.aggregates",
    "decayed_quantiles": ".operators.definition.aggregates",
    "decayed_sample": ".operators.definition.aggregates",
    "distinct": ".operators.definition.aggregates",
    "distinct_set": ".operators.definition.aggregates",
    "first": ".operators.definition.aggregates",
    "frequency": ".operators.definition.aggregates",
    "hash_sample": ".operators.definition.aggregates",
    "json": ".operators.formats.json",
    "kll_quantiles": ".operators.definition.aggregates",
    "last": ".operators.definition.aggregates",
    "max": ".operators.definition.aggregates",
    "mean": ".operators.definition.aggregates",
    "membership": ".operators.definition.aggregates",
    "merge": ".operators.table.merge",
    "min": ".operators.definition.aggregates",
    "quantiles": ".operators.definition.aggregates",
    "query": ".operators.table.query",
    "recent_sample": ".operators.definition.aggregates",
    "register": ".spark_udafs.functions",
    "sample": ".operators.definition.aggregates",
    "session": ".spark_udafs.session",
    "sketch": ".spark_udafs.frames",
    "sliding_distinct": ".operators.definition.aggregates",
    "stratified_sample": ".operators.definition.aggregates",
    "sum": ".operators.definition.aggregates",
    "top_k": ".operators.definition.aggregates",
    "variance": ".operators.definition.aggregates",
    "weighted_sample": ".operators.definition.aggregates",
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
