"""Posts in the project's own shape."""

from __future__ import annotations

import json
from pathlib import Path

from streamgauge.apps.trending.formats.posts import POSTS

from ..posts import line
from .rows import format_of, messages_of, rows_of


def test_posts_are_rows_and_other_events_are_filtered(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    lines = [line(0, "ann", "Rain", id="1"), line(1, kind="like"), b"{broken"]
    path.write_bytes(b"\n".join(lines))
    assert format_of(path) is POSTS
    messages = messages_of(POSTS, path)
    assert [message.value for message in messages] == lines
    assert messages[1].sent_ms == messages[0].sent_ms + 1_000 and messages[2].sent_ms is None
    rows, account, why = rows_of(POSTS, lines)
    assert [(row["id"], row["author"], row["tags"], row["n"]) for row in rows] == [("1", "ann", ["rain"], 1)]
    assert (account.read, account.filtered, account.dead_lettered) == (3, 1, 1) and "not JSON" in why[0]
    assert json.loads(lines[0])["created_at"]
