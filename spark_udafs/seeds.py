"""Seeds for what is drawn in Spark's tasks."""

from __future__ import annotations

import zlib

from pyspark import TaskContext

_PLACES = "sql.streaming.queryId", "streaming.sql.batchId"


def seed_of_task(salt: int, number: int = 0) -> int:
    """A seed of this task and micro-batch: the same where Spark repeats it; each `number` has its own.

    `salt` is drawn on the driver: the tasks of tomorrow's job have the numbers of today's, and samples that
    were drawn alike would not merge into a fair one.
    """
    task = TaskContext.get()
    if task is None:
        return zlib.crc32(repr((salt, number)).encode())
    properties = [task.getLocalProperty(place) or "" for place in _PLACES]
    return zlib.crc32(repr((*properties, salt, task.stageId(), task.partitionId(), number)).encode())
