"""Exact answers, counted post by post in Python, agree with the rules and the bounds of the engines."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from streamgauge.apps.trending.answers import windows
from streamgauge.apps.trending.exact import Exact
from streamgauge.apps.trending.summary import Summary
from streamgauge.operators.sketching.accounting import Account

from .posts import NOON, STREAM, counted, line, sketched


def test_generated_posts_lie_inside_their_bounds(generated: list[bytes]) -> None:
    table, account = sketched(generated)
    exact = counted(generated)
    summary = Summary.of("local", account, 2.0, windows(table), exact)
    assert account == exact.account
    assert account.balanced and account.late > 10 and account.dead_lettered > 10
    assert summary.all_inside_bounds and summary.accounts_agree
    assert len(summary.windows) >= 3 and all(len(one.window.tags) == 10 for one in summary.windows)
    assert summary.repeated > 100


def test_a_post_is_late_by_its_own_partition_alone() -> None:
    exact = Exact(STREAM)
    for second in (0, 30, 19.999, 9):
        exact.add(0, line(second))
    exact.add(1, line(9))
    assert exact.account == Account(read=5, counted=3, late=2)
    assert sorted(exact.windows) == [NOON, NOON + timedelta(seconds=30)]


@pytest.mark.parametrize("seed", range(5))
def test_jumps_of_time_are_believed_as_the_engines_do(seed: int) -> None:
    random = np.random.default_rng(seed)
    hours = np.cumsum((random.random(400) < 0.03) * random.integers(0, 30, 400))
    seconds = np.arange(400) + hours * 3_600 - random.exponential(20, 400)
    seconds[random.random(400) < 0.1] += 100_000 * (seed > 1)
    lines = [line(second) for second in seconds.tolist()]
    exact = counted(lines)
    assert sketched(lines)[1] == exact.account
    assert exact.account.late > 0


def test_likes_are_filtered_whatever_their_time_and_move_no_clock() -> None:
    lines = [
        line(0),
        line(60, kind="like"),
        b'{"kind":"like"}',
        line(1),
        line(60),
        line(1),
        line(1, kind="like"),
    ]
    exact = counted(lines)
    assert exact.account == Account(read=7, counted=3, filtered=3, late=1)
    assert sketched(lines)[1] == exact.account


@pytest.mark.parametrize(
    "value",
    [
        b"",
        None,
        b"{broken",
        b"[1]",
        b'"text"',
        b"\xff\xfe{}",
        b'{"kind":"post"}',
        b'{"kind":"post","created_at":"soon"}',
    ],
)
def test_what_is_no_post_is_a_dead_letter(value: bytes | None) -> None:
    exact = Exact(STREAM)
    exact.add(0, value)
    assert exact.account == Account(read=1, dead_lettered=1)


def test_a_clock_far_ahead_is_broken_and_moves_nothing() -> None:
    exact = Exact(STREAM)
    stamp = int(NOON.timestamp() * 1000)
    exact.add(0, line(3_601), stamp)
    exact.add(0, line(0), stamp)
    assert exact.account == Account(read=2, counted=1, dead_lettered=1)
