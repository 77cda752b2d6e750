"""Random seeds for Spark's tasks."""

from __future__ import annotations

import zlib

from pyspark import TaskContext

_PLACES = "sql.streaming.queryId", "streaming.sql.batchId"


def seed_of_task(salt: int, number: int = 0) -> int:
    """Return a seed for this task, micro-batch and `number`; it is the same if Spark repeats the task.

    The driver draws `salt` at random: tomorrow's job numbers its tasks like today's, and samples drawn with
    the same seeds would not merge into a fair one.
    """
    task = TaskContext.get()
    if task is None:
        return zlib.crc32(repr((salt, number)).encode())
    properties = [task.getLocalProperty(place) or "" for place in _PLACES]
    return zlib.crc32(repr((*properties, salt, task.stageId(), task.partitionId(), number)).encode())
