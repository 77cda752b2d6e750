"""Notes on Spark's errors: of those about our aggregates what to do instead, of others nothing."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

from streamgauge.spark_udafs.functions.advice import advise


class Context:
    """Where in a text of SQL an error is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def fragment(self) -> str:
        return self._text


def advice_for(kind: type[PySparkException], condition: str, given: dict[str, str], text: str = "") -> Any:
    """An error as PySpark raises it, on a JVM or over Connect."""

    class Raised(kind):  # type: ignore[misc, valid-type]
        def __str__(self) -> str:
            return text

        def getCondition(self) -> str:
            return condition

        def getMessageParameters(self) -> dict[str, str]:
            return given

        def getQueryContext(self) -> list[Context]:
            return [Context(text)]

    return Raised(text)


PLACED = "INVALID_PANDAS_UDF_PLACEMENT"
FAILED = "STREAM_FAILED"
SYNTAX = "INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX"
REFUSED = {"message": "Streaming aggregation doesn't support group aggregate pandas UDF"}
FILTER = {"prettyName": "`pythonudaf`", "syntax": "FILTER CLAUSE"}


@pytest.fixture(autouse=True)
def advised() -> None:
    advise()
    advise()


@pytest.mark.parametrize(
    ("error", "notes"),
    [
        (
            advice_for(AnalysisException, PLACED, {"functionList": "`sketch_of_mine`, `sketch_top_k`"}),
            "sketch_top_k can't be combined with Spark's own aggregates. Use streamgauge.spark.sketch(df)",
        ),
        (
            advice_for(AnalysisException, PLACED, {"functionList": "`merge_top_k_long`"}),
            "merge_top_k_long can't be combined with Spark's own aggregates. Use streamgauge.spark.rollup(",
        ),
        (
            advice_for(StreamingQueryException, FAILED, REFUSED, "[k, sketch_tail_quantiles(v#1) AS s]"),
            "sketch_tail_quantiles can't aggregate a stream. Use streamgauge.spark.sketch(df)",
        ),
        (
            advice_for(AnalysisException, SYNTAX, FILTER, "sketch_cpc(id) FILTER (WHERE x)"),
            "sketch_cpc takes no FILTER CLAUSE. Instead of FILTER (WHERE x), give it CASE WHEN x",
        ),
        (
            advice_for(AnalysisException, SYNTAX, {"syntax": "RESPECT NULLS"}, "sketch_cpc(id)"),
            "sketch_cpc takes no RESPECT NULLS. Use streamgauge.spark.sketch(df)",
        ),
    ],
)
def test_what_spark_refuses_of_ours_says_what_to_do(error: Any, notes: str) -> None:
    printed = "".join(traceback.format_exception_only(error))
    assert f"\nstreamgauge: {notes}" in printed
    error.add_note("and more")
    assert "".join(traceback.format_exception_only(error)) == f"{printed}and more\n"


@pytest.mark.parametrize(
    "error",
    [
        advice_for(AnalysisException, PLACED, {"functionList": "`sketch_of_mine`"}),
        advice_for(AnalysisException, PLACED, {}),
        advice_for(AnalysisException, "TABLE_OR_VIEW_NOT_FOUND", {"relationName": "`sketch_cpc`"}),
        advice_for(StreamingQueryException, FAILED, {"message": "out of disk"}, "sketch_cpc(id)"),
        advice_for(AnalysisException, SYNTAX, FILTER, "mine(id) FILTER (WHERE x)"),
    ],
)
def test_other_errors_stay_as_they_are(error: Any) -> None:
    assert not hasattr(error, "__notes__")
    error.add_note("a user's own")
    assert error.__notes__ == ["a user's own"]
