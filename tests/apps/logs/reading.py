"""Recordings of logs through the app's own formats and rules, without a broker."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from streamgauge import Account, StreamTester
from streamgauge.apps.app import Feed, Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.logs.app import APP
from streamgauge.apps.logs.columns import COLUMNS
from streamgauge.operators.formats.messages import Messages
from streamgauge.rules import Alert, Alerting

FEED = Feed("t", "localhost:9092")


def job_of(path: Path, given: dict[str, str] | None = None) -> Job:
    return Job.of(APP, None, given or {}, recording=path)


def read(path: Path, given: dict[str, str] | None = None) -> tuple[str, pl.DataFrame, list[str]]:
    """A recording's format, its rows, and why its other messages are not rows."""
    job = job_of(path, given)
    stream = job.form.source(FEED, job.settings)
    result = list(job.form.messages(path, job.settings))
    messages = Messages.of([m.value for m in result], timestamps=[m.sent_ms or 0 for m in result])
    decoded = stream.reading.kafka_source.value.decode(messages)
    frame = stream.reading.transform(decoded.frame.lazy()).collect()
    assert dict(frame.select(*COLUMNS).schema) == COLUMNS
    return job.form.name, frame.select(*COLUMNS), decoded.reasons


def alerts_of(
    path: Path, part: str, given: dict[str, str] | None = None
) -> tuple[Account, list[Alert], pl.DataFrame]:
    """What a part of the app makes of a recording: its account, its alerts, its windows."""
    job = job_of(path, given)
    kept: list[Alert] = []
    alerting = job.alerting(next(one for one in job.parts if one.name == part), [Kept(kept)])
    sinks = [alerting] if isinstance(alerting, Alerting) else []
    tester = StreamTester(job.streams(FEED)[part], sinks=sinks, start=datetime.now(UTC))
    sent = stamped(list(job.form.messages(path, job.settings)))
    for low in range(0, len(sent), 500):
        some = sent[low : low + 500]
        tester.feed_messages([value for value, _ in some], timestamps=[at for _, at in some])
    return tester.finish().account, kept, tester.windows()


def stamped(messages: list[Message]) -> list[tuple[bytes, datetime]]:
    """Messages with their timestamps: one without a time was sent with the one before it."""
    result, latest = [], 0
    for message in messages:
        latest = max(latest, message.sent_ms or 0)
        result.append((message.value, datetime.fromtimestamp(latest / 1000, UTC)))
    return result


class Kept:
    """An outlet that keeps its alerts."""

    def __init__(self, alerts: list[Alert]) -> None:
        self.alerts = alerts

    def begin(self) -> None:
        pass

    def write(self, alert: Alert) -> None:
        self.alerts.append(alert)
