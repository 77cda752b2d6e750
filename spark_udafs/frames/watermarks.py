"""Keep a streaming DataFrame's own watermark when its rows become sketches.

Spark moves a watermark at the `withWatermark` step of a plan and marks the time column in its metadata, from
which later steps know when windows are complete. The columns that a Python function returns are new and lack
that mark. Once it is restored, later state follows the same watermark: one query can first deduplicate or
join rows within it, then sketch them, then merge the tables of sketches.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

_DELAY = "spark.watermarkDelayMs"


def watermark_ms(field: StructField) -> int | None:
    """Return the delay of a column's watermark in milliseconds; None if the column has no watermark."""
    delay = field.metadata.get(_DELAY)
    return None if delay is None else int(delay)


def with_watermark_of_rows(table: DataFrame, column: str, delay_ms: int) -> DataFrame:
    """Mark the time column `column` with the watermark of the rows from which the table was made."""
    return table.withMetadata(column, {_DELAY: delay_ms})


def has_watermark(table: DataFrame) -> bool:
    """Whether a streaming DataFrame's plan moves a watermark.

    The mark alone is no proof: Parquet files store it, so a schema read from them has it as well.
    """
    shown = io.StringIO()
    with redirect_stdout(shown):
        table.explain(extended=True)
    return "EventTimeWatermark" in shown.getvalue()
