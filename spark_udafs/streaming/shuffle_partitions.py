"""How many shuffle partitions a query of sketches gets if nobody chose a number."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

log = logging.getLogger("streamgauge.spark")

_PARTITIONS = "spark.sql.shuffle.partitions"
_DYNAMIC = "spark.dynamicAllocation.enabled"
_EACH = 2
"""Partitions for each core."""
_DEFAULT = 200
"""Spark's own number."""


@contextmanager
def few_partitions(spark: SparkSession) -> Iterator[None]:
    """Let queries that start meanwhile merge in two partitions per core, unless the session sets a number.

    Each partition is one or two tasks in every micro-batch, and a micro-batch of sketches has few rows. With
    Spark's default of 200, nearly all tasks are empty, and they take ten times as long as everything else.

    A query copies the session's settings when it starts, so other queries keep theirs, and a checkpoint keeps
    the number of its first run. The cores are those that have registered by then. Nothing is changed over
    Spark Connect, or if executors come and go, because the number of cores is unknown then.
    """
    partitions = _partitions(spark)
    if partitions is None:
        yield
        return
    log.info("the query merges in %d shuffle partitions; to choose, set %s", partitions, _PARTITIONS)
    spark.conf.set(_PARTITIONS, str(partitions))
    try:
        yield
    finally:
        spark.conf.unset(_PARTITIONS)


def _partitions(spark: Any) -> int | None:
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    settings = spark.conf.getAll
    if _PARTITIONS in settings or settings.get(_DYNAMIC) == "true":
        return None
    return min(_EACH * int(spark.sparkContext.defaultParallelism), _DEFAULT)
