"""Rules say the same on both engines, also those that act as time passes while no window closes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from streamgauge import StreamTester, count, rules
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.alert import Alert
from streamgauge.spark_udafs.streaming.alerts import AlertingSink
from streamgauge.spark_udafs.streaming.run import on_spark, write

from .test_windows import send, source_of
from .window_cases import DAY, Rows, windowed

WINDOWS = ("tumbling", "session")
PARTS: tuple[tuple[Rows, ...], ...] = (
    # The row at 400 opens a window and ends none with rows but those before, and time goes to 395.
    (((1, "a"), (2, "b"), (3, "b"), (31, "b"), (400, "c")), ((5, "a"), (400, "d"))),
    # "a" and "b" are back, and gone again with "c" and "d".
    (((410, "a"), (530, "b"), (900, "c")), ((520, "d"), (900, "d"))),
)
"""What comes to each partition before each look at the alerts."""


class Collected(list[Alert]):
    """An outlet that keeps alerts."""

    def begin(self) -> None:
        """See `WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `WritingOutlet`."""
        self.append(alert)


def alerting_to(outlet: Collected) -> rules.Alerting:
    return rules.Alerting(
        [
            rules.Absence("gone", longer="2m"),
            rules.Threshold("busy", value="n", at_least=2),
            rules.NewTerm("new", learn="1m"),
        ],
        [outlet],
    )


def rows_of(part: tuple[Rows, ...]) -> list[list[dict[str, Any]]]:
    return [[{"at": round((DAY + s) * 1e6), "case": 0, "key": key} for s, key in rows] for rows in part]


def said(alerts: Iterable[Alert]) -> list[str]:
    return sorted(str(alert) for alert in alerts)


def by_consumer(stream: Stream) -> list[list[str]]:
    """What each part adds."""
    outlet, looks = Collected(), []
    tester = StreamTester(stream, partitions=2, sinks=[alerting_to(outlet)])
    for part in PARTS:
        for partition, rows in enumerate(rows_of(part)):
            tester.feed(rows, partition=partition)
        looks.append(said(outlet))
        outlet.clear()
    return looks


@pytest.mark.parametrize("kind", WINDOWS)
def test_the_consumers_rules_act_as_time_passes(kind: str) -> None:
    looks = by_consumer(stream_of(kind, "rows"))
    for look, keys in zip(looks, ("ab", "abcd"), strict=True):
        assert "".join(sorted(alert.split(" ")[2] for alert in look if "longer than" in alert)) == keys


def stream_of(kind: str, topic: str, servers: str = "localhost:9092") -> Stream:
    return windowed(kind, source_of(topic, servers).group_by("key")).agg(n=count())


@pytest.mark.kafka
@pytest.mark.spark
def test_spark_says_the_same_at_the_same_looks(spark: Any, kafka: Any, tmp_path: Path) -> None:
    kind, topic = WINDOWS[0], "rules"
    kafka.create_topic(topic, 2)
    stream = stream_of(kind, topic, kafka.bootstrap_servers)
    outlet, looks = Collected(), []
    sink = AlertingSink(stream, alerting_to(outlet), tmp_path / "rules")
    for part in PARTS:
        send(kafka, topic, rows_of(part))
        table = on_spark(stream, spark, dead_letters=None, close_at_end=False)
        running = write(table, tmp_path / "state", sink, available_now=True)
        assert running.awaitTermination(600)
        looks.append(said(outlet))
        outlet.clear()
    assert looks == by_consumer(stream)
