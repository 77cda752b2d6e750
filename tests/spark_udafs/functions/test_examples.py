"""The examples that DESCRIBE FUNCTION shows run: all at once, as one query each would take minutes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from streamgauge.spark_udafs.functions.catalogue import VERBS, SqlFunction, catalogue
from streamgauge.spark_udafs.functions.examples import ROWS, call, example, made_for
from streamgauge.spark_udafs.functions.registering import register

FAMILIES = ("kll_quantiles", "top_k", "distinct_set", "membership")
"""Families that together have functions of every verb, the one with most kinds of items first."""


def of_each_verb() -> list[SqlFunction]:
    """The functions of each verb, for all kinds of items, of the first of these families that has it."""
    functions = list(catalogue().values())
    first = {one.verb: name for name in reversed(FAMILIES) for one in functions if one.line.name == name}
    return [one for one in functions if one.line.name == first[one.verb]]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_every_example_runs(spark: Any, every: bool) -> None:
    register(spark)
    requested_of = list(catalogue().values()) if every else of_each_verb()
    assert {function.verb for function in requested_of} == VERBS.keys()
    # Spark has no Python aggregate beside its own, and no aggregate beside other columns.
    apart: dict[tuple[bool, bool], list[SqlFunction]] = defaultdict(list)
    for function in requested_of:
        if function.verb == "sketch":
            apart[False, True].append(function)
        elif not function.must_name_kind:
            native = not made_for(function).startswith("sketch_")
            apart[native, function.aggregates].append(function)
    for functions in apart.values():
        made = list(dict.fromkeys(made_for(one) for one in functions if one.verb != "sketch"))
        inner = ", ".join(f"{sketch} AS s{at}" for at, sketch in enumerate(made))
        requested = [call(one, f"s{made.index(made_for(one))}") for one in functions if one.verb != "sketch"]
        queries = [(requested, f"(SELECT {inner} FROM {ROWS})")]
        queries.append(([call(one) for one in functions if one.verb == "sketch"], ROWS))
        for calls, rows in queries:
            if calls:
                (row,) = spark.sql(f"SELECT {', '.join(calls)} FROM {rows}").collect()
                assert all(value is not None for value in row), row


def test_an_example_is_a_query_by_itself() -> None:
    functions = catalogue()
    assert example(functions["sketch_tuple"]).startswith("SELECT sketch_tuple(item, n, lg_k => 12, kind => ")
    assert "answer_var_opt_string(sketch) FROM (SELECT sketch_var_opt(item, n) AS sketch" in example(
        functions["answer_var_opt"]
    )
    assert "(SELECT approx_top_k_accumulate(item) AS state" in example(functions["from_spark_top_k"])
