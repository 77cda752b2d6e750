"""What many write in scripts without spaces is a trend, the longest phrase alone; emoji and tags are, too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

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
        (["台风登陆广东了", "台风真的登陆了", "明天台风来"], {"台风", "登陆"}),
        (["แผ่นดินไหวแรงมาก", "กรุงเทพแผ่นดินไหว", "แผ่นดินไหว"], {"แผ่นดินไหว"}),
        (["so good 🔥🔥", "👩🏽‍🚀🔥", "🔥"], {"🔥"}),
        (["buy $AAPL now", "$aapl!", "why $Aapl?"], {"$aapl"}),
        (["down again #outage", "#Outage", "is it (#outage)?"], {"outage"}),
    ],
)
def test_what_120_people_write_is_a_trend(texts: list[str], terms: set[str]) -> None:
    _, alerts = ran("trends", stormy(texts))
    fired = {alert.key[1]: alert for alert in alerts if alert.state == "fired"}
    assert terms <= fired.keys()
    assert not [part for part in fired for term in terms if part != term and part in term]
    cleared = [alert.key for alert in alerts if alert.state == "cleared"]
    assert set(cleared) <= {alert.key for alert in fired.values()}
