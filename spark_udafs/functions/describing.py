"""What DESCRIBE FUNCTION says of functions in Python, which Spark registers without a description.

The registry of a session on a JVM takes a description through Py4J. A Spark Connect server can't be told one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .catalogue import SqlFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLACE = ("session", "system")
"""The schema and the catalogue in which Spark 4.3 keeps a session's own functions."""

NOTE = (
    "A Python aggregate: it stands in GROUP BY and OVER. In streams, and beside Spark's own aggregates such "
    "as count(*), use streamgauge.sketch(df). In place of FILTER (WHERE x), aggregate CASE WHEN x THEN … END."
)
"""What Spark's errors don't say where it refuses a Python aggregate."""


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
            info = catalyst.expressions.ExpressionInfo("streamgauge", None, function.name, *told(function))
            registry.registerFunction(identifier, info, builder.get())


def told(function: SqlFunction) -> tuple[str, ...]:
    """Usage, arguments, examples, note, group, first version, deprecation and source, as Spark lays them out.

    >>> from .catalogue import catalogue
    >>> print(told(catalogue()["contains_membership"])[1])
    <BLANKLINE>
        Arguments:
          * sketch - a column
          * item - a column
        Returns: boolean
    <BLANKLINE>
    """
    lines = [f"* {name} - a column" for name in function.columns]
    for name, default in function.options.items():
        how = f"by place or as {name} => …" if function.aggregates else "by place"
        lines.append(f"* {name} - optional, {how}; {_default(default)}")
    arguments = "".join(f"\n      {line}" for line in lines)
    group = "agg_funcs" if function.aggregates else "misc_funcs"
    usage = f"{function.usage} - {function.says}."
    about = f"\n    Arguments:{arguments}\n    Returns: {function.result}\n"
    note = f"\n    {NOTE}\n  " if function.aggregates else ""
    examples = f"\n    Examples:\n      > SELECT {function.example};\n"
    return usage, about, examples, note, group, "0.1.0", "", "python_udf"


def _default(value: object) -> str:
    return "as the sketch has it" if value is None else f"{value!r} unless given"
