"""Rules say the same on both engines, also those that act as time passes while no window closes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import StreamTester, count, rules
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.alert import Alert
from streamgauge.spark_udafs.streaming.alerts import AlertingSink
from streamgauge.spark_udafs.streaming.run import on_spark, write

from .test_windows import send, source_of
from .window_cases import DAY, Rows, windowed

PARTS: tuple[tuple[Rows, ...], ...] = (
    # The row at 400 opens a window and ends none with rows but those before, and time goes to 395.
    (((1, "a"), (2, "b"), (3, "b"), (31, "b"), (400, "c")), ((5, "a"), (400, "d"))),
    # "a" and "b" are back, and gone again with "c" and "d".
    (((410, "a"), (530, "b"), (900, "c")), ((520, "d"), (900, "d"))),
)
"""What comes to each partition before each look at the alerts."""
LATE: tuple[tuple[Rows, ...], ...] = (
    # The clock of "b" is behind; "c" comes back with what it had to say before.
    (((1, "a"), (2, "c"), (300, "a"), (100, "b"), (160, "b"), (410, "a")), ((5, "d"), (400, "d"))),
    (((700, "a"), (550, "b"), (50, "c"), (90, "c"), (20, "c"), (900, "a")), ((520, "d"), (900, "d"))),
)
"""The same with readings that come late for their windows."""


class Collected(list[Alert]):
    """An outlet that keeps alerts."""

    def begin(self) -> None:
        """See `WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `WritingOutlet`."""
        self.append(alert)


def alerting_to(outlet: Collected, kind: str) -> rules.Alerting:
    if kind in ("readings", "late"):
        # A reading's hold ends, and its event is unknown, while only other keys have readings.
        lasting = rules.Threshold("lasting", value="n", at_least=1, hold="90s", stale_after="6m")
        return rules.Alerting(
            [lasting, rules.Absence("gone", longer="2m")], [outlet], at="time", lateness="5m"
        )
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


def parts_of(kind: str) -> tuple[tuple[Rows, ...], ...]:
    return LATE if kind == "late" else PARTS


def said(alerts: Iterable[Alert]) -> list[str]:
    return sorted(str(alert) for alert in alerts)


def by_consumer(stream: Stream, kind: str) -> list[list[str]]:
    """What each part adds."""
    outlet, looks = Collected(), []
    tester = StreamTester(stream, partitions=2, sinks=[alerting_to(outlet, kind)])
    for part in parts_of(kind):
        for partition, rows in enumerate(rows_of(part)):
            tester.feed(rows, partition=partition)
        looks.append(said(outlet))
        outlet.clear()
    return looks


@pytest.mark.parametrize("kind", ["tumbling", "session", "readings"])
def test_the_consumers_rules_act_as_time_passes(kind: str) -> None:
    looks = by_consumer(stream_of(kind, "rows"), kind)
    for look, keys in zip(looks, ("ab", "abcd"), strict=True):
        assert "".join(sorted(alert.split(" ")[2] for alert in look if "longer than" in alert)) == keys


def test_what_a_reading_began_ends_as_time_passes() -> None:
    first, second = by_consumer(stream_of("readings", "rows"), "readings")
    lasting = [" ".join(alert.split(" ")[:4]) for alert in first + second if "lasting" in alert]
    assert [at for at in lasting if " a " in at] == [
        "2026-01-01T00:01:31+00:00 lasting a fired:",
        "2026-01-01T00:06:05+00:00 lasting a unknown:",
        "2026-01-01T00:06:50+00:00 lasting a fired:",  # its reading says that it lasts
        "2026-01-01T00:12:50+00:00 lasting a unknown:",
    ]


def test_late_readings_are_judged_in_the_order_of_their_key() -> None:
    looks = by_consumer(stream_of("late", "rows"), "late")
    own = [[alert for alert in look if " c " in alert] for look in looks]
    said = [[alert[14:19] + alert[25:].split(":")[0] for alert in look] for look in own]
    # It had readings at 0:02, 0:20, 0:50 and 1:30, of which the last three came long after.
    assert said == [
        ["01:32 lasting c fired", "02:02 gone c fired", "06:02 lasting c unknown"],
        [
            "02:02 gone c withdrawn",
            "03:30 gone c fired",
            "06:02 lasting c withdrawn",
            "07:30 lasting c unknown",
        ],
    ]


def stream_of(kind: str, topic: str, servers: str = "localhost:9092") -> Stream:
    rows = source_of(topic, servers)
    if kind in ("readings", "late"):
        rows = rows.with_columns(time=pl.from_epoch("at", time_unit="us"))
        windows = windowed("tumbling", rows.group_by("key", "time"))
        return replace(windows, keep_late=kind == "late").agg(n=count())
    return windowed(kind, rows.group_by("key")).agg(n=count())


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["tumbling", "readings", "late"])
def test_spark_says_the_same_at_the_same_looks(kind: str, spark: Any, kafka: Any, tmp_path: Path) -> None:
    topic = f"rules-{kind}"
    kafka.create_topic(topic, 2)
    stream = stream_of(kind, topic, kafka.bootstrap_servers)
    outlet, looks = Collected(), []
    sink = AlertingSink(stream, alerting_to(outlet, kind), tmp_path / "rules")
    for part in parts_of(kind):
        send(kafka, topic, rows_of(part))
        table = on_spark(stream, spark, dead_letters=None, close_at_end=False)
        running = write(table, tmp_path / "state", sink, available_now=True)
        assert running.awaitTermination(600)
        looks.append(said(outlet))
        outlet.clear()
    assert looks == by_consumer(stream, kind)
