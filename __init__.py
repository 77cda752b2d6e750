"""Approximate analytics for endless streams.

Distinct counts, most frequent items, distributions and samples, in bounded memory, with stated error bounds,
on Spark and straight off Kafka.

    import streamgauge as sg

    Stream, json, count, distinct, …    define a stream; run(), start() and on_spark() execute it
    run_together, start_together        run several streams in one process with one consumer
    StreamTester                        tests a stream without a broker
    sql                                 defines streams and queries stored tables in SQL
    AnswersToKafka, SketchesToParquet   are sinks for a run's closed windows
    SketchTable                         is the result of runs, files and Spark: answers, merges, displays
    query, merge, compare               work on such tables; read_table and compact on stored ones,
                                        read_group on a running group's
    Client                              queries a query server
    HLL, KLL, FrequentItems, …          are the sketches themselves

    sg.rules                            limits, bursts, absence: rules over closed windows, and their alerts
    sg.formats                          types for your own formats
    sg.spark                            sessions, DataFrames, queries and sinks of Spark
    sg.stored                           families for sketches stored by other systems
    sg.errors                           all errors, and the base of them

Everything public is importable from here or from these modules; heavy imports happen on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import errors as errors
    from . import formats as formats
    from . import rules as rules
    from . import spark as spark
    from . import stored as stored
    from .operators.consumer.group.reset import reset as reset
    from .operators.consumer.migration import migrate as migrate
    from .operators.consumer.run import Run as Run
    from .operators.consumer.shared_run import RunTogether as RunTogether
    from .operators.consumer.summary import Summary as Summary
    from .operators.definition.aggregate import Aggregate as Aggregate
    from .operators.definition.aggregates import bernoulli_sample as bernoulli_sample
    from .operators.definition.aggregates import count as count
    from .operators.definition.aggregates import decayed_count as decayed_count
    from .operators.definition.aggregates import decayed_quantiles as decayed_quantiles
    from .operators.definition.aggregates import decayed_sample as decayed_sample
    from .operators.definition.aggregates import distinct as distinct
    from .operators.definition.aggregates import distinct_set as distinct_set
    from .operators.definition.aggregates import first as first
    from .operators.definition.aggregates import frequency as frequency
    from .operators.definition.aggregates import hash_sample as hash_sample
    from .operators.definition.aggregates import kll_quantiles as kll_quantiles
    from .operators.definition.aggregates import last as last
    from .operators.definition.aggregates import max as max
    from .operators.definition.aggregates import mean as mean
    from .operators.definition.aggregates import membership as membership
    from .operators.definition.aggregates import min as min
    from .operators.definition.aggregates import quantiles as quantiles
    from .operators.definition.aggregates import recent_sample as recent_sample
    from .operators.definition.aggregates import sample as sample
    from .operators.definition.aggregates import sliding_distinct as sliding_distinct
    from .operators.definition.aggregates import sliding_membership as sliding_membership
    from .operators.definition.aggregates import stratified_sample as stratified_sample
    from .operators.definition.aggregates import sum as sum
    from .operators.definition.aggregates import tail_quantiles as tail_quantiles
    from .operators.definition.aggregates import tdigest_quantiles as tdigest_quantiles
    from .operators.definition.aggregates import top_k as top_k
    from .operators.definition.aggregates import variance as variance
    from .operators.definition.aggregates import weighted_sample as weighted_sample
    from .operators.definition.tables import LookupTable as LookupTable
    from .operators.formats.avro.decoder import avro as avro
    from .operators.formats.avro.encode import as_avro as as_avro
    from .operators.formats.encode import as_bytes as as_bytes
    from .operators.formats.encode import as_json as as_json
    from .operators.formats.json.decoder import json as json
    from .operators.formats.json.fields import field as field
    from .operators.formats.protobuf.decoder import protobuf as protobuf
    from .operators.formats.text.access_log import access_log as access_log
    from .operators.formats.text.csv import csv as csv
    from .operators.formats.text.plain import raw as raw
    from .operators.formats.text.plain import text as text
    from .operators.formats.text.syslog import syslog as syslog
    from .operators.sinks.answers_to_kafka import AnswersToKafka as AnswersToKafka
    from .operators.sinks.sketches_to_kafka import SketchesToKafka as SketchesToKafka
    from .operators.sinks.sketches_to_parquet import SketchesToParquet as SketchesToParquet
    from .operators.sketching.account import Account as Account
    from .operators.table.compaction import compact as compact
    from .operators.table.iceberg_statistics import write_iceberg_ndv as write_iceberg_ndv
    from .operators.table.query import query as query
    from .operators.table.sets import compare as compare
    from .operators.table.sketch_table import SketchTable as SketchTable
    from .operators.table.sketch_table import merge as merge
    from .operators.table.stored import read_table as read_table
    from .operators.testing import StreamTester as StreamTester
    from .operators.watching.logs import JsonFormatter as JsonFormatter
    from .operators.watching.logs import log_to as log_to
    from .queries.client import Client as Client
    from .queries.views.followed_groups import read_group as read_group
    from .sampling.bernoulli import BernoulliSample as BernoulliSample
    from .sampling.decayed import DecayedReservoir as DecayedReservoir
    from .sampling.decayed_count import DecayedCount as DecayedCount
    from .sampling.decayed_quantiles import DecayedQuantiles as DecayedQuantiles
    from .sampling.hash_sample import HashSample as HashSample
    from .sampling.reservoir import Reservoir as Reservoir
    from .sampling.sliding import SlidingWindowSample as SlidingWindowSample
    from .sampling.stratified import StratifiedReservoir as StratifiedReservoir
    from .sampling.weighted import WeightedReservoir as WeightedReservoir
    from .shared_runs import run_together as run_together
    from .shared_runs import start_together as start_together
    from .sketches.bloom import Bloom as Bloom
    from .sketches.count_min import CountMin as CountMin
    from .sketches.count_min import HeavyHitters as HeavyHitters
    from .sketches.ddsketch import DDSketch as DDSketch
    from .sketches.frequent_items import FrequentItems as FrequentItems
    from .sketches.hll import HLL as HLL
    from .sketches.kll import KLL as KLL
    from .sketches.req import REQ as REQ
    from .sketches.sliding_bloom import SlidingBloom as SlidingBloom
    from .sketches.sliding_hll import SlidingHLL as SlidingHLL
    from .sketches.tdigest import TDigest as TDigest
    from .sketches.theta import Theta as Theta
    from .sql_query import SqlStream as SqlStream
    from .sql_query import sql as sql
    from .stream import Stream as Stream

from .sketches.core.extras import naming_extras
from .sketches.core.version import VERSION

__version__ = VERSION

# The public modules besides this one.
_MODULES = ("errors", "formats", "rules", "spark", "stored")

# name → the module that defines it; imported on first use so that `import streamgauge` stays instant. The
# classes of families, and the aggregates that ask for them, come from the registry.
_EXPORTS: dict[str, str] = {
    "Account": ".operators.sketching.account",
    "Aggregate": ".operators.definition.aggregate",
    "Client": ".queries.client",
    "HeavyHitters": ".sketches.count_min",
    "Run": ".operators.consumer.run",
    "RunTogether": ".operators.consumer.shared_run",
    "SqlStream": ".sql_query",
    "Stream": ".stream",
    "SketchTable": ".operators.table.sketch_table",
    "StreamTester": ".operators.testing",
    "Summary": ".operators.consumer.summary",
    "JsonFormatter": ".operators.watching.logs",
    "LookupTable": ".operators.definition.tables",
    "AnswersToKafka": ".operators.sinks.answers_to_kafka",
    "SketchesToParquet": ".operators.sinks.sketches_to_parquet",
    "SketchesToKafka": ".operators.sinks.sketches_to_kafka",
    "access_log": ".operators.formats.text.access_log",
    "as_avro": ".operators.formats.avro.encode",
    "as_bytes": ".operators.formats.encode",
    "as_json": ".operators.formats.encode",
    "avro": ".operators.formats.avro.decoder",
    "compact": ".operators.table.compaction",
    "compare": ".operators.table.sets",
    "csv": ".operators.formats.text.csv",
    "field": ".operators.formats.json.fields",
    "json": ".operators.formats.json.decoder",
    "log_to": ".operators.watching.logs",
    "merge": ".operators.table.sketch_table",
    "protobuf": ".operators.formats.protobuf.decoder",
    "query": ".operators.table.query",
    "raw": ".operators.formats.text.plain",
    "read_group": ".queries.views.followed_groups",
    "read_table": ".operators.table.stored",
    "reset": ".operators.consumer.group.reset",
    "migrate": ".operators.consumer.migration",
    "run_together": ".shared_runs",
    "sql": ".sql_query",
    "start_together": ".shared_runs",
    "syslog": ".operators.formats.text.syslog",
    "text": ".operators.formats.text.plain",
    "write_iceberg_ndv": ".operators.table.iceberg_statistics",
}

# `from streamgauge import *` leaves Python's own names as they are; these must be imported by name.
_SHADOWING = ("csv", "json", "max", "min", "sum", "syslog")


if not TYPE_CHECKING:  # type checkers and editors are to know the names above, and no others

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            with naming_extras():
                return importlib.import_module(f".{name}", __name__)
        if name in _EXPORTS:
            return getattr(importlib.import_module(_EXPORTS[name], __name__), name)
        from .operators.families import FAMILIES

        if (line := FAMILIES.get(name)) is not None and not line.stored:
            from .operators.definition.aggregate_factory import aggregate_function

            return aggregate_function(name)
        for line in FAMILIES.values():
            if name == line.class_name and not line.exact and not line.stored:
                return line.sketch_class()
        if name == "__all__":
            return sorted(set(_names()) - set(_SHADOWING) - set(_MODULES))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _names() -> list[str]:
    from .operators.families import FAMILIES

    offered = [line for line in FAMILIES.values() if not line.stored]
    classes = (line.class_name for line in offered if not line.exact)
    return ["__version__", *_MODULES, *_EXPORTS, *(line.name for line in offered), *classes]


def __dir__() -> list[str]:
    return sorted(_names())
