"""Twitter's v2 Tweets: streamed objects (`{"data": {…}}`), pages of a search (`{"data": […]}`), bare Tweets.

Source: the v2 data dictionary, "Tweet object" (developer.x.com). `created_at`, `author_id`, `lang` and
`entities` are there only if they were asked for.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .post import Post, Unrecognised, once, parse_time, rfc3339
from .twitter_v1 import snowflake

NAME = "Twitter v2"


def recognises(event: dict[str, Any]) -> bool:
    """Whether a JSON object looks like a v2 Tweet, bare or wrapped, or a page of them."""
    data = event.get("data", event)
    first = data[0] if isinstance(data, list) and data else data
    if first == [] and "meta" in event:
        return True
    return (
        isinstance(first, dict)
        and isinstance(first.get("id"), str)
        and "text" in first
        and "user" not in first
        and ("data" in event or "author_id" in first or "edit_history_tweet_ids" in first)
    )


def tweets(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The Tweets in one JSON object: one, or as many as a page holds."""
    data = event.get("data", event)
    return data if isinstance(data, list) else [data]


def post(event: dict[str, Any]) -> tuple[Post, datetime]:
    """One Tweet in the topic's shape, and its time: from its id where `created_at` was not asked for.

    Raises `Unrecognised`.

    >>> post({"id": "1212092628029698048", "text": "hi", "author_id": "7",
    ...     "entities": {"hashtags": [{"start": 0, "end": 3, "tag": "hi"}]}})[0]["created_at"]
    '2019-12-31T19:26:16.771Z'
    """
    tweet = event.get("data", event)
    number = tweet.get("id") if isinstance(tweet, dict) else None
    if not isinstance(number, str):
        raise Unrecognised("a v2 Tweet needs id, a string")
    try:
        moment = parse_time(tweet["created_at"]) if "created_at" in tweet else snowflake(number)
    except (ValueError, OverflowError) as wrong:
        raise Unrecognised(f"Tweet {number} has no time: {wrong}") from None
    entities = tweet.get("entities") or {}
    made: Post = {
        "id": number,
        "kind": "post",
        "author": str(tweet.get("author_id") or ""),
        "created_at": rfc3339(moment),
        "tags": once(str(tag.get("tag") or "") for tag in entities.get("hashtags") or []),
        "text": str(tweet.get("text", "")),
    }
    if tweet.get("lang"):
        made["lang"] = str(tweet["lang"])
    return made, moment
