"""A runnable example query for each function, for DESCRIBE FUNCTION."""

from __future__ import annotations

from .catalogue import SqlFunction

ROWS = "VALUES ('a', 1, TIMESTAMP '2026-01-01'), ('b', 2, TIMESTAMP '2026-01-02') AS seen(item, n, at)"
"""The table that examples query."""


def example(function: SqlFunction) -> str:
    """Return a query that calls the function, or the function to call in its place.

    >>> from .catalogue import catalogue
    >>> print(example(catalogue()["count_frequency"]).replace(ROWS, "…"))
    SELECT count_frequency(sketch, 'a') FROM (SELECT sketch_frequency(item) AS sketch FROM …)
    """
    if function.verb == "sketch":
        return f"SELECT {call(function)} FROM {ROWS}"
    return f"SELECT {call(function)} FROM (SELECT {made_for(function)} AS {function.columns[0]} FROM {ROWS})"


def call(function: SqlFunction, sketch: str | None = None) -> str:
    """Return a call of the function, on the column `sketch` if it reads sketches, else on `ROWS`."""
    item = "2" if _of_numbers(function) else "X'61'" if _kind(function) == "binary" else "'a'"
    names = {"column": _values(function), "weight": "n", "time": "at", "key": "item"}
    if function.verb == "sketch":
        names["value"] = "n"
    else:
        own = sketch or function.columns[0]
        names |= {"sketch": own, "other": own, "state": own, "value": "2", "item": item}
    given = [names[name] for name in function.columns]
    options = {name: _literal(value) for name, value in function.options.items() if value is not None}
    given += [f"{name} => {value}" if function.aggregates else value for name, value in options.items()]
    name = f"{function.name}_{_kind(function)}" if function.must_name_kind else function.name
    return f"{name}({', '.join(given)})"


def made_for(function: SqlFunction) -> str:
    """Return the expression that makes a sketch of `ROWS` for the function."""
    kind = _kind(function)
    if function.verb == "from_spark":
        return "approx_top_k_accumulate(item)"
    if kind == "float":
        return "kll_sketch_agg_float(CAST(n AS FLOAT))"
    names = {"weight": "n", "time": "at", "key": "item", "value": "n"}
    given = [_values(function), *(names[name] for name in function.line.inputs)]
    if kind == "integer":
        given.append("kind => 'integer'")
    return f"sketch_{function.line.name}({', '.join(given)})"


def _kind(function: SqlFunction) -> str:
    """Return the kind of items in the function's name; the first kind if the name lacks a required one."""
    kind = function.name.partition(function.line.name)[2].removeprefix("_")
    return kind or (function.line.aggregate.kinds[0] if function.must_name_kind else "")


def _values(function: SqlFunction) -> str:
    kind = _kind(function)
    if kind == "binary":
        return "CAST(item AS BINARY)"
    return "CAST(n AS DOUBLE)" if kind == "double" else "n" if _of_numbers(function) else "item"


def _of_numbers(function: SqlFunction) -> bool:
    return _kind(function) in ("long", "double") or hasattr(function.line.sketch_class(), "quantiles")


def _literal(value: object) -> str:
    """Write a Python value in SQL."""
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
