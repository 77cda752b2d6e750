"""A generated stream for the tests of this folder."""

from __future__ import annotations

import pytest

from streamgauge.apps.replay.generated import Generated
from streamgauge.apps.replay.load import Load

from .posts import NOON


@pytest.fixture(scope="session")
def generated() -> list[bytes]:
    source = Generated(Load(rate=2_000, seed=3, start=NOON), posts=40_000)
    return [value for batch in source.batches() for value in batch.values.to_pylist()]
