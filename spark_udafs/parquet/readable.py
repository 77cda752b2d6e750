"""The source ``streamgauge-parquet``: rows of Parquet files, including newly arriving files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..arrow_schemas import schema_in_arrow
from ..merge.column_codecs import spark_type
from .arriving import Arriving, ArrivingReader
from .files import dataset_of, files_of
from .reading import ParquetReader, PlannedRead
from .source import NAME

_KNOWN = ("path", "where", "log", "maxFilesPerTrigger")


class ParquetRows(DataSource):
    """The rows of a file or a folder, read in Python workers: the columns of the requested schema.

    Options: ``path``; ``where``, JSON conditions as in Arrow, ``[["site", "=", "north"]]``, which skip row
    groups by their statistics; and for streams ``log``, the folder that records which files were read, and
    ``maxFilesPerTrigger``.
    """

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return NAME

    def schema(self) -> StructType:
        """All columns of the files. Raises `ValueError` for wrong options."""
        self._check()
        if not (files := files_of(self.options["path"])):
            raise ValueError(
                f"{NAME}: {self.options['path']} has no files yet; name the columns with schema(...)"
            )
        schema = dataset_of(files, pa.schema([])).schema
        return from_arrow_schema(
            pa.schema([(field.name, spark_type(field.type, field.name)) for field in schema])
        )

    # Spark passes the argument of both by name.
    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``. Raises `ValueError` for wrong options."""
        self._check()
        return ParquetReader(self._reading(schema, tuple(files_of(self.options["path"]))))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``. Raises `ValueError` for wrong options or a missing log."""
        self._check()
        if "log" not in self.options:
            raise ValueError(
                f'{NAME}: a stream of new files needs .option("log", folder): it records which files were '
                "read; give each stream its own, beside its checkpoint"
            )
        most = self.options.get("maxFilesPerTrigger")
        arriving = Arriving(self.options["path"], self.options["log"], None if most is None else int(most))
        return ArrivingReader(self._reading(schema, ()), arriving)

    def _reading(self, schema: StructType, files: tuple[str, ...]) -> PlannedRead:
        columns = schema_in_arrow(schema)
        return PlannedRead(files, columns, _condition(self.options.get("where")), as_they_are, columns)

    def _check(self) -> None:
        known = {name.lower() for name in _KNOWN}
        if unknown := [name for name in self.options if name.lower() not in known]:
            raise ValueError(f"{NAME} has no option {', '.join(unknown)}; it has {', '.join(_KNOWN)}")
        if not self.options.get("path"):
            raise ValueError(f'{NAME} needs a path: .load("visits")')
        most = self.options.get("maxFilesPerTrigger")
        if most is not None and not (most.isdigit() and int(most)):
            raise ValueError(f"maxFilesPerTrigger must be an integer ≥ 1, got {most!r}")


def as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the files' rows unchanged."""
    yield from batches


def _condition(text: str | None) -> ds.Expression | None:
    """Parse the option ``where`` into an Arrow expression. Raises `ValueError`."""
    if text is None:
        return None
    try:
        given: Any = json.loads(text)
        return pq.filters_to_expression(
            [tuple(one) if _plain(one) else list(map(tuple, one)) for one in given]
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f'where is {text!r}, which is not a list of conditions such as [["site", "=", "north"]]: {error}'
        ) from None


def _plain(one: Any) -> bool:
    """Whether this is a single condition rather than a list of alternatives."""
    return bool(one) and isinstance(one[0], str)
