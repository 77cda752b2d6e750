"""`streamgauge groups reset`: places as they are typed, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from streamgauge.operators.consumer.group import reset as resetting
from streamgauge.operators.watermarks.position import Input

from ..command import Ran


@pytest.mark.parametrize(
    ("typed", "place"),
    [("earliest", "earliest"), ("1200", 1_200), ("2026-06-01T12:00", datetime(2026, 6, 1, 12, tzinfo=UTC))],
)
def test_places_are_read_as_they_are_typed(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, typed: str, place: Any
) -> None:
    collected: list[Any] = []

    def reset(group: str, to: Any, **options: Any) -> dict[Input, int]:
        collected.append((group, to, options))
        return {Input("posts", 1): 7, Input("posts", 0): 5}

    monkeypatch.setattr(resetting, "reset", reset)
    reported = ran("groups", "reset", "by-minute", "--to", typed, "--config", "security.protocol=SSL")
    assert reported.splitlines() == ["posts[0]: 5", "posts[1]: 7"]
    options = {"bootstrap_servers": "localhost:9092", "config": {"security.protocol": "SSL"}, "topics": ()}
    assert collected == [("by-minute", place, options)]
