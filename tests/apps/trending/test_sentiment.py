"""How posts sound: a swing is reported, with what it is a swing of."""

from __future__ import annotations

from datetime import timedelta

import pytest

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of

from .parts import MINUTE, post, ran
from .posts import NOON


def test_a_swing_of_how_posts_sound_is_reported_and_a_tag_s_own() -> None:
    pytest.importorskip("vaderSentiment")
    good, bad, posts = "what a lovely great day", "this is horrible, I hate it", []
    for window in range(12):
        for number in range(30):
            at = NOON + 15 * MINUTE * window + timedelta(seconds=number)
            posts.append(post(at, f"a{number}", bad if window >= 9 else good, "airline"))
            posts.append(post(at, f"b{number}", good, "sun"))
    tester, alerts = ran("sentiment", posts)
    fired = [
        (alert.key, (alert.at_us / 1e6 - NOON.timestamp()) / 900)
        for alert in alerts
        if alert.state == "fired"
    ]
    assert (("tag", "airline"), 11.0) in fired and not [key for key, _ in fired if key[1] == "sun"]
    assert tester.windows().filter(kind="tag", term="sun")["posts"].to_list() == [30] * 12
    for setting in ("off", "auto"):
        job = Job.of(app_of("trending"), "posts", {"sentiment": setting})
        assert ("sentiment" in [part.name for part in job.parts]) == (setting == "auto")
