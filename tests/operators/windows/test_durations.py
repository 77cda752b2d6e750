from __future__ import annotations

from datetime import timedelta

import pytest

from streamgauge.operators.windows.durations import duration_text, microseconds


@pytest.mark.parametrize(
    ("text", "length"),
    [("10s", 10_000_000), ("1m30s", 90_000_000), ("250ms", 250_000), ("1d", 86_400_000_000), ("0s", 0)],
)
def test_written_lengths_are_read_and_written_back(text: str, length: int) -> None:
    assert microseconds(text) == length
    assert microseconds(duration_text(length)) == length


def test_a_timedelta_is_a_duration() -> None:
    assert microseconds(timedelta(minutes=1, microseconds=3)) == 60_000_003


@pytest.mark.parametrize("text", ["", "10", "s", "1 minute", "-1s", "1.5s", "10x", 10, None])
def test_anything_else_is_refused_by_name(text: object) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        microseconds(text)


def test_a_negative_length_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        microseconds(timedelta(seconds=-1))
