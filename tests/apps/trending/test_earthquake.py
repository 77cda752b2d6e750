"""Posts of people who feel the ground shake: reported on time, with where they come from; others are not."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.operators.rules.outlets.to_command import CommandTopic

from ...cases import each
from .formats.test_twitter_v1 import PLACE, status
from .parts import post, ran
from .posts import NOON

RULES = """
[[rule]]
name = "earthquake"
part = "earthquakes"
kind = "earthquake"
value = "posts"
at_least = 1

[[rule]]
name = "busy"
part = "volume"
kind = "threshold"
value = "posts"
at_least = 100
"""


def test_posts_of_a_quake_are_reported_with_where_they_come_from(tmp_path: Path) -> None:
    usual = [status(n, "lovely morning", user={"id_str": str(n)}) for n in range(20)]
    shaken = [
        status(100 + n, text, user={"id_str": str(n)}, place=PLACE)
        for n, text in enumerate(["TEMBLOR!!", "tembló fuerte", "earthquake!!", "omg earthquake", "sismo"])
    ]
    news = [status(200 + n, f"earthquake https://news/{n}", user={"id_str": str(n)}) for n in range(9)]
    retweets = [status(300 + n, "RT @x: earthquake!!", user={"id_str": str(n)}) for n in range(9)]
    long = [status(400 + n, "earthquake " + "word " * 20, user={"id_str": str(n)}) for n in range(9)]
    stamp = 1_539_202_764_000
    reported = [{**one, "timestamp_ms": str(stamp + n * 60_000)} for n, one in enumerate(usual + news)]
    for others in (retweets, long):
        reported += [
            {**one, "timestamp_ms": str(stamp + 5_000_000 + n * 900)} for n, one in enumerate(others)
        ]
    _, alerts = ran("earthquakes", reported, "twitter-v1")
    assert alerts == []
    begin = stamp + 6_000_000
    felt = [{**one, "timestamp_ms": str(begin + n * 3_000)} for n, one in enumerate(shaken)]
    opening = {**shaken[0], "id_str": "99", "timestamp_ms": str(stamp)}
    _, alerts = ran("earthquakes", [opening, *reported, *felt], "twitter-v1", {"emergency": "alarms"})
    fired = [alert for alert in alerts if alert.state == "fired"]
    (alert,) = fired
    assert alert.kind == "emergency" and begin < alert.at_us / 1_000 <= begin + 9_000
    assert "from around 9.9, -84.1 (3 places, half within 0 km)" in alert.why
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    for rules in (None, path):
        job = Job.of(app_of("trending"), "twitter-v1", {"emergency": "alarms"}, rules)
        of = {part.name: job.alerting(part, []) for part in job.parts}
        outlets = {name: alerting.outlets for name, alerting in of.items() if alerting is not None}
        (outlet,), others = outlets.pop("earthquakes"), list(outlets.values())
        assert isinstance(outlet, CommandTopic) and others and not any(others)
        messages = [*outlet.messages(alert), *outlet.messages(replace(alert, state="cleared"))]
        assert {sent.topic for sent in messages} == {"alarms"}
        commands = [json.loads(sent.value)["command"]["emergency"] for sent in messages]
        assert commands == ["earthquake", "none"]
        dry = replace(job, acts=False)
        assert not any(dry.alerting(part, []).outlets for part in dry.parts if dry.rules.get(part.name))


def test_the_share_of_the_stream_scales_the_onset() -> None:
    stamps = [0, 3_600, 7_200, 9_000, 9_001]
    ids = [
        str(((NOON.timestamp() + at) * 1_000 - 1_288_834_974_657).__int__() << 22).encode() for at in stamps
    ]
    for share, fires in (("1", 0), ("0.5", 1)):
        _, alerts = ran("earthquakes", ids, "ids", {"share": share, "about": "earthquake"})
        assert len([alert for alert in alerts if alert.state == "fired"]) == fires


@pytest.mark.parametrize(
    ("file", "origin", "within"),
    [
        ("2012_Costa_Rica", "2012-09-05T14:42:07+00:00", 233),
        ("2012_Guatemala", "2012-11-07T16:35:47+00:00", 127),
    ],
)
def test_recorded_quakes_are_reported_on_time_and_none_before(
    recordings: Path, file: str, origin: str, within: int
) -> None:
    path = recordings / "social" / f"{file}_earthquake-tweetids_entire_period.csv"
    crawl = {"about": "earthquake"}
    job = Job.of(app_of("trending"), None, crawl, recording=path)
    begin = datetime.fromisoformat(origin).timestamp()
    messages = list(job.form.messages(path, job.settings))
    early = [message.value for message in messages if message.sent_ms / 1_000 < begin + 600]
    _, alerts = ran("earthquakes", early, job.form.name, crawl)
    assert 0 < alerts[0].at_us / 1e6 - begin <= within and alerts[0].state == "fired"
    assert len([alert for alert in alerts if alert.state == "fired"]) == 1


def test_ids_are_of_no_subject_unless_one_is_named() -> None:
    ids = [str((1 << 60) + (n << 38)).encode() for n in range(90)]
    ids += [str((1 << 60) + (100 << 38) + (n << 22)).encode() for n in range(10)]
    tester, alerts = ran("earthquakes", ids, "ids")
    assert alerts == [] and tester.account.filtered == 100
    _, alerts = ran("earthquakes", ids, "ids", {"about": "earthquake"})
    assert [alert.state for alert in alerts][:1] == ["fired"]


@pytest.mark.slow
@each(
    ("text", "given", "counts"),
    [
        ("narcisismo puro", {}, False),
        ("Quake Champions is free today", {}, False),
        ("#QuakeChampions", {}, False),
        ("youthquake, Quaker oats", {}, False),
        ("just an earthquake drill", {}, False),
        ("EARTHQUAKEEE", {}, True),
        ("un sismo", {}, True),
        ("no es simulacro, está temblando", {}, True),
        ("#TemblorMX", {}, True),
        ("#PrayForChileTerremoto", {}, True),
        ("#narcisismo #youthquake", {}, False),
        ("さっきの地震こわい", {}, True),
        ("depremde uyandım", {}, True),
        ("big quake at the bank", {"excluded": "at the bank"}, False),
        ("water in the street", {"keywords": "water, inundaci*"}, True),
        ("INUNDACIÓN", {"keywords": "water, inundaci*"}, True),
        ("earthquake", {"keywords": "water"}, False),
    ],
)
def test_words_count_and_not_parts_of_words(text: str, given: dict[str, str], counts: bool) -> None:
    posts = [post(NOON + timedelta(seconds=n), f"a{n}", text) for n in range(5)]
    tester, _ = ran("earthquakes", posts, given=given)
    assert tester.account.counted == 5 * counts


def test_a_list_without_a_word_is_refused() -> None:
    with pytest.raises(ValueError, match="words must be separated by commas, as in quake, sismo; got ' , '"):
        ran("earthquakes", [], given={"keywords": " , "})
