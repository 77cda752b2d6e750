"""The catalogue's functions as functions of Columns, which need no registration."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from .advice import advise
from .arguments import bound, signature
from .catalogue import SqlFunction, catalogue
from .plan_merging import leave_apart


def column_function(name: str) -> Callable[..., Column]:
    """Return the function of that name, over Columns or column names; other arguments are Python values.

    Raises `AttributeError` for a name that the catalogue doesn't have.

    >>> column_function("sketch_distinct").__doc__.partition(" (")[0]
    'sketch_distinct(column, lg_k=12) aggregates a column into a sketch'
    """
    function = catalogue().get(name)
    if function is None:
        close = ", ".join(get_close_matches(name, catalogue(), 3))
        raise AttributeError(f"there is no function {name}; names are like {close or 'sketch_distinct'}")

    advise()

    def call(*given: Any, **named: Any) -> Column:
        if function.aggregates:
            leave_apart(SparkSession.getActiveSession())
        arguments = bound(name, function.columns, function.options, given, named)
        columns = [_column(arguments.pop(one)) for one in function.columns]
        # By position, because Spark loses names if one Python function gets another's result.
        last = max((at for at, one in enumerate(function.options, 1) if one in arguments), default=0)
        optional = function.line.optional if function.verb == "sketch" else ()
        options = [
            _column(arguments[one])
            if one in optional and one in arguments
            else F.lit(arguments.get(one, default))
            for one, default in function.options.items()
        ]
        return arrow_function(function)(*columns, *options[:last])

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{function.usage} {function.says}."
    call.__signature__ = signature(function.columns, function.options)  # type: ignore[attr-defined]
    return call


def arrow_function(function: SqlFunction) -> Any:
    """Wrap a function as Spark's Arrow function, for the session's kind: on a JVM or Connect."""
    # Spark distinguishes aggregates from scalar functions by the type hints: an array in and a single value
    # out, or an array out. Its stubs don't know that.
    arrow_udf: Any = F.arrow_udf
    return arrow_udf(function.run(), from_arrow_type(function.returns))


def _column(given: Any) -> Column:
    return F.col(given) if isinstance(given, str) else F.lit(given)
