"""Mastodon's statuses: as its streaming API sends them, or bare, as its REST API gives them.

Source: docs.joinmastodon.org, "Streaming API" and entity "Status".
"""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from typing import Any

from .post import Post, Unrecognised, once, parse_time, rfc3339

NAME = "Mastodon"


def recognises(event: dict[str, Any]) -> bool:
    """Whether a JSON object looks like a status, or like an event of a stream."""
    if isinstance(event.get("event"), str) and "payload" in event:
        return True
    return isinstance(event.get("account"), dict) and "created_at" in event and "content" in event


def status_of(event: dict[str, Any]) -> dict[str, Any] | None:
    """The status in an event; None of those that post nothing new, such as a delete or an edit."""
    if "payload" not in event:
        return event
    if event.get("event") != "update":
        return None
    payload = event["payload"]
    try:
        found = json.loads(payload) if isinstance(payload, str) else payload
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unrecognised("the payload of an update is not a status")
    return found


def post(event: dict[str, Any]) -> tuple[Post, datetime | None]:
    """The status in the topic's shape, and its time; another event of a stream has no time.

    A boost is a post by the one who boosts, with the tags of the original. Raises `Unrecognised`.

    >>> status = {"id": "1", "created_at": "2026-06-01T12:00:00.000Z", "account": {"acct": "ann"},
    ...     "content": "<p>hi &amp; bye</p>", "tags": [{"name": "rain"}]}
    >>> post(status)[0]["tags"], post(status)[0]["text"]
    (['rain'], 'hi & bye')
    """
    status = status_of(event)
    if status is None:
        about = str(event.get("payload"))
        kind = str(event.get("event"))
        return {"id": f"{kind}/{about}", "kind": kind, "author": "", "created_at": rfc3339(_EPOCH)}, None
    account = status.get("account")
    if not isinstance(account, dict) or "id" not in status:
        raise Unrecognised("a Mastodon status needs id and account")
    moment = parse_time(status.get("created_at", ""))
    shown = status["reblog"] if isinstance(status.get("reblog"), dict) else status
    made: Post = {
        "id": str(status["id"]),
        "kind": "post",
        "author": str(account.get("acct") or account.get("id")),
        "created_at": rfc3339(moment),
        "tags": once(str(tag.get("name") or "") for tag in shown.get("tags") or []),
        "text": plain_text(str(shown.get("content") or "")),
    }
    if shown.get("language"):
        made["lang"] = str(shown["language"])
    return made, moment


def plain_text(content: str) -> str:
    """What a status's HTML says.

    >>> plain_text("<p>one<br />two</p><p>&lt;3</p>")
    'one two <3'
    """
    spaced = re.sub(r"<br ?/?>|</p>", " ", content)
    return html.unescape(re.sub(r"<[^>]*>", "", spaced)).strip()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
