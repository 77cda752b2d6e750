"""Outlets to people on Spark: what waits is in the query's folder, and is sent once over micro-batches."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from streamgauge import SketchTable, StreamTester
from streamgauge.rules import Alerting, Threshold

from ..operators.rules.notifications.test_outlet_queue import Outlet, complete
from ..operators.rules.plain import NOON, WINDOWS, row
from ..waiting import until

pytest.importorskip("pyspark")

from streamgauge.spark_udafs.alerts import AlertingSink
from streamgauge.spark_udafs.sinks import Batch

RULES = [Threshold("hot", value="value", above=30)]


def windows(minute: int, key: str) -> SketchTable:
    tester = StreamTester(WINDOWS, start=NOON + timedelta(days=1))
    tester.feed([row(minute, key, 31.0)])
    return tester.finish().tables()


def test_what_waits_is_sent_once_over_micro_batches_and_runs(tmp_path: Path) -> None:
    outlet = Outlet(group_by=None)
    outlet.gate.clear()
    sink = AlertingSink(WINDOWS, Alerting(RULES, to=[outlet]), tmp_path)
    sink(windows(0, "a"), Batch(query="q", number=0))
    until(outlet.waits.is_set)
    outlet.gate.set()
    assert complete(outlet) == {"sent": 1}
    # The memory that this one begins with was written while the alert waited.
    outlet.gate.clear()
    sink(windows(1, "b"), Batch(query="q", number=1))
    outlet.gate.set()
    assert complete(outlet) == {"sent": 2} and outlet.keys == [["a"], ["b"]]
    outlet.gate.clear()
    sink(windows(2, "c"), Batch(query="q", number=2))
    second = Outlet(group_by=None)
    again = AlertingSink(WINDOWS, Alerting(RULES, to=[second]), tmp_path)
    again(windows(3, "d"), Batch(query="q", number=3))
    assert complete(second) == {"sent": 2}
    assert [key for keys in second.keys for key in keys] == ["c", "d"]
    outlet.gate.set()
