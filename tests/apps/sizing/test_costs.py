"""The formula of rows, beside deltas that a partition really drains."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge.apps.sizing.costs import Costs, rows_per_second
from streamgauge.apps.sizing.synthetic import BEGIN, aggregates_of, stream_of
from streamgauge.operators.sketching.partition_state import PartitionState


@pytest.mark.parametrize(
    ("every", "rate", "groups"), [(7, 20, 100), (45, 20, 100), (150, 5, 400), (10, 100, 3)]
)
def test_rows_are_those_that_a_partition_sends(every: int, rate: int, groups: int) -> None:
    state = PartitionState(stream_of(aggregates_of("count")), "input", 0, 0, clock=lambda: BEGIN + 1e9)
    random, rows, seconds, first = np.random.default_rng(1), 0, 40 * every, 0
    for begin in range(0, seconds, every):
        n = rate * every
        frame = pl.DataFrame(
            {
                "at": BEGIN + 17 + begin + np.arange(n) // rate,
                "key": random.integers(0, groups, n),
                "id": pl.Series(["a"]).new_from_index(0, n),
                "word": pl.Series(["a"]).new_from_index(0, n),
                "number": np.zeros(n),
            }
        )
        state.add(frame, None, np.arange(first, first + n), first + n, lambda numbers, reason: None)
        first += n
        rows += state.delta().table.num_rows
    # The formula takes all pieces for equally long, so it is never below what is sent.
    assert 0.85 <= rows / seconds / rows_per_second(rate, groups, every, 60.0) <= 1.02


def test_keyed_topics_send_each_group_once() -> None:
    costs = Costs(1e-6, 1e-6, 1e-6, 1e-6, 1e-3, 1e-6, row_bytes=100, state_bytes=1_000)
    spread, keyed = (costs.needs(1e6, 20, 10_000, 10.0, keyed=own) for own in (False, True))
    assert spread["table MB/s"] == pytest.approx(20 * keyed["table MB/s"], rel=1e-3)
    assert spread["state GB"] == keyed["state GB"] == pytest.approx(0.02)
