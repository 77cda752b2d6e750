"""Which runs are healthy, and which are ready."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.operators.watching.figures import Figures, InputFigures
from streamgauge.operators.watching.health import health_of

LAGGING = {("posts", 0): InputFigures(lag=1_200)}


@pytest.mark.parametrize(
    ("reported", "healthy", "ready", "why"),
    [
        ({"owned": True, "caught_up": True}, True, True, ""),
        ({"caught_up": True}, True, False, "some input partitions have no worker yet"),
        ({"owned": True}, True, False, "the log of deltas is being read"),
        ({"state": "failed", "why": "no topic", "owned": True, "caught_up": True}, False, False, "no topic"),
        ({"state": "ended", "owned": True, "caught_up": True}, True, False, "has ended"),
        ({"owned": True, "caught_up": True, "stalled_seconds": 59.0, "inputs": LAGGING}, True, True, ""),
        (
            {"owned": True, "caught_up": True, "stalled_seconds": 61.0, "inputs": LAGGING},
            False,
            False,
            "1,200 messages wait, and none was counted in 61 s",
        ),
        ({"owned": True, "caught_up": True, "since_progress": 9_999.0}, True, True, ""),
    ],
)
def test_health_says_why(reported: dict[str, Any], healthy: bool, ready: bool, why: str) -> None:
    result = health_of(Figures(group="g", **reported))
    assert (result.healthy, result.ready) == (healthy, ready)
    assert why in result.why and bool(result.why) == bool(why)


def test_long_checkpoints_may_take_their_time() -> None:
    stalled = Figures(group="g", owned=True, caught_up=True, stalled_seconds=200.0, inputs=LAGGING)
    assert not health_of(stalled).healthy and health_of(stalled, checkpoint_seconds=100).healthy
