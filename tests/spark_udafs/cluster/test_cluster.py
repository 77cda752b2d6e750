"""What runs on a real cluster of Spark gives what plain Python counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Trades, check
from .standalone import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.apart]


def given(trades: Trades, folder: Path) -> dict[str, object]:
    """What a driver needs to know."""
    (folder / "rows").symlink_to(trades.folder / "rows")
    return {"servers": trades.servers, "topic": trades.topic, "folder": folder}


@pytest.mark.slow
def test_both_merges_survive_an_executor_that_is_killed_within_a_batch(
    cluster: Cluster, trades: Trades, tmp_path: Path
) -> None:
    strike = tmp_path / "strike"
    strike.touch()
    jobs = ["stream", "buckets", "frames"]
    result = cluster.run(**given(trades, tmp_path), jobs=jobs, most=1_200, strike=strike, victim="executor")
    assert not strike.exists()
    for way in ("Catalyst", "buckets"):
        check(result[f"stream {way}"], trades)
        assert result[f"account {way}"] == len(trades.rows)
        check(result[f"frame {way}"], trades)


@pytest.mark.soak
def test_every_source_and_rules_give_the_same_answers(
    cluster: Cluster, trades: Trades, tmp_path: Path
) -> None:
    jobs = ["stream", "batch", "frames", "frame_stream", "parquet", "rules"]
    result = cluster.run(**given(trades, tmp_path), jobs=jobs, busy=200)
    for job in ("stream Catalyst", "batch", "frame Catalyst", "frame stream"):
        check(result[job], trades)
    assert [row[:2] for row in result["parquet"]] == [[symbol, "1200"] for symbol in "abc"]
    assert len(result["rules"]) == 3 and {state for _, state in result["rules"]} == {"fired"}
