"""Memory that is used again, and never while somebody still looks into it."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.kafka import array_pool
from streamgauge.operators.kafka.array_pool import ArrayPool


def test_an_array_is_given_out_again_once_nothing_refers_to_it() -> None:
    pool = ArrayPool()
    first = pool.acquire(100)
    pool.release(first, 100)
    place = first.ctypes.data
    assert pool.acquire(100).ctypes.data != place
    del first
    assert pool.acquire(50).ctypes.data == place


@pytest.mark.parametrize(
    "look",
    [
        lambda array: array[10:20],
        lambda array: array[8:80].view(np.int64).reshape(3, 3)[1],
        memoryview,
        lambda array: memoryview(array)[3:],
        lambda array: pa.py_buffer(array[5:]),
        lambda array: pa.array(array[:64].view(np.int64)),
    ],
)
def test_it_is_not_given_out_while_a_part_of_it_is_looked_at(look) -> None:
    pool = ArrayPool()
    array = pool.acquire(96)
    pool.release(array, 96)
    place = array.ctypes.data
    part = look(array)
    del array
    assert pool.acquire(96).ctypes.data != place
    del part
    assert pool.acquire(96).ctypes.data == place


def test_what_is_too_small_stays_and_a_larger_one_is_made() -> None:
    pool = ArrayPool()
    pool.release(pool.acquire(10), 10)
    assert len(pool.acquire(1000)) >= 1000
    assert len(pool.acquire(10)) == 10


def test_few_are_kept_and_none_that_holds_very_much() -> None:
    pool = ArrayPool()
    for _ in range(10):
        pool.release(np.empty(10, np.uint8), 10)
    assert len(pool._arrays) == array_pool._MOST
    pool.clear()
    pool.release(np.empty(10, np.uint8), array_pool._LARGEST + 1)
    assert pool._arrays == []


def test_threads_share_nothing() -> None:
    pool = ArrayPool()
    pool.release(pool.acquire(10), 10)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(len(pool._arrays)))
    thread.start()
    thread.join()
    assert seen == [0] and len(pool._arrays) == 1
