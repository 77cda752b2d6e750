"""Topics, brokers and settings for tests that read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .reading import SOURCES, NewTopic


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def new_topic(kafka: EmbeddedKafka) -> NewTopic:
    """Create a topic nobody else uses; gives its name."""

    def create(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = f"reader-{uuid.uuid4().hex[:12]}"
        kafka.create_topic(name, partitions, config)
        return name

    return create


@pytest.fixture
def config(kafka: EmbeddedKafka) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap_servers}


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker to be stopped and started."""
    with EmbeddedKafka(data=tmp_path / "data") as broker:
        yield broker
