"""Functions in expressions, identified by what they do."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.expression_tree import tree_of
from streamgauge.operators.definition.function_text import function_text, functions_of

pytestmark = pytest.mark.filterwarnings("ignore")  # Polars would write these otherwise

FACTOR = 2


def texts(function: Any) -> list[str]:
    return functions_of(tree_of(pl.col("n").map_elements(function, return_dtype=pl.Int64)).raw)


def twice(n: int) -> int:
    return n * FACTOR


def test_equal_functions_are_described_alike_wherever_they_stand() -> None:
    assert texts(lambda n: n + 1) == texts(lambda n: n + 1) != texts(lambda n: n + 2)


def test_what_a_function_uses_is_a_part_of_it(monkeypatch) -> None:
    def adding(step: int) -> Any:
        return lambda n: n + step

    assert texts(adding(1)) == texts(adding(1)) != texts(adding(2))
    before = function_text(twice)
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert function_text(twice) != before
    assert function_text(functools.partial(twice, 2)) != function_text(functools.partial(twice, 3))


def test_named_functions_show_their_names() -> None:
    (text,) = texts(twice)
    assert text.startswith("twice #") and texts(abs) == ["abs"]


def test_a_digest_is_the_same_in_every_process() -> None:
    code = (
        "from streamgauge.operators.definition.function_text import function_text;"
        "print(function_text(lambda s: s in {'a', 'b', 'c', 'd'}))"
    )
    result = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": s},
        ).stdout
        for s in ("1", "2")
    }
    assert len(result) == 1 and "#" in result.pop()
