"""The reference of functions, from the registries themselves; the value of each example is computed.

``python -m streamgauge.queries.sql.reference`` writes docs/sql_functions.md.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

import polars as pl

from ...operators.definition import aggregates as plain_aggregates
from ...operators.definition import aggregates_stored
from ...operators.definition.aggregate_factory import signature
from ...operators.families import FAMILIES, family
from ...operators.formats.jsonable import jsonable
from .parse.dialect import statements_of
from .plan.aggregates import NAMES, REFUSED, aggregate_call, function_names
from .plan.expressions import Expressions
from .plan.scope import EXPLODE
from .plan.stored_columns import ESTIMATE, SET_FUNCTIONS
from .scalars.function import Function
from .scalars.function_aliases import FLINK, INSTEAD, KSQLDB
from .scalars.scalar_functions import FUNCTIONS
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
    "AS_VALUE": "AS_VALUE(3)",
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
    "INITCAP": "INITCAP('jean-luc of ÉLAN')",
    "OCTET_LENGTH": "OCTET_LENGTH('héllo')",
    "LPAD": "LPAD('7', 3, '0')",
    "RPAD": "RPAD('ab', 4, '.')",
    "LEFT": "LEFT('hello', 2)",
    "RIGHT": "RIGHT('hello', 2)",
    "REPEAT": "REPEAT('ab', 2)",
    "TRANSLATE": "TRANSLATE('a-b_c', '-_', '/')",
    "SPLIT_PART": "SPLIT_PART('a,b', ',', 1)",
    "SPLIT_INDEX": "SPLIT_INDEX('a,b', ',', 0)",
    "LOCATE": "LOCATE('l', 'hello')",
    "REGEXP_REPLACE": "REGEXP_REPLACE('a1b22', '([0-9]+)', '<$1>')",
    "REGEXP_COUNT": "REGEXP_COUNT('a1b22', '[0-9]')",
    "TO_BASE64": "TO_BASE64('hé')",
    "FROM_BASE64": "FROM_BASE64('aMOp')",
    "MASK": "MASK('My card: 123')",
    "IS_DIGIT": "IS_DIGIT('42')",
    "IS_ALPHA": "IS_ALPHA('é')",
    "TRUNC": "TRUNC(-2.7)",
    "MOD": "MOD(-7, 3)",
    "CBRT": "CBRT(27)",
    "LOG": "LOG(2, 8)",
    "LOG2": "LOG2(8)",
    "LOG10": "LOG10(100)",
    **{name: f"{name}(0)" for name in ("SIN", "COS", "TAN", "SINH", "COSH", "TANH", "ASIN", "ATAN")},
    "ACOS": "ACOS(1)",
    "ATAN2": "ATAN2(0, 1)",
    "COT": "COT(0)",
    "DEGREES": "DEGREES(0)",
    "RADIANS": "RADIANS(0)",
    "PI": "PI()",
    "E": "E()",
    "NVL2": "NVL2(NULL, 'some', 'none')",
    "ELT": "ELT(2, 'a', 'b')",
    "FIELD": "FIELD('b', 'a', 'b')",
    "ARRAY_DISTINCT": "ARRAY_DISTINCT(ARRAY[2, 1, 2])",
    "ARRAY_MAX": "ARRAY_MAX(ARRAY[2, 1])",
    "ARRAY_MIN": "ARRAY_MIN(ARRAY[2, 1])",
    "ARRAY_SORT": "ARRAY_SORT(ARRAY[2, NULL, 1])",
    "ARRAY_REVERSE": "ARRAY_REVERSE(ARRAY[2, 1])",
    "MAP_KEYS": "MAP_KEYS(MAP('a' := 1, 'b' := 2))",
    "MAP_VALUES": "MAP_VALUES(MAP('a' := 1, 'b' := 2))",
    "MAP_ENTRIES": "MAP_ENTRIES(MAP('a' := 1))",
    "MAP_CONTAINS_KEY": "MAP_CONTAINS_KEY(MAP('a' := 1), 'a')",
    "ARRAY_JOIN": "ARRAY_JOIN(ARRAY[2, NULL, 1], '-')",
    "ARRAY_CONCAT": "ARRAY_CONCAT(ARRAY[1], ARRAY[1, 2])",
    "ARRAY_UNION": "ARRAY_UNION(ARRAY[1], ARRAY[1, 2])",
    "ARRAY_INTERSECT": "ARRAY_INTERSECT(ARRAY[1], ARRAY[1, 2])",
    "ARRAY_EXCEPT": "ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[1])",
    "SLICE": "SLICE(ARRAY[10, 20, 30], 2, 3)",
    "QUARTER": f"QUARTER({_AT})",
    "WEEK": f"WEEK({_AT})",
    "DOY": f"DOY({_AT})",
    "ISODOW": f"ISODOW({_AT})",
    "DAYOFMONTH": f"DAYOFMONTH({_AT})",
    "DAYOFYEAR": f"DAYOFYEAR({_AT})",
    "DAYOFWEEK": f"DAYOFWEEK({_AT})",
    "CONVERT_TZ": f"CONVERT_TZ({_AT}, 'UTC', 'Asia/Kolkata')",
    "TIMESTAMPADD": f"TIMESTAMPADD(MONTH, 1, {_AT})",
    "DATEADD": f"DATEADD(DAY, 1, {_AT})",
    "TIMESTAMPSUB": f"TIMESTAMPSUB(MONTH, 1, {_AT})",
    "DATESUB": f"DATESUB(DAY, 1, {_AT})",
    "TIMESTAMPDIFF": f"TIMESTAMPDIFF(DAY, {_AT}, {_AT} + INTERVAL '50' HOUR)",
    "TO_TIMESTAMP_LTZ": "TO_TIMESTAMP_LTZ(1767225600, 0)",
    "TO_TIMESTAMP": "TO_TIMESTAMP('2026-03-04 05:06:07')",
    "STRINGTOTIMESTAMP": "STRINGTOTIMESTAMP('2026-03-04', 'yyyy-MM-dd')",
    "PARSE_DATE": "PARSE_DATE('04.03.2026', 'dd.MM.yyyy')",
    "TIMESTAMPTOSTRING": "TIMESTAMPTOSTRING(1767225600000, 'HH:mm', 'Asia/Kolkata')",
}
"""An example of each scalar function, under the first of its names."""

_HEAD = """# SQL: functions

This page is generated from the planner's own registries, and each value on it is computed
(`python -m streamgauge.queries.sql.reference`). [SQL](sql.md) explains the statements.
"""


def functions_page() -> str:
    """The page, in Markdown."""
    return "\n".join([_HEAD, *_aggregates(), *_scalars(), *_of_others()]) + "\n"


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
            continue  # a keyword of SQL: its function is APPROX_COUNT_DISTINCT
        lines.append(f"| `{_call_of(name)}` | {_summary_of(name)} |")
    lines += [
        "",
        "`LOWER_BOUND(aggregate)` and `UPPER_BOUND(aggregate)` return the bounds of any of them. Stored",
        "sets are combined by " + ", ".join(f"`{name}`" for name in SET_FUNCTIONS) + f"; `{ESTIMATE}`",
        "around them is allowed.",
    ]
    return lines


def _other_names() -> dict[str, list[str]]:
    """Names in other systems, by the names here."""
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
        "`ILIKE`, `RLIKE`, `IS [NOT] DISTINCT FROM`, `||`, `time AT TIME ZONE 'Europe/Helsinki'`,",
        "`time + INTERVAL '1' MONTH` and `STRUCT(name := value)` work as well, and for stored tables",
        "`NOW()`.",
    ]
    return lines


def _of_others() -> list[str]:
    """The functions of ksqlDB and Flink: which are supported, and what to write in place of the others."""
    lines = ["", "## The functions of ksqlDB and Flink", ""]
    known = {*FUNCTIONS, *function_names(), *EXPLODE}
    names = dict.fromkeys([*KSQLDB.split(), *FLINK.split()])
    by_text: dict[str, list[str]] = {}
    for name in names:
        if name not in known:
            by_text.setdefault(INSTEAD.get(name) or f"{name} {REFUSED[name]}", []).append(name)
    here = [f"`{name}`" for name in sorted(known & names.keys())]
    lines += [
        f"Of their {len(names)} functions, {len(here)} are available under the same name:",
        *fill(", ".join(here) + ".", 110).split("\n"),
        "",
        "The others are refused, each with what to write:",
        "",
        "| function | in its place |",
        "|---|---|",
    ]
    return lines + [
        f"| {', '.join(f'`{name}`' for name in sorted(those))} | {text.replace('|', chr(92) + '|')} |"
        for text, those in by_text.items()
    ]


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
