"""The account of a query, as its progress has it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from pyspark.sql import Row

from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watermarks.position import Position
from streamgauge.spark_udafs.kafka.offsets import Known, Offsets
from streamgauge.spark_udafs.streaming.run import account_of

NAMES = ("read", "counted", "filtered", "late", "dead_lettered")
END = Offsets("q", {("t", 0): 9}, {("t", 0): 5}, {("t", 0): Known(Position(5), Account(5, 4, 1))}).to_json()


def query(*observed: Row | None) -> Any:
    """A query whose micro-batches observed that."""
    described = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@52eb966d"
    sources = [
        {"endOffset": offset, "description": described} for offset in (None, "7", "{}", json.dumps(END))
    ]
    progress = [
        {"observedMetrics": {"streamgauge": row} if row else {}, "sources": sources} for row in observed
    ]
    return SimpleNamespace(recentProgress=progress)


def test_the_last_batch_that_observed_anything_counts() -> None:
    first, last = Row(*NAMES)(2, 2, 0, 0, 0), Row(*NAMES)(9, 6, 1, 1, 1)
    nothing = Row(*NAMES)(*[None] * 5)
    assert account_of(query(first, last, nothing)) == Account(9, 6, 1, 1, 1)
    # As Spark Connect gives it.
    schema = {"type": "struct", "fields": [{"name": name, "type": "long"} for name in NAMES]}
    nothing, last = (Row(values=values, schema=schema) for values in ([None] * 5, [9, 6, 1, 1, 1]))
    assert account_of(query(first, last, nothing)) == Account(9, 6, 1, 1, 1)


def test_a_query_started_again_knows_what_was_counted() -> None:
    assert account_of(query(None)) == Account(5, 4, 1)
    assert account_of(query()) == Account()
