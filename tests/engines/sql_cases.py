"""What systems of streaming SQL are held to, in cases of our own: rows in, a query, rows out.

The situations are those that the query-validation tests of ksqlDB and the golden outputs of Arroyo go
through: edges of windows, windows that overlap, sessions that grow together, late rows, HAVING, distinct
counts, arrays to rows, event times in columns, joins with tables and between streams. Statements, data and
results are our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DAY = 1_767_225_600_000
"""2026-01-01 in milliseconds."""


@dataclass(frozen=True)
class Case:
    """Streams by their columns, rows by their streams, a query, and its rows in any order.

    `late` is how many messages come too late, `engines` whether the query is one of windows, which brokers
    run as well, and `spark` whether Spark does, where each takes some seconds.
    """

    name: str
    rows: dict[str, list[tuple[Any, ...]]]
    query: str
    expected: list[tuple[Any, ...]]
    streams: str = "CREATE STREAM visits (at BIGINT, who VARCHAR, page VARCHAR, n INT, tags ARRAY<VARCHAR>)"
    tables: str = ""
    late: int = 0
    engines: bool = True
    spark: bool = False


def clock(second: float) -> str:
    """A second of the day as an answer has it."""
    minutes, rest = divmod(second, 60)
    return f"2026-01-01T{int(minutes // 60):02d}:{int(minutes % 60):02d}:{int(rest):02d}"


def visit(
    second: float, who: str | None = None, page: str | None = None, n: int | None = None
) -> tuple[Any, ...]:
    return (DAY + int(second * 1000), who, page, n)


EDGES = [visit(0, "a"), visit(9.999, "a"), visit(10, "a"), visit(10.001, "b"), visit(25, "b")]
HOPS = [visit(0, "a"), visit(14, "a"), visit(35, "a")]
SESSIONS = [visit(0, "a"), visit(14, "a"), visit(7, "a"), visit(3, "b"), visit(40, "a")]
SIGNUPS = "CREATE TABLE people (who VARCHAR PRIMARY KEY, town VARCHAR)"
PAIRS = (
    "CREATE STREAM asks (at BIGINT, id INT, x VARCHAR)",
    "CREATE STREAM replies (at BIGINT, id INT, y VARCHAR)",
)

CASES = [
    Case(
        "a window begins with its start and ends before its end",
        {"visits": EDGES},
        "SELECT window_start, window_end, who, COUNT(*) AS n FROM visits WINDOW TUMBLING (SIZE 10 SECONDS)"
        " GROUP BY who EMIT FINAL",
        [
            (clock(0), clock(10), "a", 2),
            (clock(10), clock(20), "a", 1),
            (clock(10), clock(20), "b", 1),
            (clock(20), clock(30), "b", 1),
        ],
    ),
    Case(
        "a row is in each hopping window that covers it, also those that begin before the first row",
        {"visits": HOPS},
        "SELECT WINDOWSTART AS since, COUNT(*) AS n FROM visits WINDOW HOPPING (SIZE 20 SECONDS, ADVANCE"
        " BY 10"
        " SECONDS) EMIT FINAL",
        [
            ("2025-12-31T23:59:50", 1),
            (clock(0), 2),
            (clock(10), 1),
            (clock(20), 1),
            (clock(30), 1),
        ],
        spark=True,
    ),
    Case(
        "two sessions grow together by a row between them, and a pause ends one",
        {"visits": SESSIONS},
        "SELECT who, window_start, COUNT(*) AS n FROM visits WINDOW SESSION (10 SECONDS) GROUP BY who"
        " EMIT FINAL",
        [("a", clock(0), 3), ("a", clock(40), 1), ("b", clock(3), 1)],
    ),
    Case(
        "a pause of exactly the gap ends no session, one of a millisecond more does",
        {"visits": [visit(0, "a"), visit(10, "a"), visit(20.001, "a"), visit(4, "b"), visit(50, "b")]},
        "SELECT who, window_start, window_end, COUNT(*) AS n FROM visits WINDOW SESSION (10 SECONDS) GROUP BY"
        " who EMIT FINAL",
        [
            ("a", clock(0), clock(20), 2),
            ("a", f"{clock(20)}.001000", f"{clock(30)}.001000", 1),
            ("b", clock(4), clock(14), 1),
            ("b", clock(50), clock(60), 1),
        ],
        spark=True,
    ),
    Case(
        "Flink's SESSION without PARTITION BY is of all rows, with its groups in it",
        {"visits": [visit(0, "a", n=1), visit(9, "b", n=2), visit(19, "a", n=3), visit(40, "b", n=4)]},
        "SELECT window_start, who, SUM(n) AS total FROM TABLE(SESSION(TABLE visits, DESCRIPTOR(at),"
        " INTERVAL '10' SECONDS)) GROUP BY window_start, window_end, who",
        [(clock(0), "a", 4), (clock(0), "b", 2), (clock(40), "b", 4)],
        spark=True,
    ),
    Case(
        "its PARTITION BY may name some of the groups' columns",
        {
            "visits": [
                visit(0, "a", "p"),
                visit(8, "a", "q"),
                visit(9, "b", "p"),
                visit(16, "a", "p"),
                visit(30, "b", "p"),
            ]
        },
        "SELECT window_start, who, page, COUNT(*) AS n FROM TABLE(SESSION(TABLE visits PARTITION BY who,"
        " DESCRIPTOR(at), INTERVAL '10' SECONDS)) GROUP BY window_start, window_end, who, page",
        [(clock(0), "a", "p", 2), (clock(0), "a", "q", 1), (clock(9), "b", "p", 1), (clock(30), "b", "p", 1)],
    ),
    Case(
        "HAVING leaves groups out once they are counted, and may name what the SELECT doesn't",
        {"visits": [visit(0, "a", n=1), visit(1, "a", n=5), visit(2, "b", n=9), visit(3, "c", n=-2)]},
        "SELECT who, COUNT(*) AS n FROM visits WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY who"
        " HAVING SUM(n) > 5 EMIT FINAL",
        [("a", 2), ("b", 1)],
    ),
    Case(
        "NULL is no value: of COUNT(column), SUM, MIN, MAX, AVG and distinct counts, and a group of its own",
        {
            "visits": [
                visit(0, "a", "p", 4),
                visit(1, "a", None, None),
                visit(2, "a", "p", -2),
                visit(3, "a", "q", None),
                visit(4, None, "p", None),
            ]
        },
        "SELECT who, COUNT(*) AS n, COUNT(n) AS m, SUM(n) AS s, MIN(n) AS low, MAX(n) AS high, AVG(n) AS"
        " mean,"
        " APPROX_COUNT_DISTINCT(page) AS pages FROM visits WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY who"
        " EMIT FINAL",
        [("a", 4, 2, 2, -2, 4, 1.0, 2), (None, 1, 0, None, None, None, None, 1)],
        spark=True,
    ),
    Case(
        "rows within the grace period are counted, later ones are not, and a window is given out once",
        {"visits": [visit(0), visit(12), visit(8), visit(25), visit(9), visit(26)]},
        "SELECT window_start, COUNT(*) AS n FROM visits WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5"
        " SECONDS)"
        " EMIT FINAL",
        [(clock(0), 2), (clock(10), 1), (clock(20), 2)],
        late=1,
        engines=False,  # how far time is when a row comes differs with how many come at once
    ),
    Case(
        "WHERE is before counting, groups are of expressions, and a CASE counts some",
        {"visits": [visit(n, "ab"[n % 2], n=n) for n in range(10)]},
        "SELECT UPPER(who) AS who, SUM(CASE WHEN n > 5 THEN 1 ELSE 0 END) AS high, COUNT(*) FILTER (WHERE"
        " n < 3)"
        " AS low FROM visits WINDOW TUMBLING (SIZE 1 MINUTE) WHERE n <> 4 GROUP BY UPPER(who) EMIT FINAL",
        [("A", 2, 2), ("B", 2, 1)],
    ),
    Case(
        "an array is a row for each element, none for an empty one and for NULL",
        {
            "visits": [
                (*visit(0, "a"), "ARRAY['x', 'y']"),
                (*visit(1, "b"), None),
                (*visit(2, "c"), "ARRAY['x']"),
            ]
        },
        "SELECT tag, COUNT(*) AS n FROM visits CROSS JOIN UNNEST(tags) AS t(tag) WINDOW TUMBLING (SIZE 1"
        " MINUTE)"
        " GROUP BY tag EMIT FINAL",
        [("x", 2), ("y", 1)],
        spark=True,
    ),
    Case(
        "rows are joined with a table by its key; LEFT JOIN keeps those without",
        {"visits": [visit(0, "a"), visit(1, "b"), visit(2, "x")], "people": [("a", "Turku"), ("b", "Oulu")]},
        "SELECT v.who, town FROM visits v LEFT JOIN people p ON v.who = p.who EMIT CHANGES",
        [("a", "Turku"), ("b", "Oulu"), ("x", None)],
        tables=SIGNUPS,
        engines=False,
    ),
    Case(
        "what is joined with a table is counted by the table's columns",
        {"visits": [visit(n, "abx"[n % 3]) for n in range(9)], "people": [("a", "Turku"), ("b", "Turku")]},
        "SELECT town, COUNT(*) AS n FROM visits v JOIN people p ON v.who = p.who WINDOW TUMBLING (SIZE 1"
        " MINUTE)"
        " GROUP BY town EMIT FINAL",
        [("Turku", 6)],
        tables=SIGNUPS,
    ),
    Case(
        "a row is joined with the version of the table that was valid at its time",
        {
            "visits": [visit(0, "a"), visit(19, "a"), visit(20, "a"), visit(5, "b"), visit(30, "b")],
            "people": [("a", "Turku", DAY), ("b", "Oulu", DAY + 10_000), ("a", "Pori", DAY + 20_000)],
        },
        "SELECT town, COUNT(*) AS n FROM visits v LEFT JOIN people FOR SYSTEM_TIME AS OF v.at AS p ON v.who ="
        " p.who WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY town EMIT FINAL",
        [("Turku", 2), ("Pori", 1), ("Oulu", 1), (None, 1)],
        tables="CREATE TABLE people (who VARCHAR PRIMARY KEY, town VARCHAR, at BIGINT)",
        spark=True,
    ),
    Case(
        "rows of two streams are one stream, each with its own event time",
        {"visits": [visit(0, "a"), visit(70, "b")], "asks": [(DAY + 1_000, 1, "a"), (DAY + 80_000, 2, "c")]},
        "WITH both AS (SELECT who FROM visits UNION ALL SELECT x FROM asks) SELECT window_start, who,"
        " COUNT(*) AS n FROM both WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY who EMIT FINAL",
        [(clock(0), "a", 2), (clock(60), "b", 1), (clock(60), "c", 1)],
        streams="CREATE STREAM visits (at BIGINT, who VARCHAR, page VARCHAR, n INT, tags ARRAY<VARCHAR>);"
        + PAIRS[0],
        spark=True,
    ),
    Case(
        "rows of two streams are a pair within a span, whichever comes first",
        {
            "asks": [(DAY, 1, "q1"), (DAY + 20_000, 2, "q2"), (DAY + 60_000, 3, "q3")],
            "replies": [(DAY + 5_000, 1, "r1"), (DAY + 12_000, 2, "r2"), (DAY + 90_000, 3, "r3")],
        },
        "SELECT a.id, x, y FROM asks a JOIN replies r WITHIN 10 SECONDS ON a.id = r.id EMIT CHANGES",
        [(1, "q1", "r1"), (2, "q2", "r2")],
        streams=";".join(PAIRS),
        engines=False,
    ),
    Case(
        "a count of the table's key counts matches, also with a row of nothing but NULL",
        {"visits": [visit(n, "abx"[n % 3]) for n in range(9)], "people": [("a", "Turku"), ("b", None)]},
        "SELECT COUNT(p.who) AS known, COUNT(*) AS n, COUNT(town) AS towns FROM visits v LEFT JOIN people p"
        " ON v.who = p.who WINDOW TUMBLING (SIZE 1 MINUTE) EMIT FINAL",
        [(6, 9, 3)],
        tables=SIGNUPS,
        spark=True,
    ),
    Case(
        "each side of a FULL OUTER JOIN has a key of its own",
        {
            "asks": [(DAY, 1, "q1"), (DAY + 1_000, 2, "q2"), (DAY + 90_000, 9, "end")],
            "replies": [(DAY + 2_000, 1, "r1"), (DAY + 3_000, 3, "r3"), (DAY + 90_000, 9, "end")],
        },
        "SELECT a.id AS l, r.id AS r, COUNT(a.id) AS asked, COUNT(r.id) AS replied FROM asks a FULL OUTER"
        " JOIN replies r WITHIN 10 SECONDS ON a.id = r.id WINDOW TUMBLING (SIZE 1 MINUTE) WHERE"
        " COALESCE(a.id, r.id) < 9 GROUP BY a.id, r.id EMIT FINAL",
        [(1, 1, 1, 1), (2, None, 1, 0), (None, 3, 0, 1)],
        streams=";".join(PAIRS),
    ),
    Case(
        "an alias that is a column's name leaves the column as it is",
        {"visits": [visit(0, "a", n=11), visit(1, "a", n=19), visit(2, "b", n=25)]},
        "SELECT n / 10 AS n, SUM(n) AS total, COUNT(*) AS who FROM visits WINDOW TUMBLING (SIZE 1 MINUTE)"
        " GROUP BY n / 10 EMIT FINAL",
        [(1, 30, 2), (2, 25, 1)],
        spark=True,
    ),
    Case(
        "LEFT JOIN UNNEST keeps a row without elements",
        {
            "visits": [
                (*visit(0, "a"), "ARRAY['x', 'y']"),
                (*visit(1, "b"), None),
                (*visit(2, "c"), "ARRAY['x']"),
            ]
        },
        "SELECT tag, COUNT(*) AS n FROM visits LEFT JOIN UNNEST(tags) AS t(tag) ON TRUE WINDOW TUMBLING (SIZE"
        " 1 MINUTE) GROUP BY tag EMIT FINAL",
        [("x", 2), ("y", 1), (None, 1)],
        spark=True,
    ),
    Case(
        "an event time of text in a pattern of its own",
        {"logins": [("01.01.2026 00:00:05", "a"), ("01.01.2026 00:01:05", "a"), ("soon", "a")]},
        "SELECT window_start, COUNT(*) AS n FROM logins WINDOW TUMBLING (SIZE 1 MINUTE) EMIT FINAL",
        [(clock(0), 1), (clock(60), 1)],
        streams="CREATE STREAM logins (at VARCHAR, who VARCHAR)",
    ),
    Case(
        "Flink's windows of a table function, and what two windows of a day hold",
        {"visits": [visit(n * 600, "a") for n in range(12)]},
        "SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(CUMULATE(TABLE visits, DESCRIPTOR(at),"
        " INTERVAL '30' MINUTES, INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
        [
            (clock(0), clock(1800), 3),
            (clock(0), clock(3600), 6),
            (clock(3600), clock(5400), 3),
            (clock(3600), clock(7200), 6),
        ],
    ),
]


def script(case: Case, suffix: str) -> str:
    """The case as a script; its topics have the suffix."""
    statements = []
    for create in [*case.streams.split(";"), *([case.tables] if case.tables else [])]:
        words = create.split()
        time = ", TIMESTAMP='at'" if words[1] == "STREAM" or "at BIGINT" in create else ""
        if "at VARCHAR" in create:
            time += ", TIMESTAMP_FORMAT='dd.MM.yyyy HH:mm:ss'"
        name = f"{words[2]}_{suffix}"
        statements.append(
            f"{create.replace(words[2], name, 1)} WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON'{time})"
        )
    query = case.query
    for stream in sorted(case.rows, key=lambda one: one != "people"):
        width = max(map(len, case.rows[stream]))
        names = {"visits": ["at", "who", "page", "n", "tags"]}.get(stream)
        columns = f" ({', '.join(names[:width])})" if names else ""
        values = ", ".join(f"({', '.join(map(_constant, row))})" for row in case.rows[stream])
        statements.append(f"INSERT INTO {stream}_{suffix}{columns} VALUES {values}")
        for before in (f"FROM {stream}", f"JOIN {stream}", f"TABLE {stream}"):
            query = query.replace(before, f"{before}_{suffix}")
    return ";\n".join([*statements, query])


def _constant(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return value if value.startswith("ARRAY[") else f"'{value}'"
    return str(value)
