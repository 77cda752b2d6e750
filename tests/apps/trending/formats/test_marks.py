"""Tags, shares and emoji in texts."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.apps.trending.formats.marks import emoji_of, tags_of


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#Rain in #東京, (#ok) ＃台風 #แผ่นดินไหว", ["Rain", "東京", "ok", "台風", "แผ่นดินไหว"]),
        ("$AAPL,$tsla $BRK.B", ["$AAPL", "$tsla", "$BRK.B"]),
        ("a#b http://x.org/#top &#39; #2026 # #cut… US$5 $100 $ABCDEFG a$b", []),
        ("#1st", ["1st"]),
        (None, []),
    ],
)
def test_tags(text: str | None, tags: list[str]) -> None:
    assert tags_of(pl.Series(["none", text, "none"])).to_list() == [[], tags, []]


@pytest.mark.parametrize(
    ("text", "emoji"),
    [
        ("👩‍👩‍👧‍👦👍🏽👍🏽👍", ["👩‍👩‍👧‍👦", "👍🏽", "👍"]),
        ("🇯🇵🇺🇸", ["🇯🇵", "🇺🇸"]),
        ("1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏳️‍🌈 ❤️‍🔥 🧑🏻‍🤝‍🧑🏿 ✌🏽 ☎️", ["1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏳️‍🌈", "❤️‍🔥", "🧑🏻‍🤝‍🧑🏿", "✌🏽", "☎️"]),
        ("❤ ❤️", ["❤️"]),
        ("© ™ ☎ 5 * # é 台風", []),
        (None, []),
    ],
)
def test_emoji(text: str | None, emoji: list[str]) -> None:
    (_, result) = emoji_of(pl.Series(["none", text])).to_list()
    assert sorted(result) == sorted(emoji)
