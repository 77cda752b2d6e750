"""``streamgauge-parquet``: tasks read row groups, process them and return the results to Spark."""

from __future__ import annotations

import uuid
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..gc_freeze import freeze_imports
from .arriving import Arriving, ArrivingReader
from .reading import ParquetReader, PlannedRead

NAME = "streamgauge-parquet"


class ParquetSource(DataSource):
    """Parquet files as the results of a `PlannedRead`."""

    label = NAME
    reading: PlannedRead
    arriving: Arriving | None = None

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return cls.label

    def schema(self) -> StructType:
        """The columns that the read returns."""
        freeze_imports()
        return from_arrow_schema(self.reading.out)

    # Spark passes the argument of both by name.
    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        return ParquetReader(self.reading)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream`` on arriving files."""
        assert self.arriving is not None
        return ArrivingReader(self.reading, self.arriving)


def bound(reading: PlannedRead, arriving: Arriving | None = None) -> type[ParquetSource]:
    """Return a source for one read under its own name; the class carries the read (`kafka.source.bound`)."""
    label = f"{NAME}-{uuid.uuid4().hex[:8]}"
    members: dict[str, Any] = {"label": label, "reading": reading, "arriving": arriving}
    return type(ParquetSource.__name__, (ParquetSource,), members)
