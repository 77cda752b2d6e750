"""``streamgauge-parquet``: tasks read row groups and hand Spark what is made of them."""

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
    """Parquet files, given to Spark as what a reading makes of them."""

    label = NAME
    reading: PlannedRead
    arriving: Arriving | None = None

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return cls.label

    def schema(self) -> StructType:
        """The columns that the reading gives."""
        freeze_imports()
        return from_arrow_schema(self.reading.out)

    # Spark calls both by the parameter's name.
    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        return ParquetReader(self.reading)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``, of files that arrive."""
        assert self.arriving is not None
        return ArrivingReader(self.reading, self.arriving)


def bound(reading: PlannedRead, arriving: Arriving | None = None) -> type[ParquetSource]:
    """A source for one reading, under a name of its own; it travels in the class, as `kafka.source.bound`."""
    label = f"{NAME}-{uuid.uuid4().hex[:8]}"
    members: dict[str, Any] = {"label": label, "reading": reading, "arriving": arriving}
    return type(ParquetSource.__name__, (ParquetSource,), members)
