"""Aggregates by other systems' names and by those of the registry are the definition's own."""

from __future__ import annotations

from typing import Any

import pytest

import streamgauge as sg
from streamgauge.operators.families import FAMILIES
from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.plan.selection import ranked

from ...cases import each
from .scripts import planned

WINDOW = "FROM posts WINDOW TUMBLING (SIZE 1 MINUTE) EMIT FINAL"


def kept(aggregate: str) -> Any:
    """The definition's aggregate of a query."""
    (one,) = planned(f"SELECT {aggregate} AS x {WINDOW}").stream.aggregates.values()
    return one.name, one.column, {**one.params, **one.answer}


@each(
    ("call", "expected"),
    [
        ("COUNT(*)", sg.count()),
        ("COUNT(usr)", sg.count("usr")),
        ("AVG(price)", sg.mean("price")),
        ("VAR_SAMP(price)", sg.variance("price")),
        ("STDDEV(price)", sg.variance("price")),
        ("FIRST_VALUE(price)", sg.first("price")),
        ("APPROX_COUNT_DISTINCT(usr)", sg.distinct("usr")),
        ("APPROX_COUNT_DISTINCT(usr, 0.01)", sg.distinct("usr", lg_k=14)),
        ("COUNT_DISTINCT(usr)", sg.distinct("usr")),
        ("APPROX_COUNT_DISTINCT_DS_HLL(usr, 11)", sg.distinct("usr", lg_k=11)),
        ("THETA_SKETCH_AGG(usr)", sg.distinct_set("usr")),
        ("PERCENTILE_APPROX(price, 0.9)", sg.quantiles("price")),
        ("APPROX_PERCENTILE(price, ARRAY[0.1, 0.9])", sg.quantiles("price")),
        ("QUANTILES(price, relative_accuracy => 0.001, ranks => 0.9)", sg.quantiles("price", 0.001)),
        ("COUNT_MIN_SKETCH(usr, 0.01, 0.9)", sg.frequency("usr", eps=0.01, confidence=0.9)),
    ],
)
def test_a_name_of_another_system(call: str, expected: Any) -> None:
    name, column, params = kept(call)
    assert (name, column) == (expected.name, expected.column)
    assert {one: params[one] for one in expected.params} == expected.params


def test_top_k_and_kll() -> None:
    name, column, params = kept("APPROX_TOP_K(usr, 3, 64)")
    assert (name, column, params["k"], params["max_size"]) == ("top_k", "usr", 3, 64)
    assert kept("APPROX_QUANTILE_DS(price, 0.5, 400)")[2]["k"] == 400


# DISTINCT is a word of SQL: the family of that name is APPROX_COUNT_DISTINCT.
@each("name", sorted({*FAMILIES} - {"distinct"}))
def test_every_name_of_the_registry_can_be_asked(name: str) -> None:
    column = "price" if "quantiles" in name else "n"
    inputs = [given for given in FAMILIES[name].inputs if given not in ("time", "partition", "offset")]
    call = f"{name.upper()}({', '.join([column, *('n' for _ in inputs)])})"
    plan = planned(f"SELECT {call} AS x {WINDOW}")
    (one,) = plan.stream.aggregates.values()
    assert one.name == name
    names: dict[str, Any] = {}
    exec(plan.source, names)
    assert names["stream"].fingerprint() == plan.stream.fingerprint()


def test_calls_that_one_sketch_answers_share_it() -> None:
    plan = planned(
        "SELECT PERCENTILE_APPROX(price, 0.5) AS mid, PERCENTILE_APPROX(price, 0.99) AS far, COUNT(*) AS n,"
        " UPPER_BOUND(PERCENTILE_APPROX(price, 0.99)) AS worst FROM posts WINDOW TUMBLING (SIZE 1 MINUTE)"
        " HAVING COUNT(*) > 3 EMIT FINAL"
    )
    assert list(plan.stream.aggregates) == ["mid", "n"]
    assert plan.selection is not None and plan.selection.ranks == {"mid": (0.5, 0.99)}
    assert ranked("mid", 0.99) == "mid @ 0.99"


def test_weights_of_quantiles_are_a_column() -> None:
    expected = {
        "QUANTILES(price, weight => n)": sg.quantiles("price", weight="n"),
        "KLL_QUANTILES(price, 400, n)": sg.kll_quantiles("price", k=400, weight="n"),
        "APPROX_PERCENTILE(price, n, 0.99)": sg.quantiles("price", weight="n"),
        "APPROX_PERCENTILE(price, n, ARRAY[0.5, 0.9])": sg.quantiles("price", weight="n"),
        "APPROX_PERCENTILE(price, n + 1, 0.9)": sg.quantiles("price", weight="n + 1"),
        "APPROX_QUANTILE_DS(price, n, 0.5, 400)": sg.kll_quantiles("price", k=400, weight="n"),
    }
    for call, aggregate in expected.items():
        plan = planned(f"SELECT {call} AS x {WINDOW}")
        (one,) = plan.stream.aggregates.values()
        assert (one.name, one.column, one.inputs) == (aggregate.name, "price", aggregate.inputs), call
        assert one.params.items() >= aggregate.params.items(), call
        names: dict[str, Any] = {}
        exec(plan.source, names)
        assert names["stream"].fingerprint() == plan.stream.fingerprint(), call
    with pytest.raises(SqlError, match="must name a column of numbers"):
        planned(f"SELECT QUANTILES(price, weight => usr) AS x {WINDOW}")
