"""The clock on the wall."""

from __future__ import annotations

import time

import pytest

from streamgauge.operators.watermarks.clock import wall_clock


@pytest.mark.parametrize("set_by", [-86_400, 86_400])
def test_it_may_be_set_forward_and_never_back(monkeypatch: pytest.MonkeyPatch, set_by: int) -> None:
    before, real = wall_clock(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + set_by)
    assert before <= wall_clock() - max(0, set_by) <= real() + 60
