"""Some of the faults of three brokers, for two groups side by side on them; `test_soak.py` has all."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from .broker_faults import on_three_brokers
from .campaign import Campaign
from .cluster import ProxiedCluster
from .episode import SHARED

pytestmark = pytest.mark.kafka

SOME = [
    "kill -9 of the group's coordinator, after the offsets",
    "kill -9 of two of three brokers, after the deltas",
    "leaders moved, before the offsets",
    "kill -9 of the archiver",
    "kill -9 of the query server",
]
SEED = 18
"""With an archive and a query server beside both groups."""


@pytest.mark.slow
def test_no_fault_of_three_brokers_makes_a_count_wrong(tmp_path: Path, record_property: Any) -> None:
    faults = on_three_brokers()
    campaign = Campaign(
        {name: faults[name] for name in SOME}, [SHARED, "effectively_once"], 2 * len(SOME), SEED, tmp_path
    )
    with ProxiedCluster(tmp_path / "cluster", lanes=2) as cluster:
        campaign.run(2, lambda lane, folder: nullcontext(cluster.lanes[lane]))
    record_property("table", campaign.report)
    assert not campaign.failures, "\n\n".join(campaign.failures)
    assert campaign.checked["archive"] >= 2 and campaign.checked["the query server's answers at the end"] >= 3
