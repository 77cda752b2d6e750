"""Memory that is used again, and never while somebody still looks into it."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.kafka import recycling
from streamgauge.operators.kafka.recycling import Recycling


def test_an_array_is_given_out_again_once_nothing_refers_to_it() -> None:
    memory = Recycling()
    first = memory.take(100)
    memory.keep(first, 100)
    place = first.ctypes.data
    assert memory.take(100).ctypes.data != place
    del first
    assert memory.take(50).ctypes.data == place


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
    memory = Recycling()
    array = memory.take(96)
    memory.keep(array, 96)
    place = array.ctypes.data
    part = look(array)
    del array
    assert memory.take(96).ctypes.data != place
    del part
    assert memory.take(96).ctypes.data == place


def test_what_is_too_small_stays_and_a_larger_one_is_made() -> None:
    memory = Recycling()
    memory.keep(memory.take(10), 10)
    assert len(memory.take(1000)) >= 1000
    assert len(memory.take(10)) == 10


def test_few_are_kept_and_none_that_holds_very_much() -> None:
    memory = Recycling()
    for _ in range(10):
        memory.keep(np.empty(10, np.uint8), 10)
    assert len(memory._arrays) == recycling._MOST
    memory.forget()
    memory.keep(np.empty(10, np.uint8), recycling._LARGEST + 1)
    assert memory._arrays == []


def test_threads_share_nothing() -> None:
    memory = Recycling()
    memory.keep(memory.take(10), 10)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(len(memory._arrays)))
    thread.start()
    thread.join()
    assert seen == [0] and len(memory._arrays) == 1
