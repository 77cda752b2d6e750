"""Posts by language and minute, as a frame and as a table of sketches."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from streamgauge.operators.definition.aggregates import (
    count,
    distinct,
    last,
    mean,
    quantiles,
    sum,
    variance,
)
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

SOURCE = Stream.from_schema(
    {"at": pl.Datetime("us"), "lang": pl.String, "place": pl.Int64, "user": pl.Int64, "x": pl.Float64},
    time="at",
)
REQUESTED = {
    "posts": count(),
    "users": distinct("user"),
    "spread": quantiles("x"),
    "m": mean("x"),
    "total": sum("user"),
    "var": variance("x"),
    "end": last("user"),
}
STREAM = SOURCE.group_by("lang", "place").tumbling("10s", delay="1h").agg(**REQUESTED)


def frame(seed: int, n: int = 4_000) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "at": pl.Series(1_700_000_000_000_000 + random.integers(0, 180_000_000, n)).cast(
                pl.Datetime("us")
            ),
            "lang": pl.Series(random.choice(["en", "de", ""], n)).scatter([1, 2, 3], None),
            "place": random.integers(0, 3, n),
            "user": random.integers(0, 1_000, n),
            "x": random.normal(size=n),
        }
    )


def table(rows: pl.DataFrame, stream: Stream = STREAM) -> pa.Table:
    sketcher = Sketcher(stream)
    sketcher.add(rows, PartitionTime())
    return sketcher.drain()
