"""A planned read of Parquet files and its tasks, for Spark's data sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..gc_freeze import freeze_imports
from ..session.map_in_arrow import Work
from .files import Piece, batches, dataset_of, pieces, tasks


@dataclass(frozen=True)
class PlannedRead:
    """The files, columns (in the types that `work` accepts) and rows to read."""

    files: tuple[str, ...]
    columns: pa.Schema
    where: ds.Expression | None
    work: Work
    out: pa.Schema


@dataclass(frozen=True)
class Pieces(InputPartition):
    """One task: row groups, and the schema of their dataset."""

    pieces: tuple[Piece, ...]
    schema: pa.Schema


class ParquetReader(DataSourceReader):
    """Splits the files into tasks, and reads them."""

    def __init__(self, reading: PlannedRead) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Return tasks for row groups that may contain matching rows; at least one, which may be empty."""
        freeze_imports()
        reading = self._reading
        if not reading.files:
            return [Pieces((), reading.columns)]
        dataset = dataset_of(reading.files, reading.columns)
        cut = tasks(pieces(dataset, reading.where, reading.columns.names)) or [()]
        return [Pieces(part, dataset.schema) for part in cut]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: read one task's rows and yield the results."""
        assert isinstance(partition, Pieces)
        reading = self._reading

        def rows() -> Iterator[pa.RecordBatch]:
            for piece in partition.pieces:
                for batch in batches(piece, partition.schema, reading.columns.names, reading.where):
                    yield batch.cast(reading.columns)

        yield from reading.work(rows())
        freeze_imports()
