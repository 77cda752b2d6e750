"""A part of the app over messages, its rules as they come."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.jobs.outcome import AlertList
from streamgauge.apps.registry import app_of
from streamgauge.rules import Alert

MINUTE = timedelta(minutes=1)
_NUMBERS = itertools.count()


def post(at: datetime, author: str, text: str = "", *tags: str, **more: Any) -> dict[str, Any]:
    reported = {"id": f"{author}/{next(_NUMBERS)}", "kind": "post", "author": author, "lang": "en"}
    return {**reported, "created_at": at.isoformat(), "text": text, "tags": tags, **more}


def ran(
    part: str,
    values: Sequence[Any],
    form: str = "posts",
    given: Mapping[str, str] | None = None,
    dead_letters: int = 0,
) -> tuple[StreamTester, list[Alert]]:
    """A part of the app over messages, its rules as they come."""
    job = Job.of(app_of("trending"), form, given or {})
    (requested,) = (one for one in job.parts if one.name == part)
    reported = AlertList()
    alerting = job.alerting(requested, [reported])
    stream = job.streams(Feed("posts", "localhost:1"))[part]
    tester = StreamTester(stream, sinks=[] if alerting is None else [alerting], start=datetime.now(UTC))
    messages = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in values]
    for low in range(0, len(messages), 20_000):
        tester.feed_messages(messages[low : low + 20_000])
    tester.finish()
    assert tester.account.dead_lettered == dead_letters and tester.account.balanced, tester.refused[:3]
    return tester, reported.alerts
