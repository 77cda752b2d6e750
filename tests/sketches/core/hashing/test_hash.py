"""The hash against datasketches-java's own, for every length and every place of a string in its buffer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.columns.columns import as_values
from streamgauge.sketches.core.hashing.hash import hash_values


def hashes(column: Any) -> list[list[str]]:
    h1, h2 = hash_values(as_values(column))
    return [[str(a), str(b)] for a, b in zip(h1.tolist(), h2.tolist())]


def test_integers(java: Any) -> None:
    numbers = [0, 1, -1, 7, 2**31, -(2**31), 2**63 - 1, -(2**63)]
    assert hashes(np.array(numbers)) == [java.ask("hash", "-", n) for n in numbers]
    assert hashes(np.array([2**64 - 1], np.uint64)) == [java.ask("hash", "-", -1)]
    assert hashes(np.array([5, -5], np.int8)) == [java.ask("hash", "-", 5), java.ask("hash", "-", -5)]


def test_floats_hash_as_doubles_with_one_zero_and_one_nan(java: Any) -> None:
    def bits(x: float) -> int:
        return int(np.float64(x).view(np.int64))

    other_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    got = hashes(np.array([0.0, -0.0, 1.5, np.inf, np.nan, other_nan]))
    assert got[0] == got[1] == java.ask("hash", "-", 0)
    assert got[2:4] == [java.ask("hash", "-", bits(x)) for x in (1.5, np.inf)]
    assert got[4] == got[5] == java.ask("hash", "-", 0x7FF8000000000000)
    assert hashes(np.array([1.5], np.float32)) == got[2:3]


def test_strings_of_every_length_at_both_ends_of_their_buffer(java: Any) -> None:
    rng = np.random.default_rng(3)
    texts = [bytes(rng.integers(0, 256, n, np.uint8)) for n in range(1, 200)]
    expected = [java.ask("hash", text) for text in texts]
    assert hashes(pa.array(texts)) == expected
    assert hashes(pa.array(texts, pa.large_binary())) == expected
    assert hashes(pa.array(texts[::-1])) == expected[::-1]


def test_nothing_is_read_before_or_after_a_string(java: Any, guarded: Any) -> None:
    rng = np.random.default_rng(4)
    for n in range(1, 200):
        text = bytes(rng.integers(0, 256, n, np.uint8))
        answer = java.ask("hash", text)
        for place in guarded.both(text):
            offsets = pa.py_buffer(np.array([0, n], np.int32))
            column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(place)])
            assert hashes(column) == [answer]


def test_long_strings_among_short_ones(java: Any) -> None:
    texts = [b"%d" % i * (1 + (i % 7) ** 3) for i in range(2_000)]
    got = hashes(pa.array(texts))
    for i in range(0, len(texts), 37):
        assert got[i] == java.ask("hash", texts[i])
    assert got == [hashes(pa.array([text]))[0] for text in texts]


@pytest.mark.parametrize("start", [0, 1, 5, 299])
def test_slices_of_columns(start: int) -> None:
    column = pa.array([f"user-{i}-{'x' * (i % 40)}" for i in range(300)])
    assert hashes(column.slice(start)) == hashes(column)[start:]


_ELSEWHERE = """
import platform
platform.machine = lambda: "aarch64"
import numpy as np, pyarrow as pa
from streamgauge.sketches.core.columns.columns import as_values
from streamgauge.sketches.core.hashing.hash import hash_values
for column in (np.arange(40) ** 9, pa.array(["x" * n for n in range(40)])):
    print(*[half.tolist() for half in hash_values(as_values(column))])
"""


@pytest.mark.slow
def test_a_processor_without_such_vectors_hashes_the_same(tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    columns = (np.arange(40) ** 9, pa.array(["x" * n for n in range(40)]))
    expected = [" ".join(str(half.tolist()) for half in hash_values(as_values(one))) for one in columns]
    assert completed == expected
