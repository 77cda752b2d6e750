"""A merger's state as it is written down: damaged ones are refused."""

from __future__ import annotations

import pytest

from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.kafka.log_faults import DeltaError

from ..merge.deltas import STREAM, posts


def test_a_damaged_state_is_refused() -> None:
    for reported in ("", "{}", "[]", '{"chains": {"a": [1, 2, 3]}}'):
        with pytest.raises(DeltaError, match="damaged"):
            Merger(STREAM, posts(3)).restore(0, reported)
