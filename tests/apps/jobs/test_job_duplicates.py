"""Events that are delivered again count once, in every answer of the apps whose events have names."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from streamgauge.apps.app import Feed, Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.jobs.outcome import AlertList, events
from streamgauge.apps.registry import app_of
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.testing import StreamTester

NOW = 1_790_000_000_000
DRAWN = {"sample", "blocks"}
"""Samples of windows are drawn afresh in each run."""


def run(job: Job, messages: list[Message]) -> tuple[dict[str, StreamTester], list[dict[str, Any]]]:
    streams, fed, testers = job.streams(Feed("t", "localhost:1")), AlertList(), {}
    times = [datetime.fromtimestamp((one.sent_ms or 0) / 1000, UTC) for one in messages]
    for part in job.parts:
        alerting = job.alerting(part, [fed])
        tester = StreamTester(
            streams[part.name],
            start=datetime.fromtimestamp(NOW / 1000 + 60, UTC),
            sinks=[] if alerting is None else [alerting],
        )
        tester.feed_messages([m.value for m in messages], [m.key for m in messages], timestamps=times)
        testers[part.name] = tester.finish()
    return testers, events(fed.alerts)


def delivered_again(messages: list[Message], reach: int) -> list[Message]:
    """Every fifth message once more, up to so many messages later, and some for a third time."""
    dice, result = random.Random(3), list(enumerate(messages))
    for at in range(0, len(messages), 5):
        for _ in range(dice.choice([1, 1, 2])):
            result.append((at + dice.randrange(1, reach), messages[at]))
    return [message for _, message in sorted(result, key=lambda one: one[0])]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("trending", 800), ("stocks", 800), ("supernova", 2_000)])
def test_events_that_come_again_change_no_answer(name: str, size: int) -> None:
    """Of supernova's alerts few pass, so that more are needed."""
    app = app_of(name)
    assert app.example is not None
    made = itertools.takewhile(lambda one: one.sent_ms < NOW + 12_000, app.example.messages(2, NOW))
    once = list(made)[-size:]
    twice = delivered_again(once, 9)
    job = Job.of(app, app.example.format, app.example.settings)
    (plain, reported), (again, reported_again) = run(job, once), run(job, twice)
    for part in job.parts:
        extra = 0 if part.repeats else len(twice) - len(once)
        first, second = plain[part.name].account, again[part.name].account
        assert second.read == len(twice) and second.balanced and first.counted > 0
        if part.repeats:
            continue
        assert second == first + Account(read=extra, filtered=extra)
        result, wanted = (
            of.windows().drop(DRAWN, strict=False) for of in (again[part.name], plain[part.name])
        )
        keys = [column for column, kind in result.schema.items() if not kind.is_nested()]
        assert result.height and result.sort(keys).equals(wanted.sort(keys)), part.name
    # Of stocks, repeated events are reported.
    result, wanted = (
        [one for one in some if one["kind"] != "sequence"] for some in (reported_again, reported)
    )
    assert result == wanted
    counting = Job.of(app, app.example.format, {**app.example.settings, "duplicates": "0"})
    all_of_them, _ = run(counting, twice)
    last = [part.name for part in job.parts if not part.repeats][-1]
    assert all_of_them[last].account.counted > plain[last].account.counted


def test_how_far_apart_is_a_number_of_messages() -> None:
    job = Job.of(app_of("stocks"), "alpaca", {"duplicates": "1h"})
    with pytest.raises(
        ValueError,
        match="--set duplicates must be a number up to 10,000,000, or 0 to count all, got 1h",
    ):
        job.streams(Feed("t", "localhost:1"))
    with pytest.raises(ValueError, match="--set duplicates: iot has no such setting"):
        Job.of(app_of("iot"), "json", {"duplicates": "5"})
