"""A long campaign: random faults at random points, whatever the delivery, and nothing is ever counted wrong.

``make soak ARGS=tests/faults`` runs it. FAULTS says how many (2,000), SEED repeats a campaign. Episodes share
a cluster of three brokers, ABREAST of them at a time; with BROKERS=1 each has a broker of its own. MINUTES
ends a campaign in order that would take longer.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, get_args

import pytest

from streamgauge.operators.consumer.options import DeliveryName

from ..faulty_proxy import ProxiedKafka
from .broker_faults import on_three_brokers, strikes
from .campaign import Campaign
from .cluster import ProxiedCluster
from .endings import ENDINGS
from .episode import JOINED, SENT_AGAIN, SENT_ONCE, SHARED, Episode, Shape
from .injections import matrix

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

FAULTS = int(os.environ.get("FAULTS", 2_000))
SEED = int(os.environ.get("SEED", random.randrange(1_000_000)))
ABREAST = int(os.environ.get("ABREAST", 3))
BROKERS = int(os.environ.get("BROKERS", 3))
MINUTES = float(os.environ.get("MINUTES", "inf"))
KINDS = [*get_args(DeliveryName), JOINED, SHARED, SENT_ONCE, SENT_AGAIN]


@pytest.mark.flaky(reruns=0)
def test_no_fault_makes_a_count_wrong(tmp_path: Path, record_property: Any, capfd: Any) -> None:
    @contextmanager
    def alone(lane: int, folder: Path) -> Iterator[ProxiedKafka]:
        with ProxiedKafka(data=folder / "kafka") as kafka:
            yield kafka

    with capfd.disabled():
        print(f"\nSEED={SEED} FAULTS={FAULTS} ABREAST={ABREAST} BROKERS={BROKERS}", flush=True)
        faults = matrix() if BROKERS == 1 else on_three_brokers()
        print(f"the table so far: {tmp_path / 'faults.md'}", flush=True)
        if BROKERS == 1:
            campaign = Campaign(faults, KINDS, FAULTS, SEED, tmp_path, MINUTES)
            campaign.run(ABREAST, alone)
        else:
            wait = strikes()
            with ProxiedCluster(tmp_path / "cluster", ABREAST) as cluster:
                busy = lambda name: name in wait and cluster.striking.locked()  # noqa: E731
                campaign = Campaign(faults, KINDS, FAULTS, SEED, tmp_path, MINUTES, busy)
                campaign.run(ABREAST, lambda lane, folder: nullcontext(cluster.lanes[lane]))
    record_property("table", campaign.report)
    assert not campaign.failures, "\n\n".join(campaign.failures)


@pytest.mark.parametrize("delivery", get_args(DeliveryName))
@pytest.mark.parametrize("name", ENDINGS)
def test_what_no_count_survives_ends_the_run_by_name(tmp_path: Path, name: str, delivery: Any) -> None:
    shape = Shape(delivery, SEED)
    with ProxiedKafka(data=tmp_path / "kafka") as kafka, Episode(kafka, tmp_path, shape) as episode:
        for _ in range(5):
            episode.wait_until_read()
        ENDINGS[name](episode)
