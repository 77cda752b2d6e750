"""Functions of other systems that have other names here: what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_OF_RUN = "its value would change when a row is read again; generate it where rows are sent"
_BYTES = "BYTES are kept as they are; TO_BASE64(text) and FROM_BASE64(text) are of text"
_URL = "write REGEXP_EXTRACT('https?://([^/?#]*)', url, 1), for example, or split it in Python"
_MAP = "write a STRUCT of the fields that are needed"
_LAMBDA = "functions of functions: write the stream in Python"
_JSON = "write JSON_VALUE(text, '$.field'), which gives objects and arrays as JSON"
_TIME_OF_DAY = "write FORMAT_TIMESTAMP(time, 'HH:mm:ss')"
_DAYS = "write UNIX_TIMESTAMP(time) / 86400000"
_PRESENT = "compare times of the rows, such as ROWTIME"
INSTEAD: dict[str, str] = {
    **dict.fromkeys(
        ("TO_CHAR", "STRFTIME", "DATETOSTRING"), "write FORMAT_TIMESTAMP(time, 'yyyy-MM-dd HH:mm:ss')"
    ),
    **dict.fromkeys(
        ("STRPTIME", "STRINGTODATE"),
        "write PARSE_TIMESTAMP(text, 'yyyy-MM-dd HH:mm:ss'), or CAST(text AS TIMESTAMP) of ISO 8601",
    ),
    **dict.fromkeys(("TIMESTAMP_MILLIS", "EPOCH_MS"), "write FROM_UNIXTIME(ms)"),
    **dict.fromkeys(
        ("FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP", "TIMEZONE"),
        "write CONVERT_TZ(time, 'UTC', 'Europe/Helsinki')",
    ),
    **dict.fromkeys(("DATE_ADD", "TIMEADD", "ADD_MONTHS"), "write time + INTERVAL '1' DAY, for example"),
    **dict.fromkeys(("DATE_SUB", "TIMESUB"), "write time - INTERVAL '1' DAY, for example"),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF"), "write TIMESTAMPDIFF(DAY, a, b), from a to b"),
    **dict.fromkeys(
        ("TIME_BUCKET", "DATE_BIN", "TOSTARTOFMINUTE"),
        "write DATE_TRUNC('minute', time), or a window, WINDOW TUMBLING (SIZE 1 MINUTE)",
    ),
    **dict.fromkeys(("FORMAT_TIME", "PARSE_TIME"), _TIME_OF_DAY),
    **dict.fromkeys(("FROM_DAYS", "UNIX_DATE"), _DAYS),
    **dict.fromkeys(
        ("CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "CURRENT_ROW_TIMESTAMP", "CURRENT_WATERMARK"), _PRESENT
    ),
    **dict.fromkeys(
        ("JSON_EXTRACT", "JSON_QUERY", "JSON_ITEMS", "JSON_RECORDS", "JSON_KEYS", "JSON_ARRAY_LENGTH"), _JSON
    ),
    **dict.fromkeys(
        ("JSON_ARRAY_CONTAINS", "JSON_CONCAT", "JSON_EXISTS", "IS_JSON_STRING", "JSON_QUOTE", "JSON_UNQUOTE"),
        _JSON,
    ),
    **dict.fromkeys(
        ("TO_JSON_STRING", "JSON_STRING", "JSON_OBJECT", "JSON_ARRAY"),
        "select the columns: rows are written as JSON",
    ),
    **dict.fromkeys(("SIZE", "ARRAY_SIZE", "LIST_LENGTH"), "write ARRAY_LENGTH(array)"),
    **dict.fromkeys(("LIST_CONTAINS", "HAS", "ARRAY_POSITION"), "write ARRAY_CONTAINS(array, value)"),
    **dict.fromkeys(("ARRAY_SLICE", "LIST_SLICE"), "write SLICE(array, 2, 3), both places counted from 1"),
    **dict.fromkeys(("ARRAY_REMOVE", "ARRAY_APPEND", "ARRAY_PREPEND"), "write ARRAY_EXCEPT or ARRAY_CONCAT"),
    **dict.fromkeys(("ELEMENT", "ELEMENT_AT"), "write array[1]"),
    **dict.fromkeys(("ENTRIES", "GENERATE_SERIES", "SEQUENCE"), "write ARRAY[1, 2, 3]"),
    **dict.fromkeys(("AS_MAP", "MAP_UNION", "MAP_FROM_ARRAYS"), "write MAP['key', value]"),
    **dict.fromkeys(("SPLIT_TO_MAP", "STR_TO_MAP"), _MAP),
    **dict.fromkeys(("TRANSFORM", "REDUCE", "ARRAY_FILTER"), _LAMBDA),
    **dict.fromkeys(("STRING_TO_ARRAY", "REGEXP_SPLIT_TO_ARRAY"), "write SPLIT(text, ',')"),
    **dict.fromkeys(("REGEXP_MATCHES", "RLIKE", "SIMILAR"), "write REGEXP_LIKE(text, pattern)"),
    **dict.fromkeys(("REGEXP_SUBSTR", "REGEXP_EXTRACT_ALL"), "write REGEXP_EXTRACT(pattern, text)"),
    "REGEXP_INSTR": "write INSTR(text, REGEXP_EXTRACT(pattern, text))",
    "OVERLAY": "write LEFT(text, 2) || 'new' || SUBSTRING(text, 5)",
    "PRINTF": "write CONCAT(a, ' ', b)",
    **dict.fromkeys(
        ("CHR", "ASCII", "BIN", "HEX", "UNHEX", "ENCODE", "DECODE", "TO_BYTES", "FROM_BYTES"), _BYTES
    ),
    **dict.fromkeys(
        ("BIGINT_FROM_BYTES", "DOUBLE_FROM_BYTES", "INT_FROM_BYTES"),
        "name the column's format in the CREATE STREAM, which decodes it",
    ),
    **dict.fromkeys(
        ("MD5", "SHA1", "SHA2", "SHA224", "SHA256", "SHA384", "SHA512"),
        "make it in Python; MASK(text) hides one",
    ),
    **dict.fromkeys(
        ("MASK_LEFT", "MASK_RIGHT", "MASK_KEEP_LEFT", "MASK_KEEP_RIGHT"),
        "write LEFT(text, 2) || MASK(SUBSTRING(text, 3)), for example",
    ),
    **dict.fromkeys(
        ("URL_EXTRACT_HOST", "URL_EXTRACT_PATH", "URL_EXTRACT_PORT", "URL_EXTRACT_PROTOCOL", "PARSE_URL"),
        _URL,
    ),
    **dict.fromkeys(("URL_EXTRACT_QUERY", "URL_EXTRACT_FRAGMENT", "URL_EXTRACT_PARAMETER"), _URL),
    **dict.fromkeys(("URL_ENCODE_PARAM", "URL_DECODE_PARAM", "URL_ENCODE", "URL_DECODE"), _URL),
    **dict.fromkeys(("RANDOM", "RAND", "RAND_INTEGER", "UUID"), _OF_RUN),
    "GEO_DISTANCE": "write ACOS, SIN and COS of RADIANS(latitude)",
    "TYPEOF": "DESCRIBE shows the types of columns",
    **dict.fromkeys(("IS_DECIMAL",), "write CAST(text AS DOUBLE) IS NOT NULL"),
    "DIV": "write a / b, which is whole of whole numbers",
    "ISNULL": "write x IS NULL",
    **dict.fromkeys(
        ("UNIQ", "NDV", "APPROXIMATE_COUNT_DISTINCT", "HLL", "COUNTDISTINCT"),
        "write APPROX_COUNT_DISTINCT(column)",
    ),
    **dict.fromkeys(
        ("PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "QUANTILE", "QUANTILETDIGEST"),
        "write PERCENTILE_APPROX(column, 0.99)",
    ),
    **dict.fromkeys(
        ("APPROX_MOST_FREQUENT", "APPROX_TOP_COUNT", "MODE"),
        "write APPROX_TOP_K(column, 10)",
    ),
    **dict.fromkeys(("COUNT_IF", "COUNTIF", "SUM_IF", "SUMIF"), "write COUNT(*) FILTER (WHERE …)"),
    **dict.fromkeys(
        ("ARRAY_AGG", "LISTAGG", "STRING_AGG", "GROUP_CONCAT", "COLLECT"),
        "write SAMPLE(column, 100)",
    ),
    **dict.fromkeys(("CORRELATION", "COVAR_POP", "COVAR_SAMP"), "write VARIANCE of each column"),
    **dict.fromkeys(("STDDEV_POP", "VAR_POP"), "write STDDEV_SAMP(column) or VAR_SAMP(column)"),
    "ATTR": "write MAX(column), which is the value where all are the same",
    **dict.fromkeys(
        ("LAG", "LEAD", "ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE"),
        "OVER looks at other rows: aggregate by a window",
    ),
}
"""What to write in place of a function, by upper-case names."""

KSQLDB = """
    ABS ACOS ASIN ATAN ATAN2 CBRT CEIL COS COSH COT DEGREES ENTRIES EXP FLOOR GENERATE_SERIES GEO_DISTANCE
    GREATEST LEAST LN LOG PI POWER RADIANS RANDOM ROUND SIGN SIN SINH SQRT TAN TANH TRUNC
    ARRAY_CONCAT ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_JOIN ARRAY_LENGTH ARRAY_MAX
    ARRAY_MIN ARRAY_REMOVE ARRAY_SORT ARRAY_UNION AS_MAP ELT FIELD JSON_ARRAY_CONTAINS MAP_KEYS MAP_VALUES
    MAP_UNION SLICE TRANSFORM REDUCE
    CHR CONCAT CONCAT_WS ENCODE EXTRACTJSONFIELD FROM_BYTES INITCAP INSTR IS_JSON_STRING JSON_ARRAY_LENGTH
    JSON_CONCAT JSON_ITEMS JSON_KEYS JSON_RECORDS LCASE LEN LPAD MASK MASK_KEEP_LEFT MASK_KEEP_RIGHT MASK_LEFT
    MASK_RIGHT REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_REPLACE REGEXP_SPLIT_TO_ARRAY REPLACE RPAD SPLIT
    SPLIT_TO_MAP SUBSTRING TO_BYTES TO_JSON_STRING TRIM UCASE UUID
    BIGINT_FROM_BYTES DOUBLE_FROM_BYTES INT_FROM_BYTES COALESCE IFNULL NULLIF
    CONVERT_TZ DATEADD DATESUB DATETOSTRING FORMAT_DATE FORMAT_TIME FORMAT_TIMESTAMP FROM_DAYS FROM_UNIXTIME
    PARSE_DATE PARSE_TIME PARSE_TIMESTAMP STRINGTODATE STRINGTOTIMESTAMP TIMEADD TIMESUB TIMESTAMPADD
    TIMESTAMPSUB TIMESTAMPTOSTRING UNIX_DATE UNIX_TIMESTAMP
    URL_DECODE_PARAM URL_ENCODE_PARAM URL_EXTRACT_FRAGMENT URL_EXTRACT_HOST URL_EXTRACT_PARAMETER
    URL_EXTRACT_PATH URL_EXTRACT_PORT URL_EXTRACT_PROTOCOL URL_EXTRACT_QUERY
    ATTR AVG COLLECT_LIST COLLECT_SET CORRELATION COUNT COUNT_DISTINCT EARLIEST_BY_OFFSET HISTOGRAM
    LATEST_BY_OFFSET MAX MIN STDDEV_SAMP SUM TOPK TOPKDISTINCT EXPLODE
"""
"""The functions of ksqlDB."""

FLINK = """
    POWER ABS SQRT LN LOG10 LOG2 LOG EXP CEIL CEILING FLOOR SIN SINH COS TAN TANH COT ASIN ACOS ATAN ATAN2
    COSH DEGREES RADIANS SIGN ROUND PI E RAND RAND_INTEGER UUID BIN HEX TRUNCATE UNHEX MOD
    CHAR_LENGTH CHARACTER_LENGTH UPPER LOWER TRIM LTRIM RTRIM BTRIM REPEAT REGEXP_REPLACE OVERLAY SUBSTRING
    REPLACE TRANSLATE REGEXP_COUNT REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_INSTR REGEXP_SUBSTR INITCAP CONCAT
    CONCAT_WS LPAD RPAD FROM_BASE64 TO_BASE64 ASCII CHR DECODE ENCODE INSTR LEFT RIGHT LOCATE URL_DECODE
    URL_ENCODE PARSE_URL PRINTF REGEXP REVERSE SPLIT SPLIT_INDEX STR_TO_MAP STARTSWITH ENDSWITH SUBSTR ELT
    CURRENT_DATE CURRENT_TIME LOCALTIME CURRENT_ROW_TIMESTAMP CURRENT_WATERMARK YEAR QUARTER MONTH WEEK
    DAYOFYEAR DAYOFMONTH DAYOFWEEK HOUR MINUTE SECOND DATE_FORMAT TIMESTAMPADD TIMESTAMPDIFF CONVERT_TZ
    FROM_UNIXTIME UNIX_TIMESTAMP TO_DATE TO_TIMESTAMP_LTZ TO_TIMESTAMP
    NULLIF COALESCE IF IFNULL IS_ALPHA IS_DECIMAL IS_DIGIT GREATEST LEAST TYPEOF
    CARDINALITY ELEMENT ARRAY_APPEND ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_POSITION ARRAY_PREPEND ARRAY_REMOVE
    ARRAY_REVERSE ARRAY_SLICE ARRAY_SORT ARRAY_UNION ARRAY_CONCAT ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_MAX
    ARRAY_JOIN ARRAY_MIN MAP_KEYS MAP_VALUES MAP_UNION MAP_ENTRIES MAP_FROM_ARRAYS
    JSON_EXISTS JSON_STRING JSON_VALUE JSON_QUERY JSON_OBJECT JSON_ARRAY JSON_QUOTE JSON_UNQUOTE
    MD5 SHA1 SHA224 SHA256 SHA384 SHA512 SHA2
    COUNT AVG SUM MAX MIN STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP COLLECT VARIANCE RANK DENSE_RANK ROW_NUMBER
    LEAD LAG FIRST_VALUE LAST_VALUE LISTAGG NTILE ARRAY_AGG APPROX_COUNT_DISTINCT PERCENTILE
"""
"""The functions of Flink SQL."""


def unknown_function(name: str, known: Iterable[str]) -> str:
    """The message about an unknown function: the equivalent here, or the nearest name.

    >>> unknown_function("Strftime", [])
    "no function is called STRFTIME; write FORMAT_TIMESTAMP(time, 'yyyy-MM-dd HH:mm:ss')"
    >>> unknown_function("UPER", ["UPPER"]), unknown_function("XYZ", ["UPPER"])
    ('no function is called UPER; did you mean UPPER?', 'no function is called XYZ; SHOW FUNCTIONS lists all')
    """
    upper = name.upper()
    near = get_close_matches(upper, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else "SHOW FUNCTIONS lists all"
    return f"no function is called {upper}; {INSTEAD.get(upper, hint)}"
