"""A schema registry of its own for each test that needs one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .schema_registry import SmallRegistry


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with SmallRegistry().served() as served:
        yield served
