"""Approximate analytics for streams that never end.

How many different, which are the most frequent, how are they spread, show me a fair sample: answered in
bounded memory, with stated error bounds, on Spark and straight off Kafka.

    Stream, json, count, distinct, …    say what is asked of a topic; run(), start() and on_spark() count it
    run_together, start_together        run several streams in one process, with one reading
    StreamTester                        tries a stream out with no broker
    query, merge, compare, is_final     ask tables of sketches; read_table and compact are for stored ones
    Client                              asks a query server
    session, write, sketch, register    are for Spark; so are sketch_parquet and rollup
    HLL, KLL, FrequentItems, …          are the sketches by themselves

Everything public is importable from here; nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .operators.consumer.group.reset import GroupInUse as GroupInUse
    from .operators.consumer.group.reset import reset as reset
    from .operators.consumer.merge.limits import StateLimitError as StateLimitError
    from .operators.consumer.run import Run as Run
    from .operators.consumer.summary import Summary as Summary
    from .operators.consumer.together import RunTogether as RunTogether
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
    from .operators.definition.aggregates import stratified_sample as stratified_sample
    from .operators.definition.aggregates import sum as sum
    from .operators.definition.aggregates import top_k as top_k
    from .operators.definition.aggregates import variance as variance
    from .operators.definition.aggregates import weighted_sample as weighted_sample
    from .operators.definition.aggregates_stored import classic_quantiles as classic_quantiles
    from .operators.definition.aggregates_stored import cpc as cpc
    from .operators.definition.aggregates_stored import req as req
    from .operators.definition.aggregates_stored import tdigest as tdigest
    from .operators.definition.aggregates_stored import tuple as tuple
    from .operators.definition.aggregates_stored import var_opt as var_opt
    from .operators.definition.tables import Table as Table
    from .operators.formats.access_log import access_log as access_log
    from .operators.formats.avro import avro as avro
    from .operators.formats.csv import csv as csv
    from .operators.formats.decode import Decoded as Decoded
    from .operators.formats.decode import Decoder as Decoder
    from .operators.formats.encode import Encoder as Encoder
    from .operators.formats.encode import as_bytes as as_bytes
    from .operators.formats.encode import as_json as as_json
    from .operators.formats.encode_avro import as_avro as as_avro
    from .operators.formats.json import json as json
    from .operators.formats.json_fields import field as field
    from .operators.formats.messages import Messages as Messages
    from .operators.formats.protobuf import protobuf as protobuf
    from .operators.formats.syslog import syslog as syslog
    from .operators.formats.text import raw as raw
    from .operators.formats.text import text as text
    from .operators.formats.unavailable import Unavailable as Unavailable
    from .operators.rules.absence import Absence as Absence
    from .operators.rules.absence import Flatline as Flatline
    from .operators.rules.alert import Alert as Alert
    from .operators.rules.alerting import Alerting as Alerting
    from .operators.rules.beyond import Beyond as Beyond
    from .operators.rules.burst import Burst as Burst
    from .operators.rules.change import Change as Change
    from .operators.rules.new_term import NewTerm as NewTerm
    from .operators.rules.rolling_sum import RollingSum as RollingSum
    from .operators.rules.sta_lta import StaLta as StaLta
    from .operators.rules.threshold import Ratio as Ratio
    from .operators.rules.threshold import Threshold as Threshold
    from .operators.rules.to_output import AlertFile as AlertFile
    from .operators.rules.to_output import AlertOutput as AlertOutput
    from .operators.rules.to_topic import AlertTopic as AlertTopic
    from .operators.rules.to_topic import CommandTopic as CommandTopic
    from .operators.rules.to_webhook import AlertWebhook as AlertWebhook
    from .operators.rules.written import read_rules as read_rules
    from .operators.serving.http.client import Client as Client
    from .operators.sinks.sink import SinkError as SinkError
    from .operators.sinks.to_kafka import ToKafka as ToKafka
    from .operators.sinks.to_parquet import ToParquet as ToParquet
    from .operators.sinks.to_table import ToTable as ToTable
    from .operators.sketching.accounting import Account as Account
    from .operators.table.compaction import compact as compact
    from .operators.table.final import is_final as is_final
    from .operators.table.merge import merge as merge
    from .operators.table.query import query as query
    from .operators.table.sets import compare as compare
    from .operators.table.stored import read_table as read_table
    from .operators.testing import StreamTester as StreamTester
    from .operators.watching.logs import log_to as log_to
    from .sampling.bernoulli import BernoulliSample as BernoulliSample
    from .sampling.decayed import DecayedReservoir as DecayedReservoir
    from .sampling.decayed_count import DecayedCount as DecayedCount
    from .sampling.decayed_quantiles import DecayedQuantiles as DecayedQuantiles
    from .sampling.hash_sample import HashSample as HashSample
    from .sampling.reservoir import Reservoir as Reservoir
    from .sampling.sliding import SlidingWindowSample as SlidingWindowSample
    from .sampling.stratified import StratifiedReservoir as StratifiedReservoir
    from .sampling.weighted import WeightedReservoir as WeightedReservoir
    from .sketches.bloom import Bloom as Bloom
    from .sketches.core.protocol import SketchError as SketchError
    from .sketches.count_min import CountMin as CountMin
    from .sketches.count_min import HeavyHitters as HeavyHitters
    from .sketches.ddsketch import DDSketch as DDSketch
    from .sketches.frequent_items import FrequentItems as FrequentItems
    from .sketches.hll import HLL as HLL
    from .sketches.kll import KLL as KLL
    from .sketches.sliding_hll import SlidingHLL as SlidingHLL
    from .sketches.stored.classic_quantiles import ClassicQuantiles as ClassicQuantiles
    from .sketches.stored.cpc import CPC as CPC
    from .sketches.stored.req import REQ as REQ
    from .sketches.stored.tdigest import TDigest as TDigest
    from .sketches.stored.var_opt import VarOpt as VarOpt
    from .sketches.theta import Theta as Theta
    from .sketches.theta import Tuple as Tuple
    from .spark_udafs.frames import sketch as sketch
    from .spark_udafs.functions.registering import register as register
    from .spark_udafs.parquet.sketching import sketch_parquet as sketch_parquet
    from .spark_udafs.rollup import rollup as rollup
    from .spark_udafs.run import account_of as account_of
    from .spark_udafs.run import write as write
    from .spark_udafs.session import session as session
    from .spark_udafs.sinks import ConsoleSink as ConsoleSink
    from .spark_udafs.sinks import KafkaSink as KafkaSink
    from .spark_udafs.sinks import ParquetSink as ParquetSink
    from .spark_udafs.table_sink import TableSink as TableSink
    from .spark_udafs.tables import as_frame as as_frame
    from .spark_udafs.tables import as_table as as_table
    from .spark_udafs.tables import with_definitions as with_definitions
    from .spark_udafs.windows import window as window
    from .stream import Stream as Stream
    from .together import run_together as run_together
    from .together import start_together as start_together

__version__ = "0.1.0"

# name → the module that defines it; imported on first use so that `import streamgauge` stays instant. The
# classes of families, and the aggregates that ask for them, come from the registry.
_EXPORTS: dict[str, str] = {
    "Absence": ".operators.rules.absence",
    "Account": ".operators.sketching.accounting",
    "Aggregate": ".operators.definition.aggregate",
    "Alert": ".operators.rules.alert",
    "AlertFile": ".operators.rules.to_output",
    "AlertOutput": ".operators.rules.to_output",
    "AlertTopic": ".operators.rules.to_topic",
    "AlertWebhook": ".operators.rules.to_webhook",
    "Alerting": ".operators.rules.alerting",
    "Beyond": ".operators.rules.beyond",
    "Burst": ".operators.rules.burst",
    "Change": ".operators.rules.change",
    "Client": ".operators.serving.http.client",
    "CommandTopic": ".operators.rules.to_topic",
    "ConsoleSink": ".spark_udafs.sinks",
    "Decoded": ".operators.formats.decode",
    "Decoder": ".operators.formats.decode",
    "Flatline": ".operators.rules.absence",
    "GroupInUse": ".operators.consumer.group.reset",
    "HeavyHitters": ".sketches.count_min",
    "KafkaSink": ".spark_udafs.sinks",
    "Encoder": ".operators.formats.encode",
    "Messages": ".operators.formats.messages",
    "NewTerm": ".operators.rules.new_term",
    "StaLta": ".operators.rules.sta_lta",
    "ParquetSink": ".spark_udafs.sinks",
    "Ratio": ".operators.rules.threshold",
    "Run": ".operators.consumer.run",
    "RunTogether": ".operators.consumer.together",
    "SinkError": ".operators.sinks.sink",
    "StateLimitError": ".operators.consumer.merge.limits",
    "SketchError": ".sketches.core.protocol",
    "Stream": ".stream",
    "StreamTester": ".operators.testing",
    "Summary": ".operators.consumer.summary",
    "Table": ".operators.definition.tables",
    "TableSink": ".spark_udafs.table_sink",
    "Threshold": ".operators.rules.threshold",
    "RollingSum": ".operators.rules.rolling_sum",
    "ToKafka": ".operators.sinks.to_kafka",
    "ToParquet": ".operators.sinks.to_parquet",
    "ToTable": ".operators.sinks.to_table",
    "Unavailable": ".operators.formats.unavailable",
    "access_log": ".operators.formats.access_log",
    "account_of": ".spark_udafs.run",
    "as_avro": ".operators.formats.encode_avro",
    "as_bytes": ".operators.formats.encode",
    "as_frame": ".spark_udafs.tables",
    "as_json": ".operators.formats.encode",
    "as_table": ".spark_udafs.tables",
    "avro": ".operators.formats.avro",
    "compact": ".operators.table.compaction",
    "compare": ".operators.table.sets",
    "csv": ".operators.formats.csv",
    "field": ".operators.formats.json_fields",
    "json": ".operators.formats.json",
    "log_to": ".operators.watching.logs",
    "is_final": ".operators.table.final",
    "merge": ".operators.table.merge",
    "protobuf": ".operators.formats.protobuf",
    "query": ".operators.table.query",
    "raw": ".operators.formats.text",
    "read_rules": ".operators.rules.written",
    "read_table": ".operators.table.stored",
    "register": ".spark_udafs.functions.registering",
    "reset": ".operators.consumer.group.reset",
    "rollup": ".spark_udafs.rollup",
    "run_together": ".together",
    "session": ".spark_udafs.session",
    "sketch": ".spark_udafs.frames",
    "sketch_parquet": ".spark_udafs.parquet.sketching",
    "start_together": ".together",
    "syslog": ".operators.formats.syslog",
    "text": ".operators.formats.text",
    "window": ".spark_udafs.windows",
    "with_definitions": ".spark_udafs.tables",
    "write": ".spark_udafs.run",
}

# `from streamgauge import *` leaves Python's own names as they are; these must be imported by name.
_SHADOWING = ("csv", "json", "max", "min", "sum", "syslog", "tuple")


if not TYPE_CHECKING:  # type checkers and editors are to know the names above, and no others

    def __getattr__(name: str) -> Any:
        if name in _EXPORTS:
            return getattr(importlib.import_module(_EXPORTS[name], __name__), name)
        from .operators.families import FAMILIES

        if name in FAMILIES:
            from .operators.definition.asking import asking

            return asking(name)
        for line in FAMILIES.values():
            if name == line.class_name and not line.exact:
                return line.sketch_class()
        if name == "__all__":
            return sorted(set(_names()) - set(_SHADOWING) - _not_here())
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _names() -> list[str]:
    from .operators.families import FAMILIES

    classes = (line.class_name for line in FAMILIES.values() if not line.exact)
    return ["__version__", *_EXPORTS, *FAMILIES, *classes]


def _not_here() -> set[str]:
    """What needs an extra that isn't installed: `from streamgauge import *` leaves it out."""
    spark = {name for name, place in _EXPORTS.items() if place.startswith(".spark_udafs.")}
    return set() if find_spec("pyspark") else spark


def __dir__() -> list[str]:
    return sorted(_names())
