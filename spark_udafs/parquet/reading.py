"""What is read of Parquet files, and the tasks of it, as Spark's data sources have them."""

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
    """Which files are read, which columns of them (in the types that `work` takes), and which rows."""

    files: tuple[str, ...]
    columns: pa.Schema
    where: ds.Expression | None
    work: Work
    out: pa.Schema


@dataclass(frozen=True)
class Pieces(InputPartition):
    """One task: row groups, and the schema of the dataset that they belong to."""

    pieces: tuple[Piece, ...]
    schema: pa.Schema


class ParquetReader(DataSourceReader):
    """Cuts the files into tasks, and reads one."""

    def __init__(self, reading: PlannedRead) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Tasks of row groups that may hold rows of interest; at least one, which may have none."""
        freeze_imports()
        reading = self._reading
        if not reading.files:
            return [Pieces((), reading.columns)]
        dataset = dataset_of(reading.files, reading.columns)
        cut = tasks(pieces(dataset, reading.where, reading.columns.names)) or [()]
        return [Pieces(part, dataset.schema) for part in cut]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: what is made of one task's rows."""
        assert isinstance(partition, Pieces)
        reading = self._reading

        def rows() -> Iterator[pa.RecordBatch]:
            for piece in partition.pieces:
                for batch in batches(piece, partition.schema, reading.columns.names, reading.where):
                    yield batch.cast(reading.columns)

        yield from reading.work(rows())
        freeze_imports()
