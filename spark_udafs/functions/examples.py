"""A query that runs for each of the functions, for DESCRIBE FUNCTION to show."""

from __future__ import annotations

from .catalogue import SqlFunction

ROWS = "VALUES ('a', 1, TIMESTAMP '2026-01-01'), ('b', 2, TIMESTAMP '2026-01-02') AS seen(item, n, at)"
"""The table that examples ask."""


def example(function: SqlFunction) -> str:
    """A query that calls it, or the one to call in its place.

    >>> from .catalogue import catalogue
    >>> print(example(catalogue()["count_frequency"]).replace(ROWS, "…"))
    SELECT count_frequency(sketch, 'a') FROM (SELECT sketch_frequency(item) AS sketch FROM …)
    """
    if function.verb == "sketch":
        return f"SELECT {call(function)} FROM {ROWS}"
    return f"SELECT {call(function)} FROM (SELECT {made_for(function)} AS {function.columns[0]} FROM {ROWS})"


def call(function: SqlFunction, sketch: str | None = None) -> str:
    """A call of it, on the column `sketch` where it takes sketches; on `ROWS` where it makes one."""
    number = _of_numbers(function)
    names = {"column": _values(function), "weight": "n", "time": "at", "key": "item"}
    if function.verb == "sketch":
        names["value"] = "n"
    else:
        own = sketch or function.columns[0]
        names |= {"sketch": own, "other": own, "state": own, "value": "2", "item": "2" if number else "'a'"}
    given = [names[name] for name in function.columns]
    options = {name: _literal(value) for name, value in function.options.items() if value is not None}
    given += [f"{name} => {value}" if function.aggregates else value for name, value in options.items()]
    name = f"{function.name}_{_kind(function)}" if function.must_name_kind else function.name
    return f"{name}({', '.join(given)})"


def made_for(function: SqlFunction) -> str:
    """What gives a sketch that it takes, of `ROWS`."""
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
    """The kind of items in its name; where it has none and must, the first there is."""
    kind = function.name.partition(function.line.name)[2].removeprefix("_")
    return kind or (function.line.aggregate.kinds[0] if function.must_name_kind else "")


def _values(function: SqlFunction) -> str:
    kind = _kind(function)
    return "CAST(n AS DOUBLE)" if kind == "double" else "n" if _of_numbers(function) else "item"


def _of_numbers(function: SqlFunction) -> bool:
    return _kind(function) in ("long", "double") or hasattr(function.line.sketch_class(), "quantiles")


def _literal(value: object) -> str:
    """A value of Python in SQL."""
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
