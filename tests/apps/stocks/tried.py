"""An app's parts on a recording, without a broker: what was counted, the alerts, the tables.

Readings are waited for in one window of centuries, not in one of seconds each: that takes a tenth of the time
and gives the same, which the runs through a broker show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from streamgauge.apps.app import Feed, Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.jobs.outcome import AlertList, events
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.exact import with_exact
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.testing import StreamTester
from streamgauge.operators.windows.tumbling import Tumbling

CENTURIES = 10**16


class Tried(NamedTuple):
    """What came of it."""

    account: Account
    alerts: list[dict[str, Any]]
    tables: Mapping[str, pa.Table]
    refused: list[str]
    answers: Mapping[str, list[dict[str, Any]]]

    def of(self, rule: str) -> list[dict[str, Any]]:
        """The alerts of a rule."""
        return [alert for alert in self.alerts if alert["rule"] == rule]


def tried(
    path: Path,
    given: Mapping[str, str] | None = None,
    format: str | None = None,
    exactly: bool = False,
    parts: Iterable[str] | None = None,
) -> Tried:
    """`stocks` on a recording."""
    job = Job.of(app_of("stocks"), format, given, recording=path)
    messages = list(job.form.messages(path, job.settings))
    return fed(job, messages, exactly, parts)


def fed(
    job: Job, messages: list[Message], exactly: bool = False, parts: Iterable[str] | None = None
) -> Tried:
    """A job on messages."""
    streams = job.streams(Feed("stocks", "nowhere:9092"))
    by_key, tables, answers = AlertList(), {}, {}
    account, refused = Account(), []
    for part in job.parts:
        if parts is not None and part.name not in parts:
            continue
        alerting = job.alerting(part, [by_key])
        stream = streams[part.name]
        if part.at is not None:
            stream = replace(stream, window=Tumbling.of_length(CENTURIES))
        tester = StreamTester(stream, start=datetime.now(UTC), sinks=[] if alerting is None else [alerting])
        for low in range(0, len(messages), 5_000):
            some = messages[low : low + 5_000]
            now = datetime.now(UTC)
            sent = [now if m.sent_ms is None else datetime.fromtimestamp(m.sent_ms / 1000, UTC) for m in some]
            tester.feed_messages([m.value for m in some], [m.key for m in some], timestamps=sent)
        tables[part.name] = tester.finish().tables().to_arrow()
        if len(tables) == 1:
            account, refused = tester.account, [letter.reason for letter in tester.refused]
        if exactly and part.shown:
            answers[part.name] = part.derive(with_exact(streams[part.name], tables[part.name], messages))
    return Tried(account, events(by_key.alerts), tables, refused, answers)
