"""The Spark interface: sessions, DataFrames into tables of sketches, sinks, and SQL.

    import streamgauge as sg

    spark = sg.spark.session()
    windows = stream.on_spark(spark)                       # from a stream, or from any DataFrame:
    windows = sg.spark.sketch(posts).groupBy("lang").agg(users=sg.distinct("user"))
    sg.spark.write(windows, "checkpoint", sg.spark.SketchesToParquet("posts")).awaitTermination()

| for | names |
|---|---|
| sessions, SQL functions and sources | `session`, `register`; `streamgauge.spark.functions` for columns |
| tables of sketches | `sketch`, `sketch_parquet`, `window`, `rollup`, `with_definitions` |
| Spark and Arrow | `as_table`, `as_frame` |
| queries | `write`, which returns a `Running`; `account_of` |
| queries of several streams | `write_together`, `accounts_of` |
| sinks for sketches | `SketchesToParquet`, `SketchesToKafka`, `SketchesToTable` |
| sinks for answers and alerts | `AnswersToConsole`, `AlertingSink` |
| your own sink | a function of a table of sketches and its `Batch` |

It needs PySpark, which the extra ``spark`` installs.
"""

from ..spark_udafs.frames.frames import Sketching, sketch
from ..spark_udafs.frames.misplaced_aggregates import refuse_in_spark
from ..spark_udafs.frames.rollup import rollup
from ..spark_udafs.frames.tables import as_frame, as_table, with_definitions
from ..spark_udafs.frames.windows import Sessions, Windows, window
from ..spark_udafs.functions.registering import register
from ..spark_udafs.parquet.sketching import sketch_parquet
from ..spark_udafs.session.session import PackedEnvironmentError, session
from ..spark_udafs.streaming.alerts import AlertingSink
from ..spark_udafs.streaming.query_handle import DamagedState, QueryFailed, Running
from ..spark_udafs.streaming.run import account_of, write
from ..spark_udafs.streaming.shared_query import accounts_of, write_together
from ..spark_udafs.streaming.sinks import AnswersToConsole, Batch, SketchesToKafka, SketchesToParquet
from ..spark_udafs.streaming.table_sink import SketchesToTable

refuse_in_spark()

__all__ = [
    "AlertingSink",
    "AnswersToConsole",
    "Batch",
    "DamagedState",
    "PackedEnvironmentError",
    "QueryFailed",
    "Running",
    "Sessions",
    "SketchesToKafka",
    "SketchesToParquet",
    "SketchesToTable",
    "Sketching",
    "Windows",
    "account_of",
    "accounts_of",
    "as_frame",
    "as_table",
    "register",
    "rollup",
    "session",
    "sketch",
    "sketch_parquet",
    "window",
    "with_definitions",
    "write",
    "write_together",
]
