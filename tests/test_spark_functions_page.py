"""The page on functions by name: its code runs, each query gives the result that is printed below it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from streamgauge.operators.families import FAMILIES
from streamgauge.spark_udafs.functions.catalogue import VERBS, catalogue

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "spark_functions.md").read_text()


def test_all_verbs_are_on_the_page_and_all_names_exist() -> None:
    for verb in VERBS:
        assert f"`{verb}_NAME`" in PAGE
    verbs = "|".join(sorted(VERBS, key=len, reverse=True))
    named = set(re.findall(rf"\b(?:{verbs})_[a-z_]+\b", PAGE)) - {"count_min_sketch"}
    # `kll_sketch_merge_float` and the like are Spark's; theirs begin with the family's name.
    assert {name for name in named if name not in catalogue()} <= {"sketch_agg", "merge_agg"}
    for row in re.findall(r"^\| `(\w+)` \| `", PAGE, re.M):
        assert row in FAMILIES


@pytest.mark.slow
@pytest.mark.spark
def test_the_code_runs_and_the_queries_give_what_is_shown(spark: Any, capsys: Any) -> None:
    blocks = re.findall(r"^```(python|sql)\n(.*?)^```", PAGE, re.M | re.S)
    names: dict[str, Any] = {"spark": spark}
    collected = []
    for kind, text in blocks:
        if kind == "python":
            exec(text.replace("spark = sg.spark.session()", ""), names)
        elif text.startswith("CREATE"):
            spark.sql(text)
        else:
            collected += re.findall(r"^> (.*?);\n (.*?)$", text, re.M | re.S)
    assert len(collected) == PAGE.count("\n> SELECT") > 12
    other = {}
    for query, shown in collected:
        result = " | ".join(shown_as(value) for value in spark.sql(query).first())
        if not re.fullmatch(re.escape(shown).replace("…", ".*"), result):
            other[query] = result
    assert not other
    assert "|  de|" in capsys.readouterr().out


def shown_as(value: Any) -> str:
    """A value of a row as the page shows it."""
    if isinstance(value, str):
        return value
    return json.dumps(value.asDict() if isinstance(value, Row) else value)
