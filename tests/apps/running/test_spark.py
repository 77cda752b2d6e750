"""The order in which an app's queries start on Spark, with queries that do nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.apps.running.spark import _InTurn

from ...waiting import until


def queries(started: list[int], fails_at: int | None = None) -> Iterator[Any]:
    for number in range(3):
        if number == fails_at:
            raise ValueError("no such topic")
        started.append(number)
        yield SimpleNamespace(number=number, isActive=True)


def test_the_first_query_starts_alone_until_it_has_given_windows() -> None:
    started: list[int] = []
    given = threading.Event()
    in_turn = _InTurn(queries(started), given)
    assert started == [0]
    given.set()
    until(lambda: len(in_turn.queries) == 3)
    in_turn.wait()
    assert [query.number for query in in_turn.queries] == started == [0, 1, 2]


def test_who_waits_starts_the_others_at_once() -> None:
    started: list[int] = []
    in_turn = _InTurn(queries(started), threading.Event())
    in_turn.wait()
    assert started == [0, 1, 2]


def test_none_is_started_after_the_end() -> None:
    started: list[int] = []
    in_turn = _InTurn(queries(started), threading.Event())
    in_turn.stop()
    assert started == [0]


def test_what_a_start_fails_with_is_raised() -> None:
    started: list[int] = []
    with pytest.raises(ValueError, match="no such topic"):
        _InTurn(queries(started, fails_at=0), threading.Event())
    in_turn = _InTurn(queries(started, fails_at=2), threading.Event())
    with pytest.raises(ValueError, match="no such topic"):
        in_turn.wait()
    assert started == [0, 1]
