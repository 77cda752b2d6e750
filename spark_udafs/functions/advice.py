"""Add a note with advice to Spark's error if it refuses a Python aggregate.

Spark's planner refuses such aggregates with its own errors, long after `register` or a function of columns
was called, in whichever call runs the query. So the exception classes get a `__notes__` that is computed on
access, for example by tracebacks: no call of PySpark is replaced, and its error texts don't change.

Source: PEP 678 (https://peps.python.org/pep-0678/).
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

from ..worker_errors import show_in_one_line
from .catalogue import catalogue

_AGGREGATES = re.compile(r"\b(sketch|merge)_[a-z_]+")
_INSTEAD = {
    "sketch": (
        "Use streamgauge.spark.sketch(df).groupBy(...).agg(...): it makes the same sketches, in batches and "
        'in streams, and takes F.count("*"), F.sum, F.avg, F.min, F.max and F.variance beside them'
    ),
    "merge": (
        "Use streamgauge.spark.rollup(table, ...), which merges tables that streamgauge.spark.sketch(df) "
        "created, in batches and streams, together with their counts, sums, means and extremes"
    ),
}
_NATIVE = {
    "distinct": "hll_sketch_agg",
    "distinct_set": "theta_sketch_agg",
    "kll_quantiles": "kll_sketch_agg_double or kll_sketch_agg_bigint",
    "frequency": "count_min_sketch",
}
"""Spark's own aggregates that produce a family's bytes."""
_IN_PLACE = {
    "FILTER CLAUSE": "Instead of FILTER (WHERE x), give it CASE WHEN x THEN ... END: nulls are skipped. ",
    "DISTINCT": "Select different values first, unless it counts different ones anyway. ",
}


class Advice:
    """A class's `__notes__`: advice for errors about our aggregates, none for others."""

    def __get__(self, error: PySparkException | None, kind: type) -> Any:
        """Return the notes and store them in the error, so that `add_note` can add to them."""
        message = None if error is None else advice(error)
        if error is None or message is None:
            raise AttributeError("__notes__")
        notes = error.__dict__["__notes__"] = [message]
        return notes


def advise() -> None:
    """Make Spark's errors about aggregates of this package say what to do instead."""
    show_in_one_line()
    for kind in (AnalysisException, StreamingQueryException):
        if "__notes__" not in vars(kind):
            setattr(kind, "__notes__", Advice())  # noqa: B010 - mypy knows no such attribute


def advice(error: PySparkException) -> str | None:
    """Return what to do instead; None if Spark didn't refuse an aggregate of this package."""
    try:
        return _advice(error.getCondition() or "", error.getMessageParameters() or {}, error)
    except Exception:
        # The JVM may have ended by now; the traceback must still be printed.
        return None


def _for_views(function: str) -> str | None:
    """Return what to do instead of a persistent view with a function of this session."""
    if function not in catalogue():
        return None
    return (
        f"streamgauge: {function} belongs to this session, as Spark's catalog stores no Python functions. "
        "Make a temporary view in each session, store the sketches in a table, or have the view call Spark's "
        "own functions, such as hll_sketch_agg and hll_sketch_estimate."
    )


def _advice(condition: str, given: dict[str, str], error: PySparkException) -> str | None:
    if condition == "INVALID_PANDAS_UDF_PLACEMENT":
        named, why = given["functionList"], "can't be combined with Spark's own aggregates. "
        native = next((_NATIVE[one] for one in _NATIVE if re.search(rf"\bsketch_{one}\b", named)), None)
        if native is not None:
            why += f"In SQL, {native} can, and the answer_ functions read its bytes. "
    elif condition == "STREAM_FAILED" and "group aggregate pandas UDF" in given["message"]:
        # The plan in the error's text names it.
        named, why = str(error), "can't aggregate a stream. "
    elif condition == "INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX":
        named = " ".join(context.fragment() for context in error.getQueryContext())
        why = f"takes no {given['syntax']}. {_IN_PLACE.get(given['syntax'], '')}"
    elif condition == "INVALID_TEMP_OBJ_REFERENCE":
        return _for_views(given["tempObjName"].strip("`"))
    else:
        return None
    ours = (match for match in _AGGREGATES.finditer(named) if match[0] in catalogue())
    return next((f"streamgauge: {match[0]} {why}{_INSTEAD[match[1]]}." for match in ours), None)
