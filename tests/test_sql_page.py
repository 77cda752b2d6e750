"""The page on SQL: its script and its code run, and all functions stand in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from streamgauge.operators.families import FAMILIES
from streamgauge.queries.sql.parse.statement_parser import SHOWN
from streamgauge.queries.sql.plan.aggregates import NAMES
from streamgauge.queries.sql.plan.stored_columns import ESTIMATE, SET_FUNCTIONS
from streamgauge.queries.sql.reference import functions_page, value_of
from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.session import SqlSession
from streamgauge.queries.sql.scalars.scalar_functions import FUNCTIONS

from .cases import each

FOLDER = Path(__file__).resolve().parents[1] / "docs"
PAGE = (FOLDER / "sql.md").read_text()


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


def test_the_reference_is_that_of_the_registries() -> None:
    """``python -m streamgauge.queries.sql.reference`` writes it again."""
    assert (FOLDER / "sql_functions.md").read_text() == functions_page()


@each(
    "name",
    sorted({*FUNCTIONS, *NAMES, *(one.upper() for one in FAMILIES), *SET_FUNCTIONS, ESTIMATE} - {"DISTINCT"}),
)
def test_a_function_stands_in_the_reference(name: str) -> None:
    assert re.search(rf"\b{name}\b", (FOLDER / "sql_functions.md").read_text())


@each("name", SHOWN)
def test_what_is_shown_stands_in_the_page(name: str) -> None:
    assert f"`{name}" in PAGE or f" {name}`" in PAGE


def test_what_engines_differ_in_is_as_the_page_says() -> None:
    table = PAGE.partition("Engines differ")[2].partition("A script from ksqlDB")[0]
    rows = re.findall(r"^\| (`.+?`) \| ([^|]+) \| .*\|$", table, re.M)
    tried = 0
    for expressions, values in rows:
        texts = [one.replace("\\|", "|") for one in re.findall(r"`([^`]+)`", expressions)]
        if values == "refused":
            continue
        wanted = values.split(", ")
        for at, text in enumerate(texts):
            shown = wanted[min(at, len(wanted) - 1)]
            value, _ = value_of(text)
            assert ("NULL" if value is None else str(value).upper()) in (shown, f"{shown}.0"), text
            tried += 1
    assert tried >= 14
