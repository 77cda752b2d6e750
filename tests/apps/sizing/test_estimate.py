"""Plans grow with their load, and one that can't work is refused with what to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamgauge.apps.sizing import measured
from streamgauge.apps.sizing.estimate import Workload, estimate_of

LOAD = Workload(rate=50_000, keys=1_000, aggregates="count,sum")


def test_more_of_anything_never_needs_less() -> None:
    plan = estimate_of(LOAD)
    assert plan.partitions == 1 and plan.workers == 1 and plan.mergers == 1
    for more in ({"rate": 5e6}, {"message_bytes": 5_000}, {"keys": 50_000}, {"partitions": 8}):
        other = estimate_of(replace(LOAD, **more))
        assert other.worker_cores >= plan.worker_cores and other.merger_cores >= plan.merger_cores * 0.99, (
            more
        )
    assert estimate_of(replace(LOAD, checkpoint=10)).table_bytes_per_day < plan.table_bytes_per_day / 5


def test_a_day_of_the_table_topic_is_its_rows_and_deltas() -> None:
    plan = estimate_of(replace(LOAD, rate=1_000_000, partitions=4))
    # Each partition sees each of the 1,000 keys in each of the 61 pieces of a minute.
    rows = 4 * 1_000 * 61 / 60 * 86_400
    assert plan.table_bytes_per_day == pytest.approx(rows * plan.row_bytes, rel=0.1)


def test_a_group_needs_as_much_if_fewer_are_sketched_for_it() -> None:
    few, many = (estimate_of(replace(LOAD, rate=own, keys=own // 100)) for own in (2_000, 2_000_000))
    assert many.group_bytes == pytest.approx(few.group_bytes, rel=0.5)
    assert many.merger_bytes - measured.PROCESS_BYTES == pytest.approx(2 * 20_000 * many.group_bytes)


def test_a_load_beyond_its_partitions_or_checkpoints_is_refused() -> None:
    with pytest.raises(ValueError, match="raise --partitions"):
        estimate_of(replace(LOAD, rate=1e8, partitions=2))
    with pytest.raises(ValueError, match="mergers don't keep up with 100000 partitions"):
        estimate_of(replace(LOAD, partitions=100_000, checkpoint=0.1))


def test_an_aggregate_that_was_never_measured_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "AGGREGATES", {"": measured.AGGREGATES[""]})
    with pytest.raises(ValueError, match="the cost of sum was never measured; --calibrate"):
        estimate_of(LOAD)
