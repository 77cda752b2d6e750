"""Each scalar function over odd inputs gives what DuckDB's gives, or what is written down by hand.

Inputs are nulls, NaN and infinities, zero with a sign, the ends of BIGINT, empty texts, texts of several
bytes a character, times before 1970 and both nights of summer time. Where systems differ, DuckDB is given
what means the same there.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Any

import duckdb
import polars as pl

from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.parse.dialect import statements_of
from streamgauge.queries.sql.plan.expressions import Expressions
from streamgauge.queries.sql.scalars.scalar_functions import FUNCTIONS
from streamgauge.queries.sql.scalars.scalars import Scalars

from ..scripts import value

TEXTS = [
    None,
    "",
    "a",
    "Zé",
    "e\u0301",
    "  pad ",
    "a,b,,c",
    "ünï 😀 x",
    "12",
    "-3.5",
    "A-b_9",
    "aaa",
    "\n",
    "a.b%",
]
PARTS = [None, "a", "", "é", "\u0301", " ", ",", "😀", "2", "-3", "b_", "aa", "\n", "%"]
WHOLE = [None, 0, 1, -1, 2, -7, 40, 3, 2**63 - 1, -(2**63), 10, 5, 100, 12]
LITTLE = [0, None, 1, -1, 3, 2, 5, 1, 2, 3, 4, 5, 1, 2]
REAL = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 2.5, -2.5, 1e308, 1e-308, 0.5, -0.5, 1.0, 7.25]
OTHER = [1.0, 2.0, math.inf, 0.0, 1.0, None, -2.5, 2.0, 10.0, math.nan, 0.5, 3.0, 8.0, 2.0]
TIMES = [
    None,
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(2026, 3, 29, 0, 59, 59),
    datetime(2026, 3, 29, 1, 0),
    datetime(2026, 3, 29, 3, 30),
    datetime(2026, 10, 25, 0, 30),
    datetime(2026, 10, 25, 1, 0),
    datetime(2026, 10, 25, 3, 30),
    datetime(2024, 2, 29, 12, 34, 56, 789_000),
    datetime(2026, 12, 31, 23, 59, 59),
    datetime(2026, 1, 31),
    datetime(2027, 1, 3),
    datetime(1900, 1, 1, 6),
]
ARRAYS = [
    None,
    [],
    [1],
    [3, 1, 2],
    [1, 1, 2],
    [None, 1],
    [None],
    [5, None, 5],
    [0],
    [-1, 9],
    [2],
    [7, 7],
    [4, 3],
    [1, 2, 3],
]
FRAME = pl.DataFrame(
    {
        "s": TEXTS,
        "t": PARTS,
        "n": WHOLE,
        "m": LITTLE,
        "x": REAL,
        "y": OTHER,
        "ts": TIMES,
        "later": TIMES[1:] + TIMES[:1],
        "a": ARRAYS,
        "b": ARRAYS[2:] + ARRAYS[:2],
    },
    schema_overrides={"n": pl.Int64, "m": pl.Int64, "a": pl.List(pl.Int64), "b": pl.List(pl.Int64)},
)

UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
SOME = "CASE WHEN {0} THEN {1} END"
CASES: list[str | tuple[str, str]] = [
    *("UPPER(s)", "LOWER(s)", "LENGTH(s)", "TRIM(s)", "LTRIM(s)", "RTRIM(s)", "TRIM(s, 'a ')", "REVERSE(t)"),
    ("OCTET_LENGTH(s)", "strlen(s)"),
    *("SUBSTRING(s, 2)", "SUBSTRING(s, 1, 2)", "CONCAT_WS('-', s, t)", "REPLACE(s, 'a', 'xy')"),
    ("CONCAT(s, n)", "s || n"),
    ("REPLACE(s, t, 'z')", "REPLACE(s, t, 'z')"),
    "TRANSLATE(s, 'aé', 'x')",
    ("LPAD(s, 4)", "LPAD(s, 4, ' ')"),
    *("LPAD(s, 6, 'xyz')", "RPAD(s, 6, 'xyz')", "RPAD(s, 2, '😀')", "LPAD(s, 0, 'x')"),
    *("LEFT(s, 2)", "RIGHT(s, 2)", "LEFT(s, 0)", "REPEAT(s, 3)", "REPEAT(s, 0)"),
    ("LEFT(s, m)", "LEFT(s, GREATEST(m, 0) + 0 * m)"),
    ("RIGHT(s, m)", "RIGHT(s, GREATEST(m, 0) + 0 * m)"),
    ("SPLIT(s, ',')", "string_split(s, ',')"),
    ("SPLIT_PART(s, ',', 2)", "string_split(s, ',')[2]"),
    ("SPLIT_INDEX(s, ',', 2)", "string_split(s, ',')[3]"),
    *("STARTS_WITH(s, t)", "ENDS_WITH(s, t)"),
    ("INSTR(s, t)", "CASE WHEN t = '' AND s IS NOT NULL THEN 1 ELSE INSTR(s, t) END"),
    ("LOCATE(t, s)", "CASE WHEN t = '' AND s IS NOT NULL THEN 1 ELSE INSTR(s, t) END"),
    ("REGEXP_LIKE(s, '^[a-z]')", "regexp_matches(s, '^[a-z]')"),
    ("s RLIKE 'a|é'", "regexp_matches(s, 'a|é')"),
    ("REGEXP_EXTRACT('[0-9]+', s)", "NULLIF(regexp_extract(s, '[0-9]+'), '')"),
    ("REGEXP_EXTRACT(s, '([a-z]).([a-z])', 2)", "NULLIF(regexp_extract(s, '([a-z]).([a-z])', 2), '')"),
    ("REGEXP_REPLACE(s, '([a-z])', '<$1>')", "regexp_replace(s, '([a-z])', '<\\1>', 'g')"),
    ("REGEXP_COUNT(s, 'a')", "CAST(len(regexp_extract_all(s, 'a')) AS BIGINT)"),
    ("TO_BASE64(s)", "to_base64(encode(s))"),
    ("FROM_BASE64(TO_BASE64(s))", "s"),
    ("MASK(s)", "regexp_replace(regexp_replace(regexp_replace(regexp_replace(s, '[^A-Za-z0-9]', '-', 'g'), "
     "'[A-Z]', 'X', 'g'), '[a-z]', 'x', 'g'), '[0-9]', 'n', 'g')"),
    ("IS_DIGIT(s)", "regexp_full_match(s, '[0-9]+')"),
    ("IS_ALPHA(s)", "regexp_full_match(s, '\\pL+')"),
    ("JSON_VALUE('{\"a\": {\"b\": [1, \"é\"]}}', '$.a.b[1]')", "'é'"),
    *("ABS(m)", "ABS(x)", "SIGN(m)", "FLOOR(x)", "CEIL(x)", "TRUNC(x)", "ROUND(x)"),
    ("ABS(n)", "TRY_CAST(ABS(CAST(n AS HUGEINT)) AS BIGINT)"),
    ("SIGN(x)", "CASE WHEN isnan(x) OR x = 0 THEN x ELSE SIGN(x) END"),
    ("ROUND(n, -1)", "TRY(CAST(ROUND(CAST(n AS HUGEINT), -1) AS BIGINT))"),
    ("ROUND(x, 1)", "ROUND(x, 1)"),
    ("TRUNC(n)", "n"),
    ("MOD(n, m)", "n % NULLIF(m, 0)"),
    ("MOD(x, y)", "CASE WHEN abs(x / y) < 2**53 THEN x % NULLIF(y, 0.0) + 0.0 END"),
    ("SQRT(x)", SOME.format("x >= 0 ", "SQRT(x)")),
    ("LN(x)", SOME.format("x > 0", "LN(x)")),
    ("LOG(x)", SOME.format("x > 0", "LN(x)")),
    ("LOG(2, x)", SOME.format("x > 0", "LN(x) / LN(2)")),
    ("LOG2(x)", SOME.format("x > 0", "LOG2(x)")),
    ("LOG10(x)", SOME.format("x > 0", "LOG10(x)")),
    ("EXP(x)", "EXP(x)"),
    *("POWER(x, y)", "CBRT(x)", "ATAN(x)", "ATAN2(x, y)", "DEGREES(x)", "RADIANS(x)", "SINH(x)", "COSH(x)"),
    *("TANH(x)", "PI()"),
    ("E()", "EXP(1.0::DOUBLE)"),
    *((f"{name}(x)", f"{name}(CASE WHEN isfinite(x) THEN x WHEN x IS NULL THEN NULL ELSE 'nan'::DOUBLE END)")
      for name in ("SIN", "COS", "TAN")),
    *((f"{name}(x)", SOME.format("abs(x) <= 1", f"{name}(x)")) for name in ("ASIN", "ACOS")),
    ("COT(x)", "CASE WHEN isfinite(x) THEN 1 / NULLIF(TAN(x), 0) WHEN x IS NOT NULL THEN 'nan'::DOUBLE END"),
    *("COALESCE(n, m)", "IFNULL(n, m)", "NULLIF(n, m)", "GREATEST(n, m)", "LEAST(s, t)"),
    "COALESCE(s, t, 'z')",
    ("NVL2(n, s, t)", "CASE WHEN n IS NOT NULL THEN s ELSE t END"),
    ("IF(n > m, s, t)", "CASE WHEN n > m THEN s ELSE t END"),
    ("ELT(m, s, t)", "CASE m WHEN 1 THEN s WHEN 2 THEN t END"),
    ("FIELD(s, t, 'a')", "CASE WHEN s = t THEN 1 WHEN s = 'a' THEN 2 ELSE 0 END"),
    ("ARRAY_LENGTH(a)", "len(a)"),
    ("ARRAY_CONTAINS(a, m)", "list_contains(a, m)"),
    ("ARRAY_MAX(a)", "list_max(a)"),
    ("ARRAY_MIN(a)", "list_min(a)"),
    ("ARRAY_SORT(a)", "list_sort(a, 'ASC', 'NULLS LAST')"),
    ("ARRAY_SORT(a, 'DESC')", "list_sort(a, 'DESC', 'NULLS LAST')"),
    ("ARRAY_REVERSE(a)", "list_reverse(a)"),
    ("ARRAY_JOIN(a, '-')",
     "CASE WHEN len(a) = 0 OR list_count(a) = 0 THEN '' ELSE array_to_string(a, '-') END"),
    ("ARRAY_CONCAT(a, b)", SOME.format("a IS NOT NULL AND b IS NOT NULL", "list_concat(a, b)")),
    ("SLICE(a, 1, 2)", "a[1:2]"),
    ("SLICE(a, 2, 3)", "a[2:3]"),
    *("YEAR(ts)", "QUARTER(ts)", "MONTH(ts)", "WEEK(ts)", "DAY(ts)", "HOUR(ts)", "MINUTE(ts)", "SECOND(ts)"),
    "ISODOW(ts)",
    *("DAYOFMONTH(ts)", "DAYOFYEAR(ts)"),
    ("DOY(ts)", "dayofyear(ts)"),
    ("EXTRACT(QUARTER FROM ts)", "quarter(ts)"),
    ("DAYOFWEEK(ts)", "dayofweek(ts) + 1"),
    *(f"DATE_TRUNC('{unit}', ts)" for unit in UNITS),
    ("DATE_TRUNC(month, ts)", "DATE_TRUNC('month', ts)"),
    *("ts + INTERVAL '1' MONTH", "ts - INTERVAL '2' YEAR", "ts + INTERVAL '90' MINUTE"),
    "ts - INTERVAL '1' DAY",
    ("TIMESTAMPADD(MONTH, 13, ts)", "ts + INTERVAL '13' MONTH"),
    ("TIMESTAMPADD(DAY, m, ts)", "ts + to_days(CAST(m AS INT))"),
    ("TIMESTAMPADD(QUARTER, m, ts)", "ts + to_months(CAST(m * 3 AS INT))"),
    ("DATESUB(HOUR, m, ts)", "ts - to_hours(m)"),
    *((f"TIMESTAMPDIFF({unit}, ts, later)", f"datesub('{unit}', ts, later)")
      for unit in UNITS),
    ("ts AT TIME ZONE 'Europe/Helsinki'", "timezone('Europe/Helsinki', timezone('UTC', ts))"),
    ("CONVERT_TZ(ts, 'UTC', 'America/St_Johns')", "timezone('America/St_Johns', timezone('UTC', ts))"),
    ("CONVERT_TZ(ts, 'Europe/Helsinki', 'UTC')",
     "timezone('UTC', timezone('Europe/Helsinki', ts)) - INTERVAL (CASE WHEN ts = "
     "'2026-10-25 03:30:00' THEN 1 ELSE 0 END) HOUR"),
    ("FROM_UNIXTIME(m)", "make_timestamp(m * 1000)"),
    ("TO_TIMESTAMP_LTZ(m, 0)", "make_timestamp(m * 1000000)"),
    ("UNIX_TIMESTAMP(ts)", "CAST(floor(epoch_us(ts) / 1000) AS BIGINT)"),
    ("FORMAT_TIMESTAMP(ts, 'yyyy/MM/dd HH:mm:ss.SSS EEE MMM')", "strftime(ts, '%Y/%m/%d %H:%M:%S.%g %a %b')"),
    ("DATE_FORMAT(ts, 'hh a DDD')", "strftime(ts, '%I %p %j')"),
    ("TIMESTAMPTOSTRING(m, 'yyyy-MM-dd HH:mm', 'Asia/Kolkata')",
     "strftime(timezone('Asia/Kolkata', timezone('UTC', make_timestamp(m * 1000))), '%Y-%m-%d %H:%M')"),
    ("PARSE_TIMESTAMP(CAST(ts AS VARCHAR), 'yyyy-MM-dd HH:mm:ss.SSSSSS')", "ts"),
    ("TO_TIMESTAMP(FORMAT_TIMESTAMP(ts, 'dd.MM.yyyy HH:mm'), 'dd.MM.yyyy HH:mm')",
     "date_trunc('minute', ts)"),
    ("TO_TIMESTAMP(FORMAT_TIMESTAMP(ts, 'yyyy-MM-dd'), 'yyyy-MM-dd')", "CAST(CAST(ts AS DATE) AS TIMESTAMP)"),
    ("STRINGTOTIMESTAMP(FORMAT_TIMESTAMP(ts, 'yyyyMMdd HH'), 'yyyyMMdd HH')",
     "epoch_ms(date_trunc('hour', ts))"),
    ("PARSE_DATE(FORMAT_TIMESTAMP(ts, 'yyyyMMdd'), 'yyyyMMdd')", "CAST(ts AS DATE)"),
]  # fmt: skip

BY_HAND: dict[str, Any] = {
    "INITCAP('o''neil  ÉLAN a-b')": "O'neil  Élan A-b",
    "INITCAP('')": "",
    "AS_VALUE('a')": "a",
    "SUBSTRING('abc', 1, NULL)": None,
    "ARRAY_DISTINCT(ARRAY[2, 1, 2, NULL, NULL])": [2, 1, None],
    "ARRAY_UNION(ARRAY[3, 1, 3], ARRAY[2, 1])": [3, 1, 2],
    "ARRAY_INTERSECT(ARRAY[3, 1, 3], ARRAY[1, 3])": [3, 1],
    "ARRAY_EXCEPT(ARRAY[3, 1, 3, 2], ARRAY[2])": [3, 1],
    "CONVERT_TZ(TIMESTAMP '2026-03-29 03:30:00', 'Europe/Helsinki', 'UTC')": datetime(2026, 3, 29, 1, 30),
    "CONVERT_TZ(TIMESTAMP '2026-10-25 03:30:00', 'Europe/Helsinki', 'UTC')": datetime(2026, 10, 25, 0, 30),
    "CONVERT_TZ(TIMESTAMP '2026-10-25 03:30:00', 'Europe/Helsinki', 'Asia/Kolkata')": datetime(
        2026, 10, 25, 6
    ),
    "PARSE_TIMESTAMP('2026-07-01 12:00', 'yyyy-MM-dd HH:mm', 'Europe/Helsinki')": datetime(2026, 7, 1, 9),
    "STRINGTOTIMESTAMP('2026-01-01 02', 'yyyy-MM-dd HH', 'Europe/Helsinki')": 1_767_225_600_000,
    "TIMESTAMPTOSTRING(ROWTIME, 'HH:mm')": "00:00",
    "DATEADD('day', 31, CAST('2026-01-01' AS DATE))": date(2026, 2, 1),
    "TIMESTAMPSUB(YEAR, 1, TIMESTAMP '2024-02-29 00:00:00')": datetime(2023, 2, 28),
    "TIMESTAMPDIFF(MINUTE, ROWTIME, ROWTIME + INTERVAL '90' SECOND)": 1,
    "TIMESTAMP '2026-01-31 00:00:00' + INTERVAL '1' MONTH": datetime(2026, 2, 28),
    "ROWTIME AT TIME ZONE 'Europe/Helsinki'": datetime(2026, 1, 1, 2),
    "STRUCT(a := 1, b := 'x')->b": "x",
    "FROM_BASE64('!')": None,
    "JSON_VALUE('{\"a\": null}', '$.a')": None,
    "GREATEST(1, NULL, 3)": 3,
    "REGEXP_REPLACE('a.b', '[.]', '$0$0')": "a..b",
    "MAP_KEYS(MAP('x' := 1, 'y' := NULL))": ["x", "y"],
    "MAP_VALUES(MAP('x' := 1, 'y' := NULL))": [1, None],
    "MAP_ENTRIES(MAP('x' := 1))": [{"key": "x", "value": 1}],
    "MAP_CONTAINS_KEY(MAP('x' := 1), 'y')": False,
}


def test_each_function_gives_what_is_written_down() -> None:
    wrong = []
    for text, expected in BY_HAND.items():
        got = value(text, ROWTIME=datetime(2026, 1, 1))
        got = got.to_list() if isinstance(got, pl.Series) else got
        wrong += [f"{text}: {got!r}"] if got != expected else []
    assert not wrong, "\n".join(wrong)


def test_no_function_is_left_out() -> None:
    texts = [*BY_HAND, *(case if isinstance(case, str) else case[0] for case in CASES)]
    tried = {
        FUNCTIONS[name]
        for text in texts
        for name in re.findall(r"[A-Z_0-9]+(?=\()", text)
        if name in FUNCTIONS
    }
    assert not [name for name, one in FUNCTIONS.items() if one not in tried]


REFUSED = {
    "ROWTIME AT TIME ZONE 'Europe/Helsinky'": "'Europe/Helsinky' must be a time zone",
    "TIMESTAMP '2026-01-01 00:00:00' AT TIME ZONE 'UTC'": "AT TIME ZONE of a constant",
    "LPAD('a', 5, '')": "the padding of LPAD must have a character",
    "LPAD('a', 1000000)": "the length of LPAD must be from 0 to 100,000, got 1000000",
    "SPLIT_PART('a', ',', 0)": "SPLIT_PART counts from 1",
    "REGEXP_EXTRACT('(a)', 'ab', 2)": "the pattern '(a)' has groups 0 to 1, got 2",
    "REGEXP_REPLACE('a', '(a)', '\\1')": "the groups of a replacement are written $1",
    "TIMESTAMPADD(FORTNIGHT, 1, ROWTIME)": "the unit of TIMESTAMPADD must be one of second,",
    "TO_TIMESTAMP_LTZ(1, 6)": "the precision of TO_TIMESTAMP_LTZ must be 0 or 3",
    "ARRAY_SORT(ARRAY[1], 'UP')": "the order of ARRAY_SORT must be 'ASC' or 'DESC'",
    "ARRAY_UNION(ARRAY[1], ARRAY['a'])": "ARRAY_UNION takes arrays of one type",
    "PARSE_TIMESTAMP('1', 'HH')": "the pattern 'HH' must have a year, a month and a day",
    "STRUCT(1)": "STRUCT names its fields",
    "DATE_FORMAT(ROWTIME, '%Y-%m')": "'Y' in a time's pattern is not supported",
}


def test_what_can_not_be_is_refused() -> None:
    wrong = []
    for text, message in REFUSED.items():
        try:
            wrong.append(f"{text}: {value(text, ROWTIME=datetime(2026, 1, 1))!r}")
        except SqlError as error:
            wrong += [] if error.message.startswith(message) else [f"{text}: {error.message}"]
    assert not wrong, "\n".join(wrong)


def rows_of(text: str) -> list[Any]:
    (statement,) = statements_of(f"SELECT {text}")
    make, select = Scalars(FRAME.schema), statement.node
    one = Expressions(make, lambda node: make.column(node.name)).scalar(select.select.expressions[0])
    values = FRAME.select(one.expr.alias("_"))["_"].to_list()
    written = FRAME.select(eval(one.text, {"pl": pl, "datetime": datetime}).alias("_"))["_"].to_list()
    assert all(map(same, values, written)), one.text
    return values * FRAME.height if len(values) < FRAME.height else values


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (
            (math.isnan(one) and math.isnan(other))
            or (one == other == 0 and math.copysign(1, one) == math.copysign(1, other))
            or (one != 0 and math.isclose(one, other, rel_tol=1e-12))
        )
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def test_each_function_gives_what_duckdb_gives() -> None:
    connection = duckdb.connect()
    connection.register("rows", FRAME.to_arrow())
    connection.execute("SET TimeZone = 'UTC'")
    wrong = []
    for case in CASES:
        ours, theirs = case if isinstance(case, tuple) else (case, case)
        values = rows_of(ours)
        given = [row[0] for row in connection.execute(f"SELECT {theirs} FROM rows").fetchall()]
        wrong += [
            f"{ours}, row {at}: {one!r}, DuckDB {other!r}"
            for at, (one, other) in enumerate(zip(values, given, strict=True))
            if not same(one, other)
        ]
    assert not wrong, "\n".join(wrong)
