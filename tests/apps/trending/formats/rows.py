"""What a format makes of messages, seen through a stream that sends its rows on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamgauge import Account, StreamTester
from streamgauge.apps.app import AppFormat, Feed, Message
from streamgauge.apps.registry import app_of


def format_of(path: Path) -> AppFormat:
    return app_of("trending").format(None, path)


def messages_of(form: AppFormat, path: Path, given: Mapping[str, str] | None = None) -> list[Message]:
    return list(form.messages(path, {**form.settings, **(given or {})}))


def rows_of(
    form: AppFormat, values: Sequence[Any], given: Mapping[str, str] | None = None
) -> tuple[list[dict[str, Any]], Account, list[str]]:
    """The rows of messages (JSON unless bytes), what became of them, and why some were refused."""
    stream = form.source(Feed("posts", "localhost:1"), {**form.settings, **(given or {})})
    tester = StreamTester(stream.rows_to_kafka("rows"), start=datetime.now(UTC))
    account = tester.feed_messages(
        [one if isinstance(one, bytes) else json.dumps(one).encode() for one in values]
    )
    return (
        [json.loads(one.value or b"") for one in tester.sent()],
        account,
        [one.reason for one in tester.refused],
    )


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
