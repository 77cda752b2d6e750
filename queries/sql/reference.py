"""The reference of functions, from the registries themselves; each value beside an example is computed.

``python -m streamgauge.queries.sql.reference`` writes docs/sql_functions.md.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ...operators.definition import aggregates as plain_aggregates
from ...operators.definition import aggregates_stored
from ...operators.definition.aggregate_factory import signature
from ...operators.families import FAMILIES, family
from ...operators.formats.jsonable import jsonable
from .parse.dialect import statements_of
from .plan.aggregates import NAMES, aggregate_call
from .plan.expressions import Expressions
from .plan.stored_columns import ESTIMATE, SET_FUNCTIONS
from .scalars.scalar_functions import FUNCTIONS, Function
from .scalars.scalars import Scalars, sql_type

_KINDS = {
    "whole": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "time": "TIMESTAMP",
    "list": "ARRAY",
}
_AT = "CAST('2026-03-04T05:06:07' AS TIMESTAMP)"
EXAMPLES: Mapping[str, str] = {
    "UPPER": "UPPER('ab')",
    "LOWER": "LOWER('AB')",
    "LENGTH": "LENGTH('héllo')",
    "TRIM": "TRIM('  x ')",
    "LTRIM": "LTRIM('  x ')",
    "RTRIM": "RTRIM('  x ')",
    "SUBSTRING": "SUBSTRING('hello', 2, 3)",
    "CONCAT": "CONCAT('a', 1, 'b')",
    "CONCAT_WS": "CONCAT_WS('-', 'a', NULL, 'b')",
    "REPLACE": "REPLACE('a.b', '.', '-')",
    "REVERSE": "REVERSE('abc')",
    "SPLIT": "SPLIT('a,b', ',')",
    "STARTS_WITH": "STARTS_WITH('abc', 'ab')",
    "ENDS_WITH": "ENDS_WITH('abc', 'bc')",
    "INSTR": "INSTR('hello', 'l')",
    "REGEXP_LIKE": "REGEXP_LIKE('ab12', '[0-9]+')",
    "REGEXP_EXTRACT": "REGEXP_EXTRACT('[0-9]+', 'ab12')",
    "JSON_VALUE": "JSON_VALUE('{\"a\": {\"b\": 7}}', '$.a.b')",
    "ABS": "ABS(-7)",
    "SIGN": "SIGN(-7)",
    "ROUND": "ROUND(2.5)",
    "FLOOR": "FLOOR(-2.5)",
    "CEIL": "CEIL(-2.5)",
    "SQRT": "SQRT(9)",
    "LN": "LN(1)",
    "EXP": "EXP(0)",
    "POWER": "POWER(2, 10)",
    "COALESCE": "COALESCE(NULL, 3, 4)",
    "IFNULL": "IFNULL(NULL, 3)",
    "NULLIF": "NULLIF(3, 3)",
    "IF": "IF(1 > 2, 'x', 'y')",
    "GREATEST": "GREATEST(1, NULL, 3)",
    "LEAST": "LEAST(1, NULL, 3)",
    "ARRAY_LENGTH": "ARRAY_LENGTH(ARRAY[10, 20])",
    "ARRAY_CONTAINS": "ARRAY_CONTAINS(ARRAY[10, 20], 20)",
    "YEAR": f"YEAR({_AT})",
    "MONTH": f"MONTH({_AT})",
    "DAY": f"DAY({_AT})",
    "HOUR": f"HOUR({_AT})",
    "MINUTE": f"MINUTE({_AT})",
    "SECOND": f"SECOND({_AT})",
    "DATE_TRUNC": f"DATE_TRUNC('hour', {_AT})",
    "FROM_UNIXTIME": "FROM_UNIXTIME(1767225600000)",
    "UNIX_TIMESTAMP": f"UNIX_TIMESTAMP({_AT})",
    "PARSE_TIMESTAMP": "PARSE_TIMESTAMP('04/03/2026 05:06', 'dd/MM/yyyy HH:mm')",
    "FORMAT_TIMESTAMP": f"FORMAT_TIMESTAMP({_AT}, 'yyyy/MM/dd')",
}
"""An example of each scalar function, under the first of its names."""

_HEAD = """# SQL: functions

This page is generated from the planner's own registries, and each value on it is computed
(`python -m streamgauge.queries.sql.reference`). [SQL](sql.md) explains the statements.
"""


def functions_page() -> str:
    """The page, in Markdown."""
    return "\n".join([_HEAD, *_aggregates(), *_scalars()]) + "\n"


def value_of(expression: str) -> tuple[Any, str]:
    """The value of a constant expression, and its type.

    >>> value_of("7 / 2"), value_of("'a' || 1")
    ((3, 'BIGINT'), ('a1', 'VARCHAR'))
    """
    (statement,) = statements_of(f"SELECT {expression}")
    node: Any = statement.node
    one = Expressions(Scalars({}), _no_column).scalar(node.select.expressions[0])
    value = pl.select(one.expr.alias("_"))["_"][0]
    kind = pl.Int64() if one.type.is_integer() else one.type
    return (value.to_list() if isinstance(value, pl.Series) else value), sql_type(kind)


def _no_column(node: Any) -> Any:
    raise LookupError(f"an example must consist of constants, got {node.name}")


def _aggregates() -> list[str]:
    lines = [
        "## Aggregates",
        "",
        "Names of other systems, and the aggregate of the registry below that each one stands for:",
        "",
        "| name | aggregate |",
        "|---|---|",
    ]
    lines += [f"| `{', '.join(names)}` | `{target}` |" for target, names in _other_names().items()]
    lines += [
        "",
        "The registry's names. Parameters follow the column in this order, or are named, as in",
        "`QUANTILES(price, relative_accuracy => 0.001)`. Quantile aggregates also accept",
        "`ranks => 0.99` or `ranks => ARRAY[0.5, 0.99]`. With `weight => column` a row counts as often",
        "as that column says; in `APPROX_PERCENTILE(column, weight, 0.99)` it is second, as in Trino.",
        "",
        "| name and parameters | answer |",
        "|---|---|",
    ]
    for name in sorted(FAMILIES):
        if name == "distinct":
            continue  # a word of SQL: APPROX_COUNT_DISTINCT is its name
        lines.append(f"| `{_call_of(name)}` | {_summary_of(name)} |")
    lines += [
        "",
        "`LOWER_BOUND(aggregate)` and `UPPER_BOUND(aggregate)` return the bounds of any of them. Stored",
        "sets are combined by " + ", ".join(f"`{name}`" for name in SET_FUNCTIONS) + f"; `{ESTIMATE}`",
        "around them is allowed.",
    ]
    return lines


def _other_names() -> dict[str, list[str]]:
    """Names of other systems, by what they are here."""
    result: dict[str, list[str]] = {}
    for name in NAMES:
        ranked = "PERCENTILE" in name or "QUANTILE" in name
        (statement,) = statements_of(f"SELECT {name}(x{', 0.5' if ranked else ''})")
        node: Any = statement.node
        call = aggregate_call(node.select.expressions[0])
        assert call is not None
        target = f"the square root of {call.family}" if call.root else call.family
        result.setdefault(target + (" at a rank" if ranked else ""), []).append(name)
    return result


def _call_of(name: str) -> str:
    given = []
    for parameter in signature(family(name)).parameters.values():
        default = parameter.default
        given.append(
            parameter.name
            if default is inspect.Parameter.empty
            else f"{parameter.name} => {'column' if default is None else _written(default)}"
        )
    return f"{name.upper()}({', '.join(given)})"


def _written(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).upper()


def _summary_of(name: str) -> str:
    made = getattr(plain_aggregates, name, None) or getattr(aggregates_stored, name)
    return str(inspect.getdoc(made)).split("\n")[0]


def _scalars() -> list[str]:
    lines = ["", "## Scalar functions", "", "| function | example | value |", "|---|---|---|"]
    by_function: dict[int, list[str]] = {}
    for name, function in FUNCTIONS.items():
        by_function.setdefault(id(function), []).append(name)
    for names in by_function.values():
        (shown,) = [name for name in names if name in EXAMPLES]
        value, kind = value_of(EXAMPLES[shown])
        text = "NULL" if value is None else json.dumps(jsonable(value), ensure_ascii=False)
        others = [f"`{name}`" for name in names if name != shown]
        also = f", also {', '.join(others)}" if others else ""
        lines.append(f"| `{_arguments_of(shown)}`{also} | `{EXAMPLES[shown]}` | `{text}`, {kind} |")
    lines += [
        "",
        "SQL's own `CASE`, `CAST`, `TRY_CAST`, `EXTRACT(part FROM time)`, `BETWEEN`, `IN`, `LIKE`,",
        "`ILIKE`, `IS [NOT] DISTINCT FROM` and `||` work as well, and for stored tables `NOW()`.",
    ]
    return lines


def _arguments_of(name: str) -> str:
    function: Function = FUNCTIONS[name]
    fewest, _ = function.arguments
    given = []
    for at, kinds in enumerate(function.kinds):
        text = "any" if len(kinds) > 4 else _kind_name(kinds)
        given.append(text if at < fewest else f"[{text}]")
    return f"{name}({', '.join(given)}{', …' if function.more else ''})"


def _kind_name(kinds: tuple[str, ...]) -> str:
    names = [_KINDS[kind] for kind in kinds if kind in _KINDS]
    return " or ".join(names)


if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "sql_functions.md").write_text(functions_page())
