"""Offsets as Spark logs them, and what is decided from them."""

from __future__ import annotations

import json

import pytest

from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.watermarks.position import Position
from streamgauge.operators.windows.tumbling import Tumbling
from streamgauge.operators.windows.window import EARLIEST
from streamgauge.spark_udafs.kafka.cluster import Report, read_report, report
from streamgauge.spark_udafs.kafka.offsets import Known, Offsets, last_window_end, share

MINUTE = 60_000_000


def known(*seen_us: int) -> dict[tuple[str, int], Known]:
    return {
        ("t", partition): Known(Position(0, PartitionTime(seen))) for partition, seen in enumerate(seen_us)
    }


def test_offsets_survive_spark_s_log() -> None:
    offsets = Offsets(
        "q",
        {("b", 10): 3, ("a", 2): 2**40, ("b", 9): 0},
        {("a", 2): 7},
        {("a", 2): Known(Position(7, PartitionTime(-5, 12, 3)), Account(9, 4, 3, 1, 1))},
        watermark_us=123_456_789,
        topics={"a": "kK6J", "b": "g9Xs"},
        definition="eJw=",
        clock_us=987_654_321,
    )
    logged = json.dumps(offsets.to_json())
    assert Offsets.from_json(json.loads(logged)) == offsets
    assert json.dumps(json.loads(logged)) == logged
    assert list(json.loads(logged)["offsets"]["b"]) == ["9", "10"]


@pytest.mark.parametrize("other", [{}, {"posts": {"0": 5}}, {"query": "q", "offsets": {"t": {"x": 1}}}, []])
def test_the_checkpoint_of_another_source_is_refused(other: object) -> None:
    with pytest.raises(ValueError, match="give the query a checkpoint folder of its own"):
        Offsets.from_json(other)


def test_what_workers_report_comes_back_and_nothing_else_does() -> None:
    result = Report("q", Known(Position(7, PartitionTime(8, 9, 20, 1, 10, 10)), Account(5, 1, 1, 1, 2)))
    assert read_report(report(result)) == result
    for text in (None, "", "{}", "[1]", "no json", '{"known":[1]}'):
        assert read_report(text) is None


def test_a_batch_is_shared_in_proportion_and_nobody_starves() -> None:
    begin = {("t", p): 100 for p in range(4)}
    ends = {("t", 0): 1_000_100, ("t", 1): 500_100, ("t", 2): 101, ("t", 3): 100}
    assert share(begin, ends, 10**9) == ends
    assert share(begin, ends, 3_000) == {("t", 0): 2_099, ("t", 1): 1_099, ("t", 2): 101, ("t", 3): 100}


def test_windows_that_were_closed_stay_so_for_every_partition() -> None:
    one = Known(Position(7, PartitionTime(8, 9)))
    assert one.floored(9) is one
    assert one.floored(10) == Known(Position(7, PartitionTime(8, 10)))


def test_the_last_window_with_a_row() -> None:
    window = Tumbling.every("1m")
    assert last_window_end(known(3 * MINUTE, 90_000_000, EARLIEST), window) == 4 * MINUTE
    assert last_window_end(known(EARLIEST), window) == EARLIEST
