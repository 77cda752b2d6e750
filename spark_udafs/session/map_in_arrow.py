"""The rows of a batch DataFrame through Python workers, in Arrow batches that are written whole.

`DataFrame.mapInArrow` measures after each row how many bytes its batch has come to, for the sake of
``spark.sql.execution.arrow.maxBytesPerBatch``, which costs several times what writing the row does: 0.8 µs of
a core for a row of four numbers, and 0.1 µs where Spark writes Arrow batches without asking, as it does to
collect a DataFrame. So it writes such batches, and Python reads them. What Python makes of them comes back
row by row, which is nothing where one row is made of many.

That needs an RDD of the rows, and gives one. Where it can't be had without running a job (after a shuffle,
which Spark plans again while it runs), in a stream, and over Spark Connect, `mapInArrow` takes the rows.
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
"""What a worker makes of the batches of one task."""

_ROWS, _ROWS_OF_TEXT = 1 << 15, 1 << 12
"""How many rows a batch has at most: of values of one size, and of texts, which may be long."""
_SIMPLE = (spark.NumericType, spark.BooleanType, spark.DatetimeType, spark.StringType)
"""What has no parts; those of a list, or a binary value, may be so long that bytes must be counted."""
_IN_MEMORY = "InMemoryTableScanExec"
_HEAD = 10_000
_NATIVE_GROUPS = 128
"""So many groups Catalyst keeps in a hash table; of more it sorts the rows."""
_ROWS_OF_GROUP = 1_000
"""From so many rows of a group in each task on, making partial sketches in Python is the quicker way."""


def through_workers(rows: DataFrame, work: Work, schema: pa.Schema) -> DataFrame:
    """What `work` makes of the rows, in a task of where they are; `schema` is that of its batches."""
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
    """Spark's RDD of the rows in Arrow batches; None where it takes other arguments, as in 4.1."""
    long = any(isinstance(kind, spark.StringType) for kind in _kinds(rows))
    try:
        return cast(Any, rows)._jdf.toArrowBatchRdd(_ROWS_OF_TEXT if long else _ROWS, "UTC", False, False)
    except Py4JJavaError:
        raise
    except Py4JError:  # there is no such method
        return None


def quicker_in_python(keys: DataFrame) -> bool:
    """Whether sketches by these keys, which Catalyst could make as well, are sooner made by Python workers.

    That is so of many rows in memory in hundreds or thousands of groups. How many there are is estimated by
    the first ten thousand rows; other DataFrames aren't looked at, since that might take long.
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
    """Whether batches of the rows can be had without a job, and are of a size that is known about."""
    return all(isinstance(kind, _SIMPLE) for kind in _kinds(rows)) and _scans(rows) is not None


def _kinds(rows: DataFrame) -> list[spark.DataType]:
    return [field.dataType for field in rows.schema]


def _scans(rows: DataFrame) -> list[Any] | None:
    """Where the rows come from in the plan; None where it isn't certain that to prepare it starts no job."""
    if rows.isStreaming or is_remote():
        return None
    return _leaves(cast(Any, rows)._jdf.queryExecution().executedPlan())


def _leaves(plan: Any) -> list[Any] | None:
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        # It plans again what has been shuffled, and so runs that; rows in memory it only looks up.
        nodes = _leaves(plan.initialPlan())
        return nodes if nodes and all(map(_in_memory, nodes)) else None
    # Observed metrics would never be reported: Spark looks for it in the plan of the query that has run.
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
    """Whether it reads rows that are cached already."""
    if scan.getClass().getSimpleName() != _IN_MEMORY:
        return False
    return bool(scan.relation().cacheBuilder().isCachedColumnBuffersLoaded())


def _long_enough(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Short batches joined, as what is done with one costs something for each."""
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
