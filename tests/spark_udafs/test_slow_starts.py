"""What Spark gives up for a Python process that comes up too late begins again, and loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

from streamgauge.operators.definition import aggregates as ask
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.slow_starts import TRIES, patiently
from streamgauge.spark_udafs.streaming.run import write

SLOW = "Python worker failed to connect back."


class Failing:
    """A call that fails so often, and then gives a number."""

    def __init__(self, failures: int, reported: str = SLOW) -> None:
        self.failures, self.reported, self.calls = failures, reported, 0

    def __call__(self) -> int:
        self.calls += 1
        if self.calls <= self.failures:
            raise RuntimeError(self.reported)
        return self.calls


def test_it_is_tried_a_few_times_and_said_in_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    assert patiently("as_table", Failing(2)) == 3
    assert [record.getMessage()[:28] for record in caplog.records] == ["as_table: a Python process t"] * 2
    assert all("\n" not in record.getMessage() for record in caplog.records)
    for failing, calls in ((Failing(99), TRIES), (Failing(99, "the disk is full"), 1)):
        with pytest.raises(RuntimeError, match=failing.reported):
            patiently("as_table", failing)
        assert failing.calls == calls


class LateSource(DataSource):
    """Ten rows, from a reader that fails at its first start as if its process had come up too late."""

    @classmethod
    def name(cls) -> str:
        return "late-source"

    def schema(self) -> str:
        return "user int"

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
        return LateReader(self.options["marker"])


class LateReader(SimpleDataSourceStreamReader):
    """See `LateSource`."""

    def __init__(self, marker: str) -> None:
        self.marker = Path(marker)

    def initialOffset(self) -> dict[str, int]:
        if not self.marker.exists():
            self.marker.touch()
            raise RuntimeError(SLOW)
        return {"next": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        return iter([(n,) for n in range(start["next"], 10)]), {"next": 10}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[Any, ...]]:
        return self.read(start)[0]


@pytest.mark.slow
@pytest.mark.spark
def test_a_stream_whose_source_came_up_too_late_counts_all_once(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spark.dataSource.register(LateSource)
    rows = spark.readStream.format("late-source").option("marker", str(tmp_path / "marker")).load()
    given: list[pa.Table] = []
    query = write(
        sketch(rows).outputMode("update").agg(n=ask.count(), users=ask.distinct("user")),
        tmp_path / "checkpoint",
        lambda table, batch: given.append(table.to_arrow()),
        available_now=True,
    )
    query.awaitTermination()
    assert pa.concat_tables(given)["n"].to_pylist() == [10]
    assert sum("starting again" in record.getMessage() for record in caplog.records) == 1
