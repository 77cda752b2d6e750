"""The watermark that a streaming DataFrame has already, kept where its rows become sketches.

Spark moves a watermark where `withWatermark` stands in a plan, and marks the column of its times by metadata,
by which later steps know when windows are complete. A Python function's columns are new and lack that mark.
With the mark put back, state behind it follows the same watermark: rows may be deduplicated or joined within
it first, and tables of sketches may be merged behind it, all in one query.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

_DELAY = "spark.watermarkDelayMs"


def watermark_ms(field: StructField) -> int | None:
    """The delay of the watermark that a column carries, in milliseconds; None if it carries none."""
    delay = field.metadata.get(_DELAY)
    return None if delay is None else int(delay)


def with_watermark_of_rows(table: DataFrame, column: str, delay_ms: int) -> DataFrame:
    """The same rows, whose column of times carries the watermark of the rows that they were made of."""
    return table.withMetadata(column, {_DELAY: delay_ms})


def has_watermark(table: DataFrame) -> bool:
    """Whether a streaming DataFrame's plan moves a watermark.

    The mark alone doesn't say so: Parquet files keep it, and a schema read from them has it too.
    """
    shown = io.StringIO()
    with redirect_stdout(shown):
        table.explain(extended=True)
    return "EventTimeWatermark" in shown.getvalue()
