"""What many write is a trend, in any script, as emoji or as a tag; one event is one alert."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from streamgauge.apps.trending.trend import Trend
from streamgauge.operators.rules.row import Row

from .parts import MINUTE, post, ran
from .posts import NOON


def stormy(texts: list[str]) -> list[dict[str, Any]]:
    """Two hours of other posts, and in the second of them 120 people who write one of the texts."""
    posts = [
        post(
            NOON + MINUTE * (number // 8) + timedelta(seconds=7 * (number % 8)),
            f"a{number}",
            "普通の一日 usual",
        )
        for number in range(8 * 120)
    ]
    posts += [
        post(NOON + 60 * MINUTE + timedelta(seconds=2 * number), f"p{number}", texts[number % len(texts)])
        for number in range(120)
    ]
    return sorted(posts, key=lambda one: one["created_at"])


@pytest.mark.parametrize(
    ("texts", "terms"),
    [
        (["台風", "台風がこわい", "大きい台風だ"], {"台風"}),
        (["鬼滅の刃を見た", "今日は鬼滅の刃", "鬼滅の刃!"], {"鬼滅の刃"}),
        (["台风登陆广东了", "台风真的登陆了", "明天台风来"], {"台风"}),
        (["แผ่นดินไหวแรงมาก", "กรุงเทพแผ่นดินไหว", "แผ่นดินไหว"], {"แผ่นดินไหว"}),
        (["so good 🔥🔥", "👩🏽‍🚀🔥", "🔥"], {"🔥"}),
        (["buy $AAPL now", "$aapl!", "why $Aapl?"], {"$aapl"}),
        (["down again #outage", "#Outage", "is it (#outage)?"], {"outage"}),
    ],
)
def test_what_120_people_write_is_a_trend(texts: list[str], terms: set[str]) -> None:
    _, alerts = ran("trends", stormy(texts))
    fired = {alert.key[1]: alert for alert in alerts if alert.state == "fired"}
    assert fired.keys() == terms
    cleared = [alert.key for alert in alerts if alert.state == "cleared"]
    assert set(cleared) <= {alert.key for alert in fired.values()}


BRIDGE = [
    "In Baltimore, the Key Bridge has collapsed",
    "omg the Key Bridge collapsed after a ship hit it, in Baltimore",
    "Key Bridge collapse: a cargo ship lost power near Baltimore",
    "praying for Baltimore. the key bridge is gone #baltimore",
    "A container ship struck the Key Bridge, Baltimore #keybridge",
]
OUTAGE = [
    "mail is down again #outage",
    "is mail down for everyone?",
    "mail down in Europe",
    "mail down, again",
]


def background(minutes: int, lang: str = "en") -> list[dict[str, Any]]:
    """Eight posts a minute of a few words out of hundreds, by as many people."""
    dice = random.Random(3)
    words = [f"word{number}" for number in range(300)]
    return [
        post(
            NOON + MINUTE * (number // 8) + timedelta(seconds=7 * (number % 8)),
            f"a{number}",
            " ".join(dice.sample(words, 5)),
            lang=lang,
        )
        for number in range(8 * minutes)
    ]


def about(texts: list[str], begins: datetime, people: int, who: str, **more: Any) -> list[dict[str, Any]]:
    return [
        post(begins + timedelta(seconds=number), f"{who}{number}", texts[number % len(texts)], **more)
        for number in range(people)
    ]


def trends(*posts: list[dict[str, Any]]) -> list[Any]:
    every = sorted((one for some in posts for one in some), key=lambda one: one["created_at"])
    return ran("trends", every)[1]


def of(alerts: list[Any], state: str) -> list[str]:
    return [alert.key[1] for alert in alerts if alert.state == state]


def test_one_event_is_one_alert_that_names_its_other_words() -> None:
    alerts = trends(background(120), about(BRIDGE, NOON + 60 * MINUTE, 200, "p"))
    assert of(alerts, "fired") == ["key bridge"] == of(alerts, "cleared")
    [fired] = [alert for alert in alerts if alert.state == "fired"]
    assert "baltimore" in fired.why.partition("; also: ")[2] and "bridge" in fired.why
    assert "never seen before (values below 2.5 are not stored), a burst of" in fired.why


def test_words_that_come_up_later_belong_to_the_event() -> None:
    later = ["Salvage of the Key Bridge begins", "Key Bridge: salvage crews at work"]
    posts = [about(BRIDGE, NOON + (60 + at) * MINUTE, 100, f"p{at}") for at in (0, 5, 10)]
    posts += [about([*BRIDGE, *later * 3], NOON + (75 + at) * MINUTE, 100, f"l{at}") for at in (0, 5)]
    assert of(trends(background(150), *posts), "fired") == ["key bridge"]


def test_two_events_of_a_window_are_two_alerts() -> None:
    posts = (about(BRIDGE, NOON + 60 * MINUTE, 150, "p"), about(OUTAGE, NOON + 60 * MINUTE, 120, "q"))
    alerts = trends(background(120), *posts)
    assert sorted(of(alerts, "fired")) == ["key bridge", "mail"]
    again = about(OUTAGE, NOON + 70 * MINUTE, 120, "r")
    assert sorted(of(trends(background(120), posts[0], again), "fired")) == ["key bridge", "mail"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whatever_an_event_s_posts_say_it_is_one_alert(seed: int) -> None:
    dice = random.Random(seed)
    words = [f"thing{number}" for number in range(12)]
    texts = [f"Harbour fire {' '.join(dice.sample(words, 3))}" for _ in range(40)]
    alerts = trends(background(90), about(texts, NOON + 60 * MINUTE, 200, "p"))
    assert of(alerts, "fired") == ["harbour fire"]


def test_a_language_is_no_trend() -> None:
    texts = [f"orð{number} vika{number + 1} dagur{number * 7}" for number in range(200)]
    icelandic = about(texts, NOON + 60 * MINUTE, 200, "p", lang="is")
    assert not trends(background(120), icelandic)


def test_what_is_usual_but_little_is_not_called_new() -> None:
    usual = [one for at in range(0, 60, 5) for one in about(["a kettle"], NOON + at * MINUTE, 3, f"u{at}-")]
    alerts = trends(background(90), usual, about(["kettle"], NOON + 60 * MINUTE, 100, "p"))
    [fired] = [alert for alert in alerts if alert.state == "fired"]
    assert "never seen" not in fired.why and "usually 3 ± " in fired.why


def test_without_samples_phrases_still_fold_their_words() -> None:
    rule = Trend("trend", value="authors", above=5, least=10, warm=1)
    state, fired, minute = rule.begin(), [], 60_000_000
    counts = {"trial": 120, "river": 300, "trial delayed": 90, "delayed": 130, "river bank": 40, "bank": 200}
    for at in range(6):
        rows = [
            Row({"kind": "words", "term": term}, at * minute, (at + 1) * minute, {"authors": counts[term]})
            for term in (counts if at == 5 else ())
        ]
        alerts = rule.window(state, rows, at * minute, (at + 1) * minute, minute)
        fired += [(one.key[1], one.why.partition("; also: ")[2]) for one in alerts]
    # One in five who write of a bank write of the river's: these are two events.
    assert sorted(fired) == [("bank", ""), ("river", "river bank"), ("trial delayed", "delayed, trial")]
