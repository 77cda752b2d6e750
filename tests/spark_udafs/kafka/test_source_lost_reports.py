"""Reports that workers commit beside offsets may be lost: ranges are read again then, and counted once."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import polars as pl
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.spark_udafs.kafka.source import KafkaStreamReader

from .planned import Query, account, rows

pytestmark = pytest.mark.kafka


@pytest.mark.slow
@pytest.mark.parametrize("close_at_end", ["true", "false"])
def test_the_account_is_the_same_though_reports_are_lost(
    close_at_end: str,
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = topic(3)
    # The partitions end at different times, so that the watermark at the end is ahead of some of them.
    for partition, minutes in enumerate((2, 6, 15)):
        frame = frame_of(partition, rows=150, minutes=minutes)
        send(name, json_of(pl.concat([frame, frame.head(20)])), partition=partition)

    def run() -> tuple[int, dict[str, int]]:
        query = sketches(name, closeAtEnd=close_at_end)
        query.reader.prepareForTriggerAvailableNow()
        counted, last = 0, {}
        while (batches := query.batch(ReadMaxRows(90))) is not None:
            counted, last = counted + rows(batches), account(batches)
        return counted, last

    counted, whole = run()
    assert counted == whole["counted"] > 0 and whole["late"] > 0
    reports = KafkaStreamReader._reports
    for seed in range(4):
        # Some are lost until all is read, and once more.
        lost = Random(seed).choices([True, False], k=6 * 3)

        def some(self: Any, group: str, places: Any, lost: list[bool] = lost) -> Any:
            there = reports(self, group, places)
            return {place: report for place, report in there.items() if not (lost and lost.pop())}

        monkeypatch.setattr(KafkaStreamReader, "_reports", some)
        assert run() == (counted, whole), seed
