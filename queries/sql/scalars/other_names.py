"""Functions of other systems that are not here by their names: what to write in their place."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_ZONES = "times are in UTC; add an INTERVAL to one, or take it off"
INSTEAD: dict[str, str] = {
    **dict.fromkeys(
        ("TIMESTAMPTOSTRING", "DATETOSTRING", "FORMAT_DATE", "DATE_FORMAT", "TO_CHAR", "STRFTIME"),
        "write FORMAT_TIMESTAMP(time, 'yyyy-MM-dd HH:mm:ss')",
    ),
    **dict.fromkeys(
        ("STRINGTOTIMESTAMP", "STRINGTODATE", "PARSE_DATE", "TO_DATE", "TO_TIMESTAMP", "STRPTIME"),
        "write PARSE_TIMESTAMP(text, 'yyyy-MM-dd HH:mm:ss'), or CAST(text AS TIMESTAMP) of ISO 8601",
    ),
    **dict.fromkeys(("TO_TIMESTAMP_LTZ", "TIMESTAMP_MILLIS", "EPOCH_MS"), "write FROM_UNIXTIME(ms)"),
    **dict.fromkeys(("CONVERT_TZ", "FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP", "TIMEZONE"), _ZONES),
    **dict.fromkeys(
        ("DATEADD", "DATE_ADD", "TIMEADD", "TIMESTAMPADD"), "write time + INTERVAL '1' DAY, for example"
    ),
    **dict.fromkeys(
        ("DATESUB", "DATE_SUB", "TIMESUB", "TIMESTAMPSUB"), "write time - INTERVAL '1' DAY, for example"
    ),
    **dict.fromkeys(
        ("DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"),
        "write (UNIX_TIMESTAMP(a) - UNIX_TIMESTAMP(b)) / 1000, in seconds",
    ),
    **dict.fromkeys(
        ("TIME_BUCKET", "DATE_BIN", "TOSTARTOFMINUTE"),
        "write DATE_TRUNC('minute', time), or a window, WINDOW TUMBLING (SIZE 1 MINUTE)",
    ),
    **dict.fromkeys(
        ("JSON_EXTRACT", "JSON_QUERY", "GET_JSON_OBJECT", "JSON_EXTRACT_STRING"),
        "write EXTRACTJSONFIELD(text, '$.field')",
    ),
    **dict.fromkeys(("SIZE", "ARRAY_SIZE", "LIST_LENGTH"), "write ARRAY_LENGTH(array)"),
    **dict.fromkeys(("LIST_CONTAINS", "HAS"), "write ARRAY_CONTAINS(array, value)"),
    **dict.fromkeys(("SPLIT_PART", "SPLIT_INDEX", "STRING_TO_ARRAY"), "write SPLIT(text, ',')[1]"),
    **dict.fromkeys(("CHARINDEX", "LOCATE", "STRPOS"), "write INSTR(text, part)"),
    **dict.fromkeys(("REGEXP", "REGEXP_MATCHES", "RLIKE"), "write REGEXP_LIKE(text, pattern)"),
    "MOD": "write a % b",
    "DIV": "write a / b, which is whole of whole numbers",
    "LOG": "write LN(x), and LN(x) / LN(10) to the base 10",
    "LOG10": "write LN(x) / LN(10)",
    "LOG2": "write LN(x) / LN(2)",
    "ISNULL": "write x IS NULL",
    "NVL2": "write IF(x IS NOT NULL, a, b)",
    "DECODE": "write CASE x WHEN a THEN b ELSE c END",
    **dict.fromkeys(
        ("UNIQ", "NDV", "APPROXIMATE_COUNT_DISTINCT", "HLL", "COUNTDISTINCT"),
        "write APPROX_COUNT_DISTINCT(column)",
    ),
    **dict.fromkeys(
        ("PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "QUANTILE", "QUANTILETDIGEST"),
        "write PERCENTILE_APPROX(column, 0.99)",
    ),
    **dict.fromkeys(("APPROX_MOST_FREQUENT", "APPROX_TOP_COUNT", "MODE"), "write APPROX_TOP_K(column, 10)"),
    **dict.fromkeys(("COUNT_IF", "COUNTIF", "SUM_IF", "SUMIF"), "write COUNT(*) FILTER (WHERE …)"),
    **dict.fromkeys(("ARRAY_AGG", "LISTAGG", "STRING_AGG", "GROUP_CONCAT"), "write SAMPLE(column, 100)"),
}
"""What to write in place of a function, by upper-case names."""


def unknown_function(name: str, known: Iterable[str]) -> str:
    """What is said of a function that isn't known: what means the same here, or the nearest name.

    >>> unknown_function("Date_Format", [])
    "no function is called DATE_FORMAT; write FORMAT_TIMESTAMP(time, 'yyyy-MM-dd HH:mm:ss')"
    >>> unknown_function("UPER", ["UPPER"]), unknown_function("XYZ", ["UPPER"])
    ('no function is called UPER; did you mean UPPER?', 'no function is called XYZ; SHOW FUNCTIONS lists all')
    """
    upper = name.upper()
    near = get_close_matches(upper, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else "SHOW FUNCTIONS lists all"
    return f"no function is called {upper}; {INSTEAD.get(upper, hint)}"
