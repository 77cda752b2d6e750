"""Sketches as functions of a Spark session: one call registers them for SQL.

    register(spark)
    spark.sql("SELECT lang, answer_distinct(sketch_distinct(user)).estimate FROM posts GROUP BY lang")

A Python aggregate gets all rows of a group in one place, so `frames.sketch` is faster for large groups. Spark
accepts Python aggregates in groups and in OVER, but not in streams, beside its own aggregates or with FILTER.
Use `frames.sketch` for these; a note on Spark's error recommends it (`advice`).

Overlapping windows contain rows twice. If you roll such a table up in SQL, keep only windows that lie end to
end: for windows of two minutes, ``WHERE unix_micros(window_start) % 120000000 = 0``.
`operators.table.merge.merge` does this by itself.

Spark does not pass a string's collation to a function, so strings that differ but are equal under their
collation are counted separately. Pass ``lower(...)`` of them. `frames.sketch` sees the collation and refuses
such columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kafka.source import KafkaSketchSource
from ..parquet.readable import ParquetRows
from ..session.worker_interpreter import check_worker_python
from .advice import advise
from .catalogue import catalogue
from .columns import arrow_function
from .describing import describe
from .plan_merging import leave_apart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> list[str]:
    """Register this package's SQL functions and sources in a session; returns the functions' names.

    A name is a verb and the name of an aggregate, such as ``distinct`` or ``top_k``. Each answer has the
    error that the aggregate promises.

    - ``sketch_NAME(column)`` aggregates a column into a sketch (binary). An aggregate's further inputs follow
      the column, ``sketch_weighted_sample(item, weight)``, ``sketch_decayed_count(item, time)``, and then its
      parameters, by position or by name: ``sketch_distinct(user, lg_k => 11)``.
    - ``merge_NAME(sketch)`` aggregates sketches into one, ``union_NAME(one, other)`` unites two. Spark's own
      functions, such as ``hll_union_agg``, are faster for the sketches that they can merge.
    - ``answer_NAME(sketch)`` returns the answer with its bounds, as a struct; for quantiles of your choice,
      write ``answer_quantiles(sketch, 0.99)`` or ``array(0.5, 0.99)``, for more items ``(sketch, 20)``.
    - ``count_frequency(sketch, item)`` returns how often an item occurred,
      ``contains_membership(sketch, item)`` whether it may have occurred, and
      ``rank_quantiles(sketch, value)`` the share of values up to one.
    - ``intersect_``, ``subtract_`` and ``compare_distinct_set(one, other)`` are for sets.
      ``print_NAME(sketch)`` describes any sketch.
    - ``to_spark_frequency``, ``to_spark_top_k_string`` and ``from_spark_top_k`` convert sketches whose form
      in Spark differs; all other sketches that Spark has are the same bytes on both sides.

    The bytes of some families don't record the kind of their items. For these, the function's name does, as
    in Spark: ``answer_kll_quantiles_double``, ``_long`` (whole numbers, dates, and timestamps in microseconds
    since 1970) and ``_float``, ``answer_top_k_string`` and ``_long``, ``answer_var_opt_string``, ``_long``
    and ``_double``. The name without a kind raises `SketchError`, because an answer read as the wrong kind
    would still look like an answer. Items of samples are returned as text, or typed by ``answer_sample_long``
    and ``_double``.

    ``SHOW FUNCTIONS LIKE '*_distinct'`` finds them, and ``DESCRIBE FUNCTION EXTENDED sketch_distinct``
    describes one. A Spark Connect server accepts no descriptions; use ``help`` on the function of the same
    name in `streamgauge.spark.functions` there.

    Spark's rule that merges parts of a query without ``GROUP BY`` is disabled in the session
    (``spark.sql.optimizer.excludedRules``), because it fails if one of them has a Python aggregate.

    The sources are ``spark.readStream.format("streamgauge-kafka")``, which has the columns and options of
    Spark's own Kafka source but needs no jars; and ``"streamgauge-parquet"``, which reads rows of Parquet
    files, including newly arriving ones (`sketch_parquet` sketches them without the JVM).

    >>> import streamgauge as sg
    >>> names = sg.spark.register(spark)
    >>> rows = [("ann", "en"), ("bob", "en"), ("eve", "de")]
    >>> posts = spark.createDataFrame(rows, "user string, lang string")
    >>> posts.createOrReplaceTempView("posts")
    >>> spark.sql("SELECT answer_distinct(sketch_distinct(user)) users FROM posts WHERE lang = 'de'").first()
    Row(users=Row(estimate=1.0, lower=1.0, upper=1.0))
    """
    check_worker_python(spark)
    functions = catalogue()
    for name, function in functions.items():
        spark.udf.register(name, arrow_function(function))
    describe(spark, functions.values())
    advise()
    leave_apart(spark)
    for source in (KafkaSketchSource, ParquetRows):
        spark.dataSource.register(source)
    return list(functions)
