"""A broker of its own, to be stopped and started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(data=tmp_path / "data") as broker:
        yield broker
