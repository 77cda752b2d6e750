"""Our producers' settings lose nothing that was acknowledged and write nothing twice, whatever brokers do.

The others are measured with them, so that `docs/evidence/writing.md` says what each of them loses.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamgauge.apps.dev.kafka.cluster import EmbeddedCluster
from streamgauge.operators.kafka.client_config import producer_config

from .acks import FAULTS, OURS, SETTINGS, measure

pytestmark = [pytest.mark.kafka, pytest.mark.soak]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as cluster:
        yield cluster


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_what_a_setting_loses(cluster: EmbeddedCluster, setting: str, fault: str) -> None:
    result = measure(cluster, setting, fault)
    assert result.sent > 10_000
    if setting.startswith("acks=all"):
        assert result.lost == 0
    if setting == OURS:
        assert result.twice == 0
    if setting == "acks=1" and "behind" in fault:
        assert result.lost > 0  # or the fault was none
    if setting == "acks=0" and fault == "leader killed -9":
        assert result.lost > 0


def test_ours_is_the_setting_that_is_measured() -> None:
    made = producer_config({"bootstrap.servers": "box:9092", "acks": "1", "enable.idempotence": False}, 1_000)
    assert made["acks"] == "all" and made["enable.idempotence"] is True
