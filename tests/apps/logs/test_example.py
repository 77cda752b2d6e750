"""The made-up server of demos: what happens on it follows from the current time."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import takewhile

from streamgauge import StreamTester
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.logs.app import APP
from streamgauge.apps.logs.example import EXAMPLE
from streamgauge.rules import Alert, Alerting

from .reading import FEED, Kept

NOW_MS = 1_767_225_600_000


def test_all_that_happens_is_reported_by_now() -> None:
    job = Job.of(APP, EXAMPLE.format, EXAMPLE.settings)
    sent = list(takewhile(lambda one: (one.sent_ms or 0) < NOW_MS, EXAMPLE.messages(3, NOW_MS)))
    stamps = [datetime.fromtimestamp((one.sent_ms or 0) / 1000, UTC) for one in sent]
    collected: list[Alert] = []
    for part in job.parts:
        alerting = job.alerting(part, [Kept(collected)])
        sinks = [alerting] if isinstance(alerting, Alerting) else []
        tester = StreamTester(job.streams(FEED)[part.name], sinks=sinks, start=datetime.now(UTC))
        account = tester.feed_messages([one.value for one in sent], timestamps=stamps)
        assert account.counted + account.filtered == len(sent)
    fired = [(alert.rule, alert.plain_key) for alert in collected if alert.state == "fired"]
    assert sorted(fired, key=str) == sorted(EXAMPLE.events, key=str)
