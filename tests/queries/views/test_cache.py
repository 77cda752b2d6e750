"""Results are made once, kept within their bounds, and never mixed up between threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from streamgauge.queries.views.cache import ResultCache


def test_the_one_used_longest_ago_goes_first_and_large_ones_are_not_kept() -> None:
    made: list[str] = []

    def make(key: str, size: int = 20) -> str:
        return results.get(key, lambda: made.append(key) or key, lambda result: size)

    results = ResultCache(80)
    for key in "abcda":
        assert make(key) == key
    assert "".join(made) == "abcd"
    make("e")  # b goes
    assert results.bytes == 80
    make("a"), make("b")
    assert "".join(made) == "abcdeb"
    make("f", 21), make("f", 21)
    assert made.count("f") == 2 and results.bytes == 80


def test_threads_that_want_the_same_wait_for_the_first() -> None:
    results, made = ResultCache(1_000), []
    together = threading.Barrier(4)

    def make() -> int:
        made.append(1)
        return 7

    def ask(_: int) -> int:
        together.wait(120)
        return results.get("key", make, lambda result: 1)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [7] * 4
    assert made == [1]


def test_a_maker_that_gives_up_takes_nobody_with_it() -> None:
    results = ResultCache(1_000)
    began, go = threading.Event(), threading.Event()

    def fail() -> int:
        began.set()
        go.wait(120)
        raise TimeoutError

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(results.get, "key", fail, lambda result: 1)
        began.wait(120)
        other = threads.submit(results.get, "key", lambda: 7, lambda result: 1)
        go.set()
        with pytest.raises(TimeoutError):
            one.result(120)
        assert other.result(120) == 7
