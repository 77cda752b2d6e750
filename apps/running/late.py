"""Find the messages of a replay that came too late for a part, and their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ...operators.definition.aggregates import count
from ...operators.definition.stream import Stream
from ...operators.testing import StreamTester
from ..app import Message
from .exact import feed_testers

_NAMED = 10


def late_messages(
    streams: Mapping[str, Stream], late: Mapping[str, int], messages: Sequence[Message]
) -> list[dict[str, Any]]:
    """Return for each part with late messages their number, largest delay, and keys.

    `late` has the number for each part. Messages without a key have the key "". Only the keys with the most
    messages are named.
    """
    testers = {name: _counting(streams[name]) for name, n in late.items() if n}
    if testers:
        feed_testers(list(testers.values()), messages)
    late_parts = []
    for name, tester in testers.items():
        keys = Counter((messages[row.offset].key or b"").decode(errors="replace") for row in tester.late)
        longest = max((row.late_by for row in tester.late), default=0.0)
        late_parts.append(
            {
                "part": name,
                "messages": late[name],
                "seconds_behind": longest,
                "of": dict(keys.most_common(_NAMED)),
                "other_keys": max(0, len(keys) - _NAMED),
            }
        )
    return late_parts


def _counting(stream: Stream) -> StreamTester:
    """Return a tester that only records late rows."""
    rows = replace(stream, keys=(), aggregates={}).agg(n=count())
    return StreamTester(rows, start=datetime.now(UTC))
