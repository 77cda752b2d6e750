"""A table's rows by their keys: against a dictionary, through updates and deletions of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.steps.table_rows import TableRows

SCHEMA = {"n": pl.Int64, "text": pl.String, "tags": pl.List(pl.Int32)}


def text_key(number: int) -> Any:
    return "" if number == 7 else f"key {number}"


def bytes_key(number: int) -> Any:
    return b"\xff" * (number % 3) + number.to_bytes(2, "big")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "key"),
    [(pl.String, text_key), (pl.Int64, lambda number: number - 50), (pl.Binary, bytes_key)],
    ids=["text", "numbers", "bytes"],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_key_has_its_latest_row_or_none(kind: Any, key: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    contents, wanted = TableRows(SCHEMA), dict[Any, tuple[Any, ...]]()
    many = [80, 3_000, 20_000][seed]
    for step in range(60):
        size = int(random.choice([0, 1, 2, 30, 2_000]))
        keys = [key(int(number)) for number in random.integers(0, many, size)]
        kept = random.random(size) < (0.1 if step % 20 > 15 else 0.8)
        rows = [
            (step * 10_000 + at, None if at % 5 == 0 else f"{at}", [at, step]) for at in range(kept.sum())
        ]
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
        contents.update([pl.Series(keys, dtype=kind)], pl.DataFrame(rows, SCHEMA, orient="row"), numbers)
        for one, number in zip(keys, numbers.tolist()):
            if number < 0:
                wanted.pop(one, None)
            else:
                wanted[one] = rows[number]
        requested = [None, *(key(int(number)) for number in random.integers(0, many + 5, 200)), None]
        result = contents.gather(contents.find([pl.Series(requested, dtype=kind)]))
        nothing = (None, None, None)
        assert result.schema == pl.Schema(SCHEMA)
        assert result.rows() == [nothing if one is None else wanted.get(one, nothing) for one in requested]
        assert len(contents) == len(wanted)
        assert len(contents._rows) <= 2 * len(wanted) + 1_024 + 2_000
    assert len(contents._rows._frames) < 14 and contents.size > 0


def test_the_memory_of_rows_that_were_replaced_is_given_back() -> None:
    contents = TableRows({"n": pl.Int64})
    keys = [pl.Series(range(1_000))]
    for round in range(200):
        contents.update(keys, pl.DataFrame({"n": [round] * 1_000}))
    assert contents.size < 200_000
    assert contents.gather(contents.find(keys))["n"].to_list() == [199] * 1_000
    contents.update(keys, pl.DataFrame(schema={"n": pl.Int64}), np.full(1_000, -1))
    contents.update([pl.Series(range(5_000))], pl.DataFrame(schema={"n": pl.Int64}), np.full(5_000, -1))
    assert len(contents) == 0 and contents.size < 10_000
    assert contents.gather(contents.find([pl.Series([1])])).rows() == [(None,)]
