"""Send the rows of a batch DataFrame through Python workers in whole Arrow batches.

`DataFrame.mapInArrow` measures the size of its batch after each row, because of
``spark.sql.execution.arrow.maxBytesPerBatch``. This costs several times as much as writing the row: 0.8 µs of
CPU time for a row of four numbers, against 0.1 µs when Spark writes Arrow batches without measuring, as it
does to collect a DataFrame. So this module has Spark write such batches, which Python reads. The results
come back row by row, which costs little if many rows become one.

This needs an RDD of the rows, and returns one. If that can't be created without running a job (after a
shuffle, because Spark replans while it runs), and for streams and Spark Connect, `mapInArrow` is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import polars as pl
import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from ..arrow_schemas import schema_in_arrow

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A worker's function over the batches of one task."""

_ROWS, _ROWS_OF_TEXT = 1 << 15, 1 << 12
"""The most rows in a batch: of fixed-size values, and of strings, which may be long."""
_SIMPLE = (spark.NumericType, spark.BooleanType, spark.DatetimeType, spark.StringType)
"""Types of bounded size; lists and binary values can be so long that bytes must be counted."""
_IN_MEMORY = "InMemoryTableScanExec"
_HEAD = 10_000
_NATIVE_GROUPS = 128
"""Up to this many groups, Catalyst uses a hash table; with more, it sorts the rows."""
_ROWS_OF_GROUP = 1_000
"""From this many rows per group and task on, partial sketches are faster in Python."""


def through_workers(rows: DataFrame, work: Work, schema: pa.Schema) -> DataFrame:
    """Apply `work` to the rows in the tasks that hold them; `schema` is the schema of its results."""
    columns = from_arrow_schema(schema)
    written = _batches_of(rows) if _written_whole(rows) else None
    if written is None:
        return rows.mapInArrow(work, columns)
    given = schema_in_arrow(rows.schema)
    session = cast(Any, rows.sparkSession)

    def made(batches: Iterable[bytes]) -> Iterator[tuple[Any, ...]]:
        read = (pa.ipc.read_record_batch(pa.py_buffer(batch), given) for batch in batches)
        for batch in work(_long_enough(read)):
            yield from zip(*(column.to_pylist() for column in batch.columns))

    batches: RDD[bytes] = RDD(written.toJavaRDD(), session.sparkContext, NoOpSerializer())
    return session.createDataFrame(batches.mapPartitions(made), columns, verifySchema=False)


def _batches_of(rows: DataFrame) -> Any:
    """Return Spark's RDD of the rows in Arrow batches; None if the method's arguments differ, as in 4.1."""
    long = any(isinstance(kind, spark.StringType) for kind in _kinds(rows))
    try:
        return cast(Any, rows)._jdf.toArrowBatchRdd(_ROWS_OF_TEXT if long else _ROWS, "UTC", False, False)
    except Py4JJavaError:
        raise
    except Py4JError:  # there is no such method
        return None


def quicker_in_python(keys: DataFrame) -> bool:
    """Whether Python workers make sketches by these keys faster than Catalyst, which could make them as well.

    They do for many cached rows in hundreds or thousands of groups. The number of groups is estimated from
    the first ten thousand rows; DataFrames that are not in memory are not sampled, which might take long.
    """
    scans = _scans(keys)
    if scans is None or len(scans) != 1 or not _in_memory(scans[0]):
        return False
    relation = scans[0].relation()
    rows = int(relation.computeStats().rowCount().get())
    tasks = relation.cacheBuilder().cachedColumnBuffers().getNumPartitions()
    most_groups = rows // max(tasks, 1) // _ROWS_OF_GROUP
    if most_groups <= _NATIVE_GROUPS:
        return False
    head = pl.from_arrow(keys.limit(_HEAD).toArrow())
    assert isinstance(head, pl.DataFrame)
    return _NATIVE_GROUPS < head.n_unique() <= most_groups


def _written_whole(rows: DataFrame) -> bool:
    """Whether batches of the rows are available without a job and of predictable size."""
    return all(isinstance(kind, _SIMPLE) for kind in _kinds(rows)) and _scans(rows) is not None


def _kinds(rows: DataFrame) -> list[spark.DataType]:
    return [field.dataType for field in rows.schema]


def _scans(rows: DataFrame) -> list[Any] | None:
    """Return the plan's leaves, which produce the rows; None if preparing the plan might start a job."""
    if rows.isStreaming or is_remote():
        return None
    return _leaves(cast(Any, rows)._jdf.queryExecution().executedPlan())


def _leaves(plan: Any) -> list[Any] | None:
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        # This node replans after a shuffle, and so runs it; it only looks up cached rows.
        nodes = _leaves(plan.initialPlan())
        return nodes if nodes and all(map(_in_memory, nodes)) else None
    # Observed metrics would get lost, because Spark looks for this node in the plan of the query that ran.
    if "Exchange" in kind or kind == "CollectMetricsExec" or not plan.subqueries().isEmpty():
        return None
    if kind == _IN_MEMORY and not _in_memory(plan):
        return None if _leaves(plan.relation().cachedPlan()) is None else [plan]
    children = plan.children()
    below = [_leaves(children.apply(at)) for at in range(children.size())]
    if any(leaves is None for leaves in below):
        return None
    return [leaf for leaves in below for leaf in leaves or ()] or [plan]


def _in_memory(scan: Any) -> bool:
    """Whether the scan reads rows that are already cached."""
    if scan.getClass().getSimpleName() != _IN_MEMORY:
        return False
    return bool(scan.relation().cacheBuilder().isCachedColumnBuffersLoaded())


def _long_enough(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join short batches, because processing has a fixed cost per batch."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= _ROWS:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
