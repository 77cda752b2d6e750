"""Queries over sketches for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from streamgauge.operators.definition.stream import Stream

if TYPE_CHECKING:
    from .planned import Query


@pytest.fixture
def sketches(kafka: Any, everything_from: Callable[[str], Stream]) -> Callable[..., Query]:
    from .planned import Query  # which needs a newer PySpark than sinks do

    def make(topic: str, log: list[dict[str, Any]] | None = None, **options: str) -> Query:
        return Query(kafka, log, everything_from(topic), **options)

    return make
