"""A stream over an archive gives on Spark what it gives in one process; no broker takes part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import streamgauge as sg
from streamgauge.operators.archive.segment import SegmentWriter
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.formats.messages import Messages

pytestmark = pytest.mark.spark

_START_MS = 1_767_225_600_000


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """Two partitions in two files each, ten minutes; one row an hour ahead, one late, one broken message."""
    store = LocalStore(tmp_path)
    for partition in range(2):
        for first in (0, 400):
            times = [_START_MS + 750 * n + partition for n in range(first, first + 400)]
            values = [b'{"user":"u%d","at":%d}' % (n * 7 % 90, ms) for n, ms in enumerate(times)]
            values[7] = b"oops"
            values[9] = b'{"user":"early","at":%d}' % (times[9] + 3_700_000)
            values[390] = b'{"user":"late","at":%d}' % (times[390] - 200_000)
            writer = SegmentWriter("posts", partition, first)
            more: dict[str, Any] = {"topic": "posts", "partition": partition, "first_offset": first}
            writer.add(Messages.of(values, timestamps=times, **more))
            segment, data = writer.finish()
            assert store.create(segment.path, data)
    return str(tmp_path)


@pytest.mark.parametrize("windows", ["tumbling", "session"])
def test_both_engines_give_the_same_of_an_archive(spark: Any, archive: str, windows: str) -> None:
    value = sg.json({"user": pl.String, "at": pl.Int64})
    rows = sg.Stream.from_archive(archive, "posts", value=value, time=pl.from_epoch("at", time_unit="ms"))
    by_user = rows.group_by("user")
    windowed = (
        by_user.tumbling("1m", delay="5s") if windows == "tumbling" else by_user.session("20s", delay="5s")
    )
    stream = windowed.agg(posts=sg.count(), users=sg.distinct("user"))
    here = stream.run()
    assert (here.account.read, here.account.dead_lettered) == (1_600, 8)
    there = sg.spark.as_table(stream.on_spark(spark, streaming=False))
    keys = ["window_start", "user"]
    assert there.answers().sort(keys).equals(here.table.merge().answers().sort(keys))


def test_an_archive_is_no_endless_stream(spark: Any, archive: str) -> None:
    rows = sg.Stream.from_archive(archive, "posts", value=sg.json({"user": pl.String}))
    with pytest.raises(ValueError, match="reads an archive, which ends"):
        rows.tumbling("1m").agg(n=sg.count()).on_spark(spark, close_at_end=True)
