"""The page on SQL: its script and its code run, and all functions stand in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streamgauge.operators.families import FAMILIES
from streamgauge.operators.sql.aggregates import NAMES
from streamgauge.operators.sql.memory import Memory
from streamgauge.operators.sql.scalar_functions import FUNCTIONS
from streamgauge.operators.sql.session import SqlSession
from streamgauge.operators.sql.statement_parser import SHOWN

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "sql.md").read_text()


def test_the_script_runs_and_holds() -> None:
    (script,) = re.findall(r"^```sql\n(.*?)^```", PAGE, re.M | re.S)
    results = list(SqlSession(Memory()).run(script))
    assert [one.error for one in results if one.error is not None] == []
    assert len(results) == 10
    bounded, explained, last = results[6], results[8], results[9]
    assert bounded.rows[0][1] == 2 and bounded.bounds["cards"] == [[2, 2]]
    assert ".hopping('1h', every='5m')" in explained.rows[0][0]
    assert last.rows == [("c1", 30.0)]


def test_the_code_runs() -> None:
    (text,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["answers"].rows() == [("en", 2, 1)]


@pytest.mark.parametrize(
    "name", sorted({*FUNCTIONS, *NAMES, *(one.upper() for one in FAMILIES), *SHOWN} - {"DISTINCT"})
)
def test_a_name_stands_in_the_page(name: str) -> None:
    assert f"`{name}" in PAGE or f" {name}`" in PAGE
