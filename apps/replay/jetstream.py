"""Bluesky's Jetstream: one JSON event a line, of every kind that happens on the network.

Source: the Jetstream README (github.com/bluesky-social/jetstream) and the lexicons app.bsky.feed.post and
app.bsky.richtext.facet (github.com/bluesky-social/atproto).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from .post import Post, Unrecognised, once, parse_time, rfc3339

NAME = "Bluesky Jetstream"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def recognises(event: dict[str, Any]) -> bool:
    """Whether a JSON object looks like a Jetstream event."""
    return isinstance(event.get("did"), str) and "time_us" in event and "kind" in event


def post(event: dict[str, Any]) -> tuple[Post, datetime]:
    """The event in the topic's shape, and when Jetstream sent it.

    Only the creation of an app.bsky.feed.post is of kind "post". A delete has no record, an identity or
    account event no commit: they carry the time at which they were sent. Raises `Unrecognised`.

    >>> event = {"did": "did:plc:a", "time_us": 1783175888377628, "kind": "commit", "commit": {
    ...     "operation": "delete", "collection": "app.bsky.feed.post", "rkey": "3mpt"}}
    >>> post(event)[0]["kind"]
    'delete'
    """
    did, time_us = event.get("did"), event.get("time_us")
    if not isinstance(did, str) or not isinstance(time_us, int):
        raise Unrecognised("a Jetstream event needs did (a string) and time_us (an integer)")
    try:
        sent = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        raise Unrecognised(f"time_us is {time_us}, which is not a time in microseconds") from None
    commit = event.get("commit")
    if not isinstance(commit, dict):
        kind = str(event.get("kind"))
        return {
            "id": f"{did}/{kind}/{time_us}",
            "kind": kind,
            "author": did,
            "created_at": rfc3339(sent),
        }, sent
    collection, operation = str(commit.get("collection")), commit.get("operation")
    record = commit.get("record")
    made: Post = {
        "id": f"at://{did}/{collection}/{commit.get('rkey')}",
        "kind": collection.rsplit(".", 1)[-1] if operation == "create" else str(operation),
        "author": did,
        "created_at": rfc3339(sent),
    }
    if operation == "create" and isinstance(record, dict):
        if "createdAt" in record:
            made["created_at"] = rfc3339(parse_time(record["createdAt"]))
        if collection == "app.bsky.feed.post":
            made["tags"] = _tags(record)
            made["text"] = str(record.get("text", ""))
            if languages := record.get("langs"):
                made["lang"] = str(languages[0])
    return made, sent


def _tags(record: dict[str, Any]) -> list[str]:
    """Tags in the text (facets) and those beside it (tags)."""
    inline = [
        feature.get("tag")
        for facet in record.get("facets") or []
        for feature in facet.get("features") or []
        if feature.get("$type") == "app.bsky.richtext.facet#tag"
    ]
    return once(str(tag) for tag in [*inline, *(record.get("tags") or [])] if tag)
