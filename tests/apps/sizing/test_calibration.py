"""Costs measured here have every part, for any number of groups."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from streamgauge.apps.sizing.calibration import costs


@pytest.mark.parametrize("groups", [1, 500])
def test_every_cost_is_measured(groups: int) -> None:
    result = asdict(costs("count,sum", 2_000, groups))
    assert all(value >= 0 for value in result.values())
    for name in (
        "decode",
        "sketch",
        "encode_row",
        "merge_delta",
        "close_row",
        "row_bytes",
        "state_bytes",
        "read",
    ):
        assert result[name] > 0, name
