"""Broken statements are refused where they are broken, with what to write instead."""

from __future__ import annotations

import random

from ...cases import each
from .broken_statements import MORE
from .scripts import DECLARED, outcomes

W = "WINDOW TUMBLING (SIZE 1 MINUTE)"

BROKEN = [
    # The statement, the words that are underlined (their last place in it), and a part of the message.
    # Statements that are none
    ("SELEC usr FROM posts", "SELEC", "a statement must begin with one of SELECT, CREATE STREAM"),
    ("CREATE INDEX v AS SELECT 1", "INDEX", "CREATE must be followed by STREAM, TABLE, VIEW or ALERT"),
    ("DROP posts", "posts", "DROP must be followed by STREAM, TABLE or VIEW"),
    ("SHOW COLUMNS", "COLUMNS", "SHOW must be followed by one of TOPICS, STREAMS"),
    ("PRINT", "PRINT", "expected the name of a topic"),
    ("PRINT 'posts' LIMIT many", "many", "LIMIT must be a whole number"),
    ("SET auto = 'x'", "auto", "expected the setting's name in single quotes"),
    ("SET 'ksql.streams' = 'x'", "'ksql.streams'", "no setting is called ksql.streams"),
    ("EXPLAIN SHOW TOPICS", "EXPLAIN", "EXPLAIN explains a SELECT"),
    ("TERMINATE posts", "posts", "no query is called posts"),
    ("RUN SCRIPT 'x.sql'", "'x.sql'", "No such file"),
    ("CREATE ALERT a AS SELECT usr FROM posts", "a", "docs/rules.md"),
    ("UPDATE posts SET n = 1", "UPDATE", "a statement must begin with"),
    # Words in the wrong place
    ("SELECT usr FROM", "FROM", "the statement ends too early"),
    ("SELECT usr,, lang FROM posts", ",", "expected something after the comma"),
    ("SELECT usr, FROM posts", "FROM", ""),
    ("SELECT (usr FROM posts", "FROM", "FROM is not allowed here"),
    ("SELECT usr FROM posts WHERE", "WHERE", "the statement ends too early"),
    ("SELECT usr who twice FROM posts", "twice", "twice is not allowed here"),
    ("SELECT 'abc FROM posts", "'", "the quote is not closed"),
    ("SELECT usr /* FROM posts", "/*", "the comment is not closed"),
    ("SELECT usr FROM posts EMIT", "EMIT", "EMIT must be followed by FINAL or CHANGES"),
    ("SELECT usr FROM posts EMIT ALL", "ALL", "EMIT must be followed by FINAL or CHANGES, got ALL"),
    ("SELECT usr FROM posts EMIT CHANGES EMIT FINAL", "EMIT", "EMIT is allowed once"),
    ("SELECT usr FROM posts LIMIT 0", "0", "LIMIT must be a whole number ≥ 1"),
    ("SELECT usr FROM posts LIMIT 2.5", "2.5", "LIMIT must be a whole number"),
    # Names
    ("SELECT usr FROM post EMIT CHANGES", "post", "no stream or table is called post; did you mean posts?"),
    ("SELECT usrr FROM posts EMIT CHANGES", "usrr", "no column is called usrr; did you mean usr?"),
    ("SELECT x.usr FROM posts p EMIT CHANGES", "x.usr", "no stream of the query is called x"),
    ("SELECT meta->c FROM posts EMIT CHANGES", "meta->c", "no field is called c; there are a, b"),
    ("SELECT lang->c FROM posts EMIT CHANGES", "lang->c", "-> takes a field of a STRUCT, got a VARCHAR"),
    ("SELECT UPER(usr) FROM posts EMIT CHANGES", "UPER", "no function is called UPER; did you mean UPPER?"),
    ("SELECT usr, usr FROM posts EMIT CHANGES", "usr", "usr is selected twice"),
    (
        "SELECT usr FROM posts p JOIN users u ON p.usr = u.usr WHERE lang = 'en'",
        "lang",
        "may be p.lang or u.lang",
    ),
    ("DESCRIBE nothing", "nothing", "no stream or table is called nothing"),
    ("DROP TABLE posts", "posts", "posts is a stream; write DROP STREAM"),
    # Types
    ("SELECT usr FROM posts WHERE n = 'x'", "n = 'x'", "an INT with a VARCHAR can't be compared; write CAST"),
    ("SELECT n FROM posts WHERE price < 1e400", "1e400", "a number must be less than 1.8e308"),
    ("SELECT CAST('abc' AS VARCHAR(2))", "2", "a length or precision is not kept; write VARCHAR"),
    ("SELECT usr + 1 AS x FROM posts", "usr", "+ takes numbers, got a VARCHAR"),
    ("SELECT usr FROM posts WHERE n", "n", "WHERE must be a condition, got an INT"),
    ("SELECT UPPER(n) FROM posts", "n", "UPPER takes a VARCHAR here, got an INT"),
    ("SELECT UPPER(usr, lang) FROM posts", "UPPER", "UPPER takes 1 argument, got 2"),
    ("SELECT tags[0] AS t FROM posts", "0", "arrays count from 1: the number must be ≥ 1, got 0"),
    ("SELECT usr[1] AS t FROM posts", "usr", "[…] takes an element of an ARRAY, got a VARCHAR"),
    (
        "SELECT CASE WHEN n > 1 THEN 'a' ELSE 2 END AS x FROM posts",
        "n > 1 THEN 'a' ELSE 2",
        "must be of one type",
    ),
    ("SELECT CAST(n AS DECIMAL(3, 4)) AS x FROM posts", "3, 4", "the scale of a DECIMAL must be at most"),
    ("SELECT CAST(ts AS TIMESTAMP) AS x FROM posts", "ts AS TIMESTAMP", "FROM_UNIXTIME(ms)"),
    ("SELECT SUBSTRING(usr, 0) AS x FROM posts", "usr, 0", "SUBSTRING counts from 1"),
    ("SELECT usr FROM posts WHERE usr LIKE lang", "lang", "the pattern of LIKE must be a constant text"),
    ("SELECT 9223372036854775808 AS x FROM posts", "9223372036854775808", "less than 2^63"),
    ("SELECT usr FROM posts WHERE ROWTIME > 'noon'", "'noon'", "'noon' must be a time"),
    # What can't be, with the cure
    (f"SELECT COUNT(DISTINCT usr) FROM posts {W}", "COUNT", "write APPROX_COUNT_DISTINCT"),
    (f"SELECT TOPK(n, 3) FROM posts {W}", "TOPK", "write APPROX_TOP_K"),
    (f"SELECT EARLIEST_BY_OFFSET(n) FROM posts {W}", "EARLIEST_BY_OFFSET", "write FIRST(column)"),
    (f"SELECT LATEST_BY_OFFSET(n) FROM posts {W}", "LATEST_BY_OFFSET", "write LAST(column)"),
    (f"SELECT COLLECT_LIST(n) FROM posts {W}", "COLLECT_LIST", "write SAMPLE(column, 100)"),
    ("SELECT lang, COUNT(*) FROM posts GROUP BY lang EMIT CHANGES", "COUNT", "write WINDOW TUMBLING"),
    ("SELECT ROW_NUMBER() OVER (PARTITION BY usr) AS r FROM posts", "ROW_NUMBER", "OVER looks at other rows"),
    ("SELECT usr FROM (SELECT usr FROM posts)", "usr FROM posts", "a query in FROM must have a name"),
    (
        "SELECT usr FROM posts WHERE usr IN (SELECT usr FROM users)",
        "usr FROM users",
        "a query within a query",
    ),
    ("SELECT usr FROM posts p JOIN clicks c ON p.usr = c.usr", "clicks", "WITHIN 10 MINUTES"),
    (
        "SELECT p.usr FROM posts p JOIN users u WITHIN 1 DAY ON p.usr = u.usr",
        "WITHIN",
        "WITHIN is for a join with a stream",
    ),
    (
        "SELECT p.usr FROM posts p JOIN users u ON p.usr = u.region",
        "p.usr = u.region",
        "is joined by its key",
    ),
    ("SELECT p.usr FROM posts p JOIN users u ON p.usr > u.usr", "p.usr > u.usr", "ON must be equalities"),
    ("SELECT p.usr FROM posts p JOIN users u", "users", "ON a.column = b.column"),
    ("SELECT p.usr FROM posts p RIGHT JOIN users u ON p.usr = u.usr", "users", "RIGHT JOIN"),
    ("SELECT region FROM users EMIT CHANGES", "users", "users is a table, whose rows replace each other"),
    ("SELECT DISTINCT usr FROM posts", "usr", "GROUP BY the columns with a window"),
    ("SELECT usr FROM posts ORDER BY usr", "usr", "ORDER BY: a stream's rows have no end"),
    ("SELECT usr FROM posts UNION SELECT usr FROM clicks", "SELECT", "streams support only UNION ALL"),
    ("FROM WITH x AS (SELECT usr posts) SELECT usr FROM x", "FROM", "the statement can't be parsed"),
    ("WITH x AS (SELECT usr FROM posts) SELECT n FROM x", "n", "no column is called n; there are usr"),
    ("SELECT usr FROM posts WHERE ROWTIME > NOW()", "NOW", "the current time would stay fixed"),
    # Windows
    ("SELECT COUNT(*) FROM posts WINDOW SLIDING (SIZE 1 MINUTE)", "SLIDING", "a window must be TUMBLING"),
    ("SELECT COUNT(*) FROM posts WINDOW TUMBLING (SIZE 1 MOON)", "MOON", "a unit must be one of"),
    (
        "SELECT COUNT(*) FROM posts WINDOW TUMBLING (SIZE 0 SECONDS)",
        "0",
        "a whole number of units ≥ 1, got 0",
    ),
    (
        "SELECT COUNT(*) FROM posts WINDOW TUMBLING (1 MINUTE)",
        "1",
        "SIZE, ADVANCE BY, OFFSET, TIME ZONE or GRACE PERIOD",
    ),
    ("SELECT COUNT(*) FROM posts WINDOW HOPPING (SIZE 1 HOUR)", "HOPPING", "HOPPING needs ADVANCE BY"),
    (
        "SELECT COUNT(*) FROM posts WINDOW TUMBLING (SIZE 1 HOUR, ADVANCE BY 1 HOUR)",
        "TUMBLING",
        "takes no ADVANCE BY",
    ),
    (
        "SELECT COUNT(*) FROM posts WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 1 DAY)",
        "RETENTION",
        "leave it out",
    ),
    (
        "SELECT COUNT(*) FROM posts WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 2 HOURS)",
        "HOPPING",
        "no more than its size",
    ),
    ("SELECT COUNT(*) FROM TUMBLE(clicks, page, INTERVAL '1' DAY)", "page", "has its event time in ts"),
    ("SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE posts, ts, INTERVAL '1' DAY))", "ts", "DESCRIPTOR(…)"),
    ("SELECT COUNT(*) FROM HOP(posts, ts, INTERVAL '1' DAY)", "HOP", "HOP takes 2 lengths, got 1"),
    (f"SELECT COUNT(*) FROM posts {W} GROUP BY window(ts, '1 minute')", "window", "a query has one window"),
    # Windows in FROM that GROUP BY doesn't name: other systems merge them.
    ("SELECT COUNT(*) FROM TUMBLE(posts, ts, INTERVAL '1' DAY)", "TUMBLE", "GROUP BY window_start, …"),
    (
        "SELECT lang, COUNT(*) FROM HOP(posts, ts, INTERVAL '1' DAY, INTERVAL '2' DAYS) GROUP BY lang",
        "HOP",
        "",
    ),
    (
        "SELECT COUNT(*) FROM CUMULATE(posts, ts, INTERVAL '1' HOUR, INTERVAL '1' DAY) GROUP BY window_start",
        "CUMULATE",
        "GROUP BY window_end, …",
    ),
    # Aggregates
    (f"SELECT lang, COUNT(*) FROM posts {W}", "lang", "lang must be in GROUP BY"),
    (f"SELECT * FROM posts {W}", "*", "* of a window: name its keys and aggregates"),
    (f"SELECT lang FROM posts {W} GROUP BY lang", "lang FROM", "must count something"),
    (f"SELECT COUNT(*) FROM posts {W} WHERE COUNT(*) > 3", "COUNT(*) > 3", "write aggregates in HAVING"),
    (f"SELECT SUM(COUNT(*)) FROM posts {W}", "COUNT", "an aggregate of an aggregate"),
    (f"SELECT SUM(usr) FROM posts {W}", "SUM", ""),
    (f"SELECT PERCENTILE_APPROX(n, 95) FROM posts {W}", "95", "a number from 0 to 1, got 95"),
    (f"SELECT APPROX_TOP_K(usr, n) FROM posts {W}", "n)", "k must be a constant"),
    (f"SELECT LOWER_BOUND(lang) FROM posts {W}", "LOWER_BOUND", ""),
    (f"SELECT DISTINCT_SET(usr, lgk => 3) FROM posts {W}", "3", "DISTINCT_SET has no parameter lgk"),
    (f"SELECT lang, COUNT(*) FROM posts {W} GROUP BY ROLLUP (lang)", "", "ROLLUP"),
    (f"SELECT COUNT(*) FROM posts {W} HAVING lang = 'en'", "lang", "lang must be in GROUP BY"),
    (f"SELECT COUNT(*) AS n FROM posts {W} ORDER BY m", "m", "ORDER BY must name a selected column"),
    # Declarations
    ("CREATE STREAM s (a INT)", "", "expected WITH (KAFKA_TOPIC"),
    ("CREATE STREAM s (a BANANA) WITH (KAFKA_TOPIC='s')", "BANANA", "expected the type of a"),
    ("CREATE STREAM s (a INT, a INT) WITH (KAFKA_TOPIC='s')", "a", "a is declared twice"),
    ("CREATE STREAM s (a INT) WITH (VALUE_FORMAT='JSON')", "s", "WITH must name the topic"),
    ("CREATE STREAM s WITH (KAFKA_TOPIC='s')", "s", "must name its columns"),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', TOPIC='x')", "'x'", "TOPIC: write KAFKA_TOPIC='…'"),
    (
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='AVRO')",
        "'AVRO'",
        "AVRO needs a schema registry",
    ),
    ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', TIMESTAMP='b')", "'b'", "s has no column b"),
    (
        "CREATE STREAM s (a DOUBLE) WITH (KAFKA_TOPIC='s', TIMESTAMP='a')",
        "'a'",
        "must be BIGINT, VARCHAR or TIMESTAMP",
    ),
    (
        "CREATE STREAM s (a VARCHAR) WITH (KAFKA_TOPIC='s', TIMESTAMP='a', TIMESTAMP_FORMAT='QQ')",
        "'QQ'",
        "not supported",
    ),
    ("CREATE TABLE t (a INT) WITH (KAFKA_TOPIC='t')", "t", "a table must have a key"),
    ("CREATE STREAM posts (a INT) WITH (KAFKA_TOPIC='s')", "posts", "posts is a stream already"),
    ("CREATE TABLE t AS SELECT usr FROM posts", "t", "rows one by one are a STREAM"),
    (f"CREATE STREAM t AS SELECT COUNT(*) FROM posts {W}", "t", "answers of windows are a TABLE"),
    ("CREATE STREAM t AS SELECT usr FROM posts LIMIT 3", "t", "LIMIT ends a query"),
    ("CREATE STREAM t WITH (VALUE_FORMAT='AVRO') AS SELECT usr FROM posts", "'AVRO'", "must be JSON"),
    ("INSERT INTO clicks SELECT usr FROM posts", "clicks", "which the SELECT doesn't give"),
    ("INSERT INTO clicks VALUES (1, 'a')", "(", "a row must have 3 values, got 2"),
    ("INSERT INTO clicks (usr) VALUES (lang)", "lang", "a value must be a constant"),
    ("INSERT INTO clicks (ts) VALUES ('x')", "'x'", "the value must be a BIGINT, got 'x'"),
]


def test_there_are_enough() -> None:
    assert len({statement for statement, _, _ in [*BROKEN, *MORE]}) >= 200


@each(("statement", "underlined", "message"), [*BROKEN, *MORE], ids=[one for one, _, _ in [*BROKEN, *MORE]])
def test_a_broken_statement_is_refused_at_its_place(statement: str, underlined: str, message: str) -> None:
    before = DECLARED + "-- and then\n  "
    last = outcomes(f"{before}{statement};")[-1]
    assert last.kind == "error", last.to_json()
    error = last.error
    assert error is not None and message in error.message
    assert "sqlglot" not in error.message and "Token" not in error.message
    assert error.line == before.count("\n") + 1
    if underlined:
        places = {at + 3 for at in range(len(statement)) if statement.startswith(underlined, at)}
        assert error.column in places, str(error)
    shown = str(error).splitlines()
    if (statement, underlined, message) in MORE:
        assert error.message.startswith(message) and len(shown[2].strip()) == max(len(underlined), 1)
    assert shown[1].strip().rstrip(";") == statement and set(shown[2].strip()) == {"^"}


def test_an_error_on_a_later_line_is_found_there() -> None:
    last = outcomes(f"{DECLARED}SELECT usr,\n  lnag\nFROM posts\nEMIT CHANGES")[-1]
    assert last.error is not None
    assert (last.error.line, last.error.column) == (DECLARED.count("\n") + 2, 3)
    assert last.to_json()["error"]["message"] == "no column is called lnag; did you mean lang?"


def test_no_statement_fails_otherwise_than_by_its_error() -> None:
    """Statements with words taken out, doubled or mixed are run, or refused with a place in the text."""
    chosen = random.Random(25)
    words = [word for statement, _, _ in BROKEN for word in statement.split()]
    for _ in range(1_000):
        statement = chosen.choice(BROKEN)[0].split()
        for _ in range(chosen.randint(1, 3)):
            at = chosen.randrange(len(statement))
            statement[at : at + 1] = chosen.choice([[], [chosen.choice(words)], [statement[at]] * 2]) or ["("]
        text = " ".join(statement)
        last = next(reversed(outcomes(text)), None)
        if last is not None and last.error is not None:
            assert 1 <= last.error.column <= len(text) + 1 and "NoneType" not in last.error.message
