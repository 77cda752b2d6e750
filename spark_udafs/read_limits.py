"""Limits on how much a micro-batch of a Python source reads, which PySpark has from 4.2 on.

Spark 4.1 doesn't tell a Python source from which offset a query resumes, so our sources can't stream there.
Batches, tables, sinks, SQL and streaming DataFrames don't depend on this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark

from .requires_pyspark import SparkTooOldError

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )
    except ModuleNotFoundError:
        ReadLimit = type("ReadLimit", (), {})
        ReadAllAvailable = type("ReadAllAvailable", (ReadLimit,), {})
        ReadMaxRows = type("ReadMaxRows", (ReadLimit,), {})
        SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

__all__ = [
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SparkTooOldError",
    "SupportsTriggerAvailableNow",
    "need_limits",
]


def need_limits(source: str) -> None:
    """Raise `SparkTooOldError` if this version of Spark can't use a Python source as a stream."""
    if ReadLimit.__module__ == __name__:
        raise SparkTooOldError(
            f"a stream of {source} needs PySpark 4.2 or newer, and this is {pyspark.__version__}: older "
            "ones don't tell a source where a query resumes. Batches work: spark.read, "
            "on_spark(streaming=False)"
        )
