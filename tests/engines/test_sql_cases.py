"""The cases of `sql_cases` without a broker, as consumers, and on Spark."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.session import SqlSession

from ..apps.cli.test_sql import ran
from .sql_cases import CASES, Case, script


def ordered(rows: Any) -> list[str]:
    return sorted(str(tuple(row)) for row in rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_without_a_broker(case: Case) -> None:
    outcomes = list(SqlSession(Memory()).run(script(case, "x")))
    assert [one.error for one in outcomes if one.error is not None] == []
    assert ordered(outcomes[-1].to_json()["rows"]) == ordered(case.expected)
    late = [one for one in outcomes[-1].warnings if "too late" in one]
    assert bool(late) == bool(case.late) and (not late or late[0].startswith(f"{case.late} of "))


@pytest.mark.kafka
@pytest.mark.parametrize(
    "engine",
    # Each query is one of Spark's and takes some seconds to begin; apps/sql/test_spark_runs.py is quick.
    ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.soak])],
)
def test_on_an_engine(kafka: Any, request: Any, engine: str) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    cases = [case for case in CASES if (case.spark if engine == "spark" else case.engines)]
    suffix = uuid.uuid4().hex[:8]
    text = ";\n".join(script(case, f"{number}_{suffix}") for number, case in enumerate(cases))
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    code, outcomes = ran("-e", text, "--json", "--once", "--engine", engine, *servers)
    assert code == 0, outcomes[-1]["error"]
    answered = [one for one in outcomes if one["kind"] == "rows"]
    assert len(answered) == len(cases)
    for case, one in zip(cases, answered):
        assert ordered(one["rows"]) == ordered(case.expected), case.name
