"""Topics, brokers and settings for tests that read."""

from __future__ import annotations

import uuid
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
