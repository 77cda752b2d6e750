"""Recorded events of Bluesky, against a plain look at their JSON."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from streamgauge.apps.trending.formats.jetstream import JETSTREAM

from ..parts import ran
from .rows import format_of, messages_of, rows_of

_KEYS = itertools.count()


def record(**more: Any) -> dict[str, Any]:
    commit = {"operation": "create", "collection": "app.bsky.feed.post", "record": more}
    commit["rkey"] = f"3k{next(_KEYS)}"
    return {"did": "did:plc:a", "time_us": 1_783_175_888_377_628, "kind": "commit", "commit": commit}


def test_every_recorded_event_decodes_and_only_new_posts_are_rows(recordings: Path) -> None:
    path = recordings / "social" / "jetstream_expected_v1.jsonl"
    assert format_of(path) is JETSTREAM
    messages = messages_of(JETSTREAM, path)
    events = [json.loads(message.value) for message in messages]
    rows, account, why = rows_of(JETSTREAM, [message.value for message in messages])
    posts = [
        event
        for event in events
        if event.get("commit", {}).get("collection") == "app.bsky.feed.post"
        and event["commit"]["operation"] == "create"
    ]
    assert (account.read, account.counted, account.dead_lettered, why) == (152, len(posts), 0, [])
    assert [message.sent_ms for message in messages] == [event["time_us"] // 1_000 for event in events]
    for row, event in zip(rows, posts, strict=True):
        said = event["commit"]["record"]
        features = [one for facet in said.get("facets", []) for one in facet["features"]]
        links = [one["uri"] for one in features if "uri" in one]
        links += [uri] if (uri := said.get("embed", {}).get("external", {}).get("uri")) else []
        tags = [one["tag"].lower() for one in features if "tag" in one]
        assert row["author"] == event["did"] and row["id"].endswith(event["commit"]["rkey"])
        assert row["text"] == said["text"]
        assert row["lang"] == next(iter(said.get("langs", [])), row["lang"])
        assert (row["links"], row["tags"]) == (list(dict.fromkeys(links)), list(dict.fromkeys(tags)))


def test_a_post_is_of_the_earlier_time_of_its_client_and_of_its_arrival() -> None:
    times = ["2026-07-04T14:00:00Z", "2026-07-04T16:00:00.5+02:00", "2099-01-01T00:00:00Z", None, "soon"]
    values = [json.dumps(record(text="hi", **({"createdAt": at} if at else {}))).encode() for at in times]
    tester, _ = ran("volume", values, "jetstream", dead_letters=1)
    counts = tester.windows().select("window_start", "posts").rows()
    assert [(str(start)[11:16], n) for start, n in counts] == [("14:00", 2), ("14:35", 2)]


def test_what_other_collections_hold_is_theirs_and_a_post_that_is_none_a_dead_letter() -> None:
    foreign = record(text={"any": 1}, createdAt=7)
    foreign["commit"]["collection"] = "app.other"
    values = [
        record(text="hi", createdAt="2026-07-04T14:38:02.123456789+02:00", tags=["Side"]),
        foreign,
        record(text={"not": "text"}, createdAt="2026-07-04T14:38:02Z"),
        {"did": "did:plc:a", "time_us": 1, "kind": "identity", "identity": {}},
        {"did": "did:plc:a", "time_us": 1, "kind": "commit", "commit": {"operation": "delete", "rkey": "3k"}},
        b"oops",
    ]
    rows, account, why = rows_of(JETSTREAM, values)
    assert [(row["text"], row["tags"]) for row in rows] == [("hi", ["side"])]
    assert (account.counted, account.filtered, account.dead_lettered) == (1, 3, 2) and len(why) == 2
