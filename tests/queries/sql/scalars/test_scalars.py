"""Scalar expressions mean what SQL says, where Polars says something else; and their Python is the same."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import polars as pl
import pytest

from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.parse.dialect import statements_of
from streamgauge.queries.sql.plan.expressions import Expressions
from streamgauge.queries.sql.scalars.scalar_functions import FUNCTIONS
from streamgauge.queries.sql.scalars.scalars import Scalars
from streamgauge.queries.sql.scalars.time_functions import java_format

from ....cases import each
from ..scripts import planned, value


@each(
    ("expression", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("7.0 / 2", 3.5),
        ("-7.5 % 2", -1.5),
        ("1 / 0", None),
        ("1.0 / 0", None),
        ("0.0 / 0", None),
        ("5 % 0", None),
        ("ROUND(2.5)", 3.0),
        ("ROUND(-2.5)", -3.0),
        ("ROUND(0.49999999999999994)", 0.0),
        ("ROUND(1.005 * 100) / 100", 1.0),
        ("ROUND(2.345, 1)", 2.3),
        ("ROUND(15, -1)", 20),
        ("ROUND(-15, -1)", -20),
        ("ROUND(14, -2)", 0),
        ("ROUND(9223372036854775807, -1)", None),
        ("ROUND(9223372036854775804, -1)", 9223372036854775800),
        ("ROUND(7, 3)", 7),
        ("ROUND(-1250.5, -2)", -1300.0),
        ("ROUND(1e300, 15)", 1e300),
        ("3 BETWEEN SYMMETRIC 5 AND 1", True),
        ("6 BETWEEN SYMMETRIC 5 AND 1", False),
        ("3 BETWEEN SYMMETRIC NULL AND 1", None),
        ("0 NOT BETWEEN SYMMETRIC 5 AND 1", True),
        ("'50%' LIKE '50!%' ESCAPE '!'", True),
        ("'50x' LIKE '50!%' ESCAPE '!'", False),
        ("'50x' NOT LIKE '50!%' ESCAPE '!'", True),
        ("SQRT(-1)", None),
        ("LN(0)", None),
        ("9223372036854775807 + 1", None),
        ("9223372036854775807 - 1 + 1", 9223372036854775807),
        ("-9223372036854775807 - 1", -9223372036854775808),
        ("4611686018427387904 * 2", None),
        ("3037000500 * 3037000500", None),
        ("2 + 3 * 4", 14),
        ("CAST('12' AS INT)", 12),
        ("CAST('twelve' AS INT)", None),
        ("CAST('1e3' AS DOUBLE)", 1000.0),
        ("CAST(300 AS TINYINT)", None),
        ("CAST(2.9 AS INT)", 2),
        ("CAST('TRUE' AS BOOLEAN)", True),
        ("CAST(' t ' AS BOOLEAN)", True),
        ("CAST('No' AS BOOLEAN)", False),
        ("CAST('maybe' AS BOOLEAN)", None),
        ("CAST(' 12 ' AS INT)", 12),
        ("CAST(' 1.5 ' AS DOUBLE)", 1.5),
        ("CAST('10:20:30.5' AS TIME)", time(10, 20, 30, 500_000)),
        ("CAST('25:00' AS TIME)", None),
        ("TIME '10:20'", time(10, 20)),
        ("CAST(TIME '10:20:30.5' AS VARCHAR)", "10:20:30.500"),
        ("CAST(TIMESTAMP '2026-01-01 08:00:00' AS TIME)", time(8)),
        ("TIME '10:20:30' > '10:20'", True),
        ("ARRAY[ARRAY[1, 2], ARRAY[3]]", [[1, 2], [3]]),
        ("ARRAY_REVERSE(ARRAY[ARRAY[ARRAY[1]], ARRAY[ARRAY[2], ARRAY[3]]])", [[[2], [3]], [[1]]]),
        ("ARRAY_MAX(ARRAY[DATE '2026-01-01', DATE '2026-02-01'])", date(2026, 2, 1)),
        ("CAST(7 AS VARCHAR)", "7"),
        ("CAST('2026-01-01T10:20:30Z' AS TIMESTAMP)", datetime(2026, 1, 1, 10, 20, 30)),
        ("CAST('2026-01-01 10:20' AS TIMESTAMP)", datetime(2026, 1, 1, 10, 20)),
        ("CAST('2026-01-01' AS TIMESTAMP)", datetime(2026, 1, 1)),
        ("CAST('yesterday' AS TIMESTAMP)", None),
        ("TIMESTAMP '2026-01-01 02:00:00+02:00'", datetime(2026, 1, 1)),
        ("TIMESTAMP '2026-01-01 02:00:00.5 -0330'", datetime(2026, 1, 1, 5, 30, 0, 500_000)),
        ("TIMESTAMP WITH TIME ZONE '2026-01-01T02:00+02' + INTERVAL '1' HOUR", datetime(2026, 1, 1, 1)),
        ("DATE '2026-01-02' > TIMESTAMP '2026-01-01 23:00:00-00:30'", True),
        ("'7'::INT", 7),
        ("1 IN (1, NULL)", True),
        ("2 IN (1, NULL)", None),
        ("2 NOT IN (1, NULL)", None),
        ("2 NOT IN (1, 3)", True),
        ("NULL IN (1, 2)", None),
        ("NULL = NULL", None),
        ("NULL IS NULL", True),
        ("TRUE OR NULL", True),
        ("FALSE AND NULL", False),
        ("TRUE AND NULL", None),
        ("NOT NULL", None),
        ("NULL IS NOT TRUE", True),
        ("3 BETWEEN 1 AND 3", True),
        ("3 NOT BETWEEN 1 AND 3", False),
        ("'Z' < 'a'", True),
        ("'é' > 'z'", True),
        ("'abc' LIKE 'a_c'", True),
        ("'abc' NOT LIKE 'b%'", True),
        ("'a.c' LIKE 'a.c'", True),
        ("'abc' LIKE 'a.c'", False),
        ("'ABC' ILIKE 'a%'", True),
        ("'a' || 'b' || 1", "ab1"),
        ("'a' || NULL", None),
        ("CASE WHEN 1 > 2 THEN 'x' WHEN 2 > 1 THEN 'y' ELSE 'z' END", "y"),
        ("CASE 3 WHEN 1 THEN 'one' END", None),
        ("IF(1 > 2, 'x', 'y')", "y"),
        ("COALESCE(NULL, 3)", 3),
        ("NULLIF(3, 3)", None),
        ("GREATEST(1, 3, 2)", 3),
        ("LEAST(1.5, 3)", 1.5),
        ("SUBSTRING('hello', 2, 3)", "ell"),
        ("SUBSTRING('hello' FROM 2)", "ello"),
        ("INSTR('héllo', 'l')", 3),
        ("INSTR('hello', 'x')", 0),
        ("UPPER('ab') || LOWER('CD')", "ABcd"),
        ("LENGTH('héllo')", 5),
        ("TRIM('  x ') || '|'", "x|"),
        ("TRIM(LEADING '0' FROM '007')", "7"),
        ("REPLACE('a.b.c', '.', '-')", "a-b-c"),
        ("REPLACE('abc', '', 'x')", "abc"),
        ("REPLACE('abc', 'b', NULL)", None),
        ("INSTR('abc', NULL)", None),
        ("ABS(NULL)", None),
        ("CASE WHEN NULL THEN 1 ELSE 2 END", 2),
        ("1 IS DISTINCT FROM NULL", True),
        ("NULL IS NOT DISTINCT FROM NULL", True),
        ("ARRAY[10, 20][1]", 10),
        ("ARRAY[10, 20][3]", None),
        ("ARRAY_CONTAINS(ARRAY[1, 2], 2)", True),
        ("CARDINALITY(SPLIT('a,b,c', ','))", 3),
        ("SPLIT('a,b,c', ',')[2]", "b"),
        ("EXTRACTJSONFIELD('{\"a\": {\"b\": 7}}', '$.a.b')", "7"),
        ("REGEXP_EXTRACT('[0-9]+', 'ab12')", "12"),
        ("EXTRACT(HOUR FROM CAST('2026-01-01T10:20:30' AS TIMESTAMP))", 10),
        ("YEAR(FROM_UNIXTIME(1767225600000))", 2026),
        ("UNIX_TIMESTAMP(CAST('2026-01-01' AS TIMESTAMP))", 1767225600000),
        ("DATE_TRUNC('hour', CAST('2026-01-01T10:20:30' AS TIMESTAMP))", datetime(2026, 1, 1, 10)),
        ("PARSE_TIMESTAMP('01/02/2026', 'dd/MM/yyyy HH:mm')", None),
        ("PARSE_TIMESTAMP('01/02/2026 10:20', 'dd/MM/yyyy HH:mm')", datetime(2026, 2, 1, 10, 20)),
        ("FORMAT_TIMESTAMP(CAST('2026-01-02' AS TIMESTAMP), 'yyyy/MM/dd')", "2026/01/02"),
        ("CAST('2026-01-02' AS TIMESTAMP) - INTERVAL '1' DAY", datetime(2026, 1, 1)),
        ("CAST('2026-01-02' AS TIMESTAMP) > '2026-01-01T12:00:00+00:00'", True),
        ("CONCAT_WS('-', 'a', NULL, 'b')", "a-b"),
    ],
)
def test_a_constant_expression(expression: str, expected: Any) -> None:
    assert value(expression) == expected


@each(
    ("expression", "columns", "expected"),
    [
        ("a / b", {"a": 7, "b": 2}, 3),
        ("a / b", {"a": 7, "b": 0}, None),
        ("a / b", {"a": 7.0, "b": 0.0}, None),
        ("a * 2", {"a": 2**62}, None),
        ("-a", {"a": -(2**63)}, None),
        ("tags[i]", {"tags": ["x", "y"], "i": 2}, "y"),
        ("tags[i]", {"tags": ["x", "y"], "i": 0}, None),
        ("ARRAY_CONTAINS(tags, 'y')", {"tags": ["x", "y"]}, True),
        ("meta->b", {"meta": {"a": 1, "b": "x"}}, "x"),
        ("a NOT IN (1, NULL)", {"a": 5}, None),
        ("SUBSTRING(s, i)", {"s": "hello", "i": 0}, None),
        (
            "CAST(s AS TIMESTAMP)",
            {"s": "2026-01-01T02:00:00.25+02:00"},
            datetime(2026, 1, 1, 0, 0, 0, 250_000),
        ),
        ("CAST(s AS TIMESTAMP)", {"s": "2026-01-01 02:00-01"}, datetime(2026, 1, 1, 3)),
        ("CAST(s AS TIMESTAMP)", {"s": "2026-01-01T02:00:00+99:00"}, None),
        ("CAST(s AS DATE)", {"s": "2026-01-01T00:30:00+02:00"}, date(2025, 12, 31)),
        ("s < TIMESTAMP '2026-01-01 00:00:01'", {"s": "2026-01-01T02:00:00+02:00"}, True),
        ("CAST(s AS BIGINT) + 1", {"s": "x"}, None),
        ("REPLACE(s, 'b', t)", {"s": "abab", "t": "x"}, "axax"),
        ("REPLACE(s, t, s)", {"s": "ab", "t": ""}, "ab"),
    ],
)
def test_an_expression_over_columns(expression: str, columns: dict[str, Any], expected: Any) -> None:
    assert value(expression, **columns) == expected


@pytest.mark.parametrize("now", ["NOW()", "CURRENT_TIMESTAMP"])
def test_the_present_is_refused_in_a_stream_since_it_would_stand_still(now: str) -> None:
    with pytest.raises(SqlError, match="the current time would stay fixed at the query's start"):
        planned(f"SELECT usr FROM posts WHERE ROWTIME > {now} EMIT CHANGES")


def test_names_do_not_mind_their_case_unless_quoted() -> None:
    assert list(planned("SELECT USR, `lang` FROM POSTS EMIT CHANGES").columns) == ["USR", "lang"]
    with pytest.raises(SqlError, match="no column is called USR; did you mean usr"):
        planned('SELECT "USR" FROM posts EMIT CHANGES')


def test_patterns_of_times() -> None:
    assert java_format("yyyy-MM-dd HH:mm:ss") == "%Y-%m-%d %H:%M:%S"
    with pytest.raises(ValueError, match="'Q' in a time's pattern is not supported"):
        java_format("yyyy Q")


def test_every_function_refuses_the_wrong_number_of_arguments() -> None:
    for name, function in FUNCTIONS.items():
        if name in ("IF", "TRIM", "SUBSTRING"):  # whose arguments have words between them
            continue
        with pytest.raises(SqlError, match=r"takes .* arguments?|takes .* here|must be"):
            value(f"{name}({', '.join(['usr'] * 20) if not function.more else ''})", usr="x")


def test_logarithms_of_powers_are_whole() -> None:
    assert [value(f"LOG10({10**n})") for n in range(16)] == list(range(16))
    assert [value(f"LOG2({2**n})") for n in range(60)] == list(range(60))
    assert [value(f"LOG10({text})") for text in ("0.001", "0", "-1", "NULL")] == [-3.0, None, None, None]
    assert value("LOG10(5)") == pytest.approx(0.69897)


def test_a_quotient_by_a_constant_is_the_same_in_a_batch_of_any_size() -> None:
    numbers = [float(n) for n in range(-50, 50)] + [1429.0, 1e300]
    frame = pl.DataFrame({"x": [*numbers, None], "n": [*range(len(numbers)), None]})
    make = Scalars(frame.schema)
    for text in ("x / 3", "x / 7.0", "n / 100.0", "ROUND(x / 7.0, 2)", "x / 0.0", "x / LN(10)"):
        (statement,) = statements_of(f"SELECT {text}")
        tree = statement.node.select.expressions[0]
        expr = Expressions(make, lambda node: make.column(node.name)).scalar(tree).expr.alias("_")
        together = frame.select(expr)["_"].to_list()
        assert together == [frame[at].select(expr)["_"][0] for at in range(frame.height)], text
        if text == "x / 7.0":
            assert together == [*(n / 7.0 for n in numbers), None]
        if text == "ROUND(x / 7.0, 2)":
            assert together[:100] == [round(n / 7.0, 2) for n in numbers[:100]]
