"""Tweets of Twitter v2: streamed, bare, and pages of a search."""

from __future__ import annotations

import json
from pathlib import Path

from streamgauge.apps.trending.formats.twitter_v2 import TWITTER_V2

from .rows import format_of, messages_of, rows_of

BONN = {"id": "01", "full_name": "Bonn", "geo": {"bbox": [7.0, 50.6, 7.2, 50.8]}}
TWEET = {
    "id": "1212092628029698048",
    "text": "We believe #Best https://t.co/a",
    "author_id": "2244994945",
    "lang": "en",
    "entities": {"hashtags": [{"tag": "Best"}], "urls": [{"expanded_url": "https://x.y"}]},
    "geo": {"place_id": "01"},
    "referenced_tweets": [{"type": "retweeted", "id": "1"}],
}
BARE = {"id": "7", "text": "hi", "author_id": "3", "created_at": "2019-12-31T19:26:16.000Z"}


def test_a_tweet_has_the_place_that_it_names() -> None:
    other = {**BONN, "id": "02", "full_name": "Kiel"}
    values = [
        {"data": TWEET, "includes": {"places": [BONN]}},
        BARE,
        {"data": TWEET, "includes": {"places": [other]}},
    ]
    rows, account, _ = rows_of(TWITTER_V2, values)
    assert account.counted == 3
    assert [(row["place"], row["spot"]) for row in rows] == [("Bonn", "50.7,7.1"), (None, None), (None, None)]
    first = rows[0]
    assert (first["author"], first["tags"], first["links"], first["repost"]) == (
        "2244994945",
        ["best"],
        ["https://x.y"],
        True,
    )


def test_a_page_is_sent_tweet_by_tweet(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    page = {"data": [TWEET, BARE, {**BARE, "id": 5}], "includes": {"places": [BONN]}, "meta": {}}
    path.write_text(json.dumps(page, indent=1))
    assert format_of(path) is TWITTER_V2
    messages = messages_of(TWITTER_V2, path)
    assert [message.sent_ms for message in messages] == [1_577_820_376_771, *[1_577_820_376_000] * 2]
    rows, account, why = rows_of(TWITTER_V2, [message.value for message in messages])
    assert [row["place"] for row in rows] == ["Bonn", None]
    assert account.dead_lettered == 1 and why == ['"data.id" is 5, not String']
