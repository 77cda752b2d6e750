"""Statuses of Twitter v1.1: plain, extended, retweeted, with places; and a stream's notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamgauge.apps.trending.formats.twitter_v1 import TWITTER_V1

from .rows import format_of, messages_of, rows_of

PLACE = {
    "full_name": "San José, Costa Rica",
    "bounding_box": {"coordinates": [[[-84.2, 9.8], [-84.2, 10.0], [-84.0, 10.0], [-84.0, 9.8]]]},
}


def status(number: int, text: str, **more: Any) -> dict[str, Any]:
    reported = {
        "created_at": "Wed Oct 10 20:19:24 +0000 2018",
        "id_str": str(number),
        "user": {"id_str": "7"},
    }
    return {**reported, "text": text, "lang": "en", **more}


def entities(*tags: str, link: str = "") -> dict[str, Any]:
    return {"hashtags": [{"text": tag} for tag in tags], "urls": [{"expanded_url": link}] if link else []}


STATUSES = [
    status(1, "cut #ra…", entities=entities("ra"), extended_tweet={
        "full_text": "whole #rain", "entities": entities("Rain", link="https://a.b/c")}),
    status(2, "RT @x: cut", entities=entities("cut"),
           retweeted_status={"id": 9, "entities": entities("News")}),
    status(3, "felt it", place=PLACE),
    status(4, "here", place=PLACE, coordinates={"type": "Point", "coordinates": [-84.11, 9.93]}),
    {"id": 247215201198436352, "user": {"screen_name": "ann"}, "full_text": "from its id"},
]  # fmt: skip


def test_statuses_are_rows_with_the_entities_of_the_whole_text() -> None:
    rows, account, _ = rows_of(TWITTER_V1, STATUSES)
    assert account.counted == 5
    assert [row["text"] for row in rows] == ["whole #rain", "RT @x: cut", "felt it", "here", "from its id"]
    assert [row["tags"] for row in rows] == [["rain"], ["news"], [], [], []]
    assert [row["links"] for row in rows][:2] == [["https://a.b/c"], []]
    assert [row["repost"] for row in rows] == [False, True, False, False, False]
    assert [row["spot"] for row in rows] == [None, None, "9.9,-84.1", "9.93,-84.11", None]
    assert [row["author"] for row in rows] == ["7", "7", "7", "7", "ann"] and rows[2]["place"] == PLACE[
        "full_name"
    ]


def test_notices_are_filtered_and_a_file_is_sent_as_it_was_recorded(tmp_path: Path) -> None:
    notices = [{"delete": {"status": {"id": 1, "user_id": 2}, "timestamp_ms": "1539202764000"}}]
    notices += [{"limit": {"track": 3, "timestamp_ms": "1539202764000"}}]
    path = tmp_path / "stream.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in [*STATUSES, *notices]) + "\nnot json\n")
    assert format_of(path) is TWITTER_V1
    messages = messages_of(TWITTER_V1, path)
    assert [message.sent_ms for message in messages] == [
        *[1_539_202_764_000] * 4, (247215201198436352 >> 22) + 1_288_834_974_657, *[None] * 3
    ]  # fmt: skip
    _, account, why = rows_of(TWITTER_V1, [message.value for message in messages])
    assert (account.counted, account.filtered, account.dead_lettered) == (5, 2, 1)
    assert why == ["not JSON: byte 0"]
