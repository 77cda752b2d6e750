"""Descriptions for DESCRIBE FUNCTION of Python functions, which Spark registers without one.

The registry of a session on a JVM accepts a description through Py4J. A Spark Connect server accepts none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .catalogue import SqlFunction
from .examples import example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLACE = ("session", "system")
"""The schema and the catalogue of a session's own functions in Spark 4.3."""

NOTE = (
    "A Python aggregate: it stands in GROUP BY and OVER. In streams, and beside Spark's own aggregates such "
    "as count(*), use streamgauge.spark.sketch(df). In place of FILTER (WHERE x), aggregate "
    "CASE WHEN x THEN … END."
)
"""Advice that Spark's errors lack if it refuses a Python aggregate."""


def describe(spark: SparkSession, functions: Iterable[SqlFunction]) -> None:
    """Give a session's registered functions their descriptions, unless the session is a remote one."""
    session: Any = spark
    if not hasattr(session, "_jsparkSession"):
        return
    jvm = session.sparkContext._jvm
    registry = session._jsparkSession.sessionState().functionRegistry()
    catalyst, option = jvm.org.apache.spark.sql.catalyst, jvm.scala.Option.apply
    for function in functions:
        identifier = catalyst.FunctionIdentifier(function.name, *map(option, _PLACE))
        builder = registry.lookupFunctionBuilder(identifier)
        if builder.isDefined():
            info = catalyst.expressions.ExpressionInfo(
                "streamgauge", None, function.name, *description(function)
            )
            registry.registerFunction(identifier, info, builder.get())


def description(function: SqlFunction) -> tuple[str, ...]:
    """Usage, arguments, examples, note, group, first version, deprecation and source, as Spark lays them out.

    >>> from .catalogue import catalogue
    >>> print(description(catalogue()["contains_membership"])[1])
    <BLANKLINE>
        Arguments:
          * sketch - the bytes of a sketch
          * item - what is looked up
        Returns: boolean
    <BLANKLINE>
    """
    lines = [f"* {name} - {_argument(function, name)}" for name in function.columns]
    for name, default in function.options.items():
        about = _OPTIONS.get((function.verb == "sketch", name), f"as of {function.line.name}(...)")
        lines.append(
            f"* {name} - optional; {about}" + ("" if default is None else f"; {default!r} unless given")
        )
    if function.options:
        named = f", or by name as {next(iter(function.options))} => …" if function.aggregates else ""
        lines.append(f"Options are given by place{named}.")
    arguments = "".join(f"\n      {line}" for line in lines)
    group = "agg_funcs" if function.aggregates else "misc_funcs"
    usage = f"{function.usage} - {function.says}."
    about = f"\n    Arguments:{arguments}\n    Returns: {function.result}\n"
    note = f"\n    {NOTE}\n  " if function.aggregates else ""
    examples = f"\n    Examples:\n      > {example(function)};\n"
    return usage, about, examples, note, group, "0.1.0", "", "python_udf"


_ARGUMENTS = {
    "column": "the values, of a column or an expression; nulls are skipped",
    "sketch": "the bytes of a sketch",
    "other": "the bytes of another sketch",
    "state": "what approx_top_k_accumulate or approx_top_k_combine gave",
    "item": "what is looked up",
    "value": "a value of the kind that was sketched",
    "weight": "numbers: a value of twice the weight is as likely as two",
    "time": "timestamps: when each value was",
    "key": "what values are kept for, or drawn by",
}
_OPTIONS = {
    (True, "lg_k"): "the size, 2^lg_k registers or hashes",
    (True, "k"): "the size: values that are kept, or for quantiles what their error comes from",
    (True, "relative_accuracy"): "how far off a quantile may be, as a share of it",
    (True, "max_size"): "the size: the most counters kept, a power of 2",
    (True, "eps"): "how far off a count may be, as a share of all",
    (True, "confidence"): "how sure that is",
    (True, "seed"): "seed of the hashes; only sketches with the same seed merge",
    (True, "capacity"): "how many values it is laid out for",
    (True, "fpp"): "the share of values wrongly found in it, at that many",
    (True, "window"): "the longest span that will be queried, an interval or seconds",
    (True, "half_life"): "the age at which a value counts half, an interval or seconds",
    (True, "p"): "the share of values kept",
    (True, "high_ranks"): "whether high quantiles are the exact ones, or low ones",
    (True, "kind"): "of the numbers added up, 'double' or 'integer'",
    (True, "weight"): "numbers, of a column: how often each value counts",
    (True, "mode"): "of a value's numbers the 'sum', the 'min' or the 'max'; 'always_one' counts the values",
    (False, "lg_k"): "the size it was made with, if above 12: its bytes don't say",
    (False, "mode"): "the mode it was made with, 'sum' by default: its bytes don't say",
    (
        False,
        "q",
    ): "a share such as 0.99, or an array of them; 0.25, 0.5, 0.75, 0.9, 0.95, 0.99 and 0.999 by default",
    (False, "window"): "the last seconds, or an interval; all that it holds by default",
    (False, "k"): "how many",
}
"""Descriptions of the options for sketching, and for reading and querying."""


def _argument(function: SqlFunction, name: str) -> str:
    if function.verb == "sketch" and name == "value":
        return "numbers that are added up for each different value of column"
    if function.verb == "sketch" and name == "column" and function.line.aggregate.skips_empty:
        return _ARGUMENTS[name].replace("nulls", "nulls and empty strings")
    return _ARGUMENTS[name]
