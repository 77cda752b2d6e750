"""Statuses of Mastodon: bare, streamed, boosted; their HTML as text."""

from __future__ import annotations

import json
from pathlib import Path

from streamgauge.apps.trending.formats.mastodon import MASTODON

from .rows import format_of, messages_of, rows_of

STATUS = {
    "id": "1",
    "created_at": "2026-06-01T12:00:00.123Z",
    "account": {"acct": "ann@x.y", "id": "3"},
    "content": "<p>hi &amp; bye <a href='https://m.s/@b' class='u-url mention'>@b</a>"
    '<a href="https://m.s/tags/rain" class="mention hashtag" rel="tag">#<span>Rain</span></a><br />'
    '<a href="https://ex.org/a?b=1" rel="nofollow"><span>ex.org/a</span></a></p>',
    "tags": [{"name": "Rain", "url": "https://m.s/tags/rain"}],
    "language": "de",
    "card": {"url": "https://card"},
    "reblog": None,
}
BOOST = {
    **STATUS,
    "id": "2",
    "account": {"acct": "bob"},
    "content": "",
    "tags": [],
    "reblog": STATUS,
    "card": None,
}


def streamed(event: str, payload: object) -> dict:
    return {"stream": ["public"], "event": event, "payload": json.dumps(payload)}


def test_statuses_are_the_same_bare_and_streamed() -> None:
    rows, account, _ = rows_of(
        MASTODON, [STATUS, BOOST, streamed("update", STATUS), streamed("update", BOOST)]
    )
    assert account.counted == 4 and rows[:2] == rows[2:]
    first, second = rows[:2]
    assert first["text"] == "hi & bye @b#Rain ex.org/a"
    assert (first["id"], first["author"], first["lang"]) == ("1", "ann@x.y", "de")
    assert (first["tags"], first["links"]) == (["rain"], ["https://ex.org/a?b=1", "https://card"])
    assert (second["author"], second["repost"], first["repost"]) == ("bob", True, False)
    assert {**second, "id": "1", "author": "ann@x.y", "repost": False} == first


def test_other_events_are_filtered_and_what_is_no_status_is_a_dead_letter(tmp_path: Path) -> None:
    values = [streamed("update", STATUS), streamed("delete", "12"), streamed("status.update", STATUS)]
    values += [streamed("update", 7), {"event": "update", "payload": "oops"}]
    path = tmp_path / "stream.jsonl"
    path.write_text("\n".join(map(json.dumps, values)))
    assert format_of(path) is MASTODON
    messages = messages_of(MASTODON, path)
    assert [message.sent_ms for message in messages] == [1_780_315_200_123, None, None, None, None]
    _, account, why = rows_of(MASTODON, [message.value for message in messages])
    assert (account.counted, account.filtered, account.dead_lettered) == (1, 2, 2) and len(why) == 2
