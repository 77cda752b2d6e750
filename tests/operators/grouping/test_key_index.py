"""Numbers of keys against a plain dictionary, while the table grows and keys are forgotten."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.operators.grouping.key_index import KeyIndex


@pytest.mark.parametrize("few", [3, 1 << 40], ids=["all in one run of slots", "far apart"])
def test_numbers_are_those_of_a_dictionary(few: int) -> None:
    random = np.random.default_rng(few)
    index, known, column = KeyIndex(), dict[tuple[int, int], int](), np.empty(0, np.int64)
    for turn in range(60):
        h1 = random.integers(0, few, 200).astype(np.uint64) << np.uint64(20)
        h2 = random.integers(0, 400, 200).astype(np.uint64)
        keys = list(zip(h1.tolist(), h2.tolist()))
        result = index.find(h1, h2)
        assert result.tolist() == [known.get(key, -1) for key in keys]
        numbers, firsts = index.number(h1, h2)
        before = len(known)
        assert numbers.tolist() == [known.setdefault(key, len(known)) for key in keys]
        assert [keys[row] for row in firsts] == list(known)[before:]
        column = index.widened(column, -1)
        assert len(column) >= len(index) and (column[before : len(index)] == -1).all()
        column[before : len(index)] = np.arange(before, len(index))
        assert list(zip(*(half.tolist() for half in index.hashes))) == list(known)
        if turn % 7 == 6:
            kept = np.flatnonzero(random.random(len(index)) < 0.4)
            index.keep(kept)
            known = {key: number for number, key in enumerate([list(known)[at] for at in kept])}
            column = np.arange(len(index))
