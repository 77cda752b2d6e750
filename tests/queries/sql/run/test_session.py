"""Scripts without a broker: what statements name, write and answer."""

from __future__ import annotations

import pytest

from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.row_reader import ReceivedMessage
from streamgauge.queries.sql.run.session import SqlSession

from ....cases import each
from ..scripts import DECLARED, START, last_rows, outcomes

PAGEVIEWS = f"""
CREATE STREAM pageviews (viewtime BIGINT, userid VARCHAR, pageid VARCHAR)
  WITH (KAFKA_TOPIC='pageviews', VALUE_FORMAT='JSON', TIMESTAMP='viewtime');
CREATE TABLE users (registertime BIGINT, gender VARCHAR, regionid VARCHAR, userid VARCHAR)
  WITH (kafka_topic='users', value_format='JSON', key='userid');
INSERT INTO users (userid, gender, regionid) VALUES ('u1', 'FEMALE', 'r8'), ('u2', 'MALE', 'r9');
INSERT INTO pageviews VALUES ({START}, 'u1', 'p1'), ({START + 1000}, 'u1', 'p2'), ({
    START + 2000
}, 'u2', 'p1'),
  ({START + 40_000}, 'u1', 'p1');
CREATE STREAM enriched AS SELECT users.userid AS userid, pageid, regionid, gender, viewtime
  FROM pageviews LEFT JOIN users ON pageviews.userid = users.userid;
CREATE STREAM female AS SELECT * FROM enriched WHERE gender = 'FEMALE';
CREATE TABLE regions AS SELECT gender, regionid, COUNT(*) AS numusers FROM female
  WINDOW TUMBLING (SIZE 30 SECONDS) GROUP BY gender, regionid HAVING COUNT(*) > 1;
"""


def test_a_stream_is_joined_filtered_and_counted_topic_by_topic() -> None:
    assert last_rows(PAGEVIEWS + "SELECT pageid, regionid FROM female EMIT CHANGES LIMIT 2") == [
        ["p1", "r8"],
        ["p2", "r8"],
    ]
    (row,) = last_rows(PAGEVIEWS + "SELECT * FROM regions EMIT CHANGES")
    assert row == ["2026-01-01T00:00:00", "2026-01-01T00:00:30", "FEMALE", "r8", 2]
    script = PAGEVIEWS + "ASSERT VALUES regions (regionid, numusers) VALUES ('r8', 2);"
    assert outcomes(script)[-1].kind == "done"
    with pytest.raises(SqlError, match=r"row 1 of regions must be \('r8', 3\), got \('r8', 2\)"):
        last_rows(PAGEVIEWS + "ASSERT VALUES regions (regionid, numusers) VALUES ('r8', 3);")
    with pytest.raises(SqlError, match="regions has no more rows"):
        last_rows(script + "ASSERT VALUES regions (numusers) VALUES (1);")


def test_messages_that_no_row_comes_of_are_counted() -> None:
    values = [b"no JSON", b'{"ts": 1767225600000, "n": 1}', b'{"n": "x"}']
    engine = Memory()
    engine._inserted["posts"] = [ReceivedMessage("posts", 0, None, value, START) for value in values]
    session = SqlSession(engine)
    rows = list(session.run(f"{DECLARED} SELECT n FROM posts EMIT CHANGES"))[-1]
    assert rows.rows == [(1,)] and rows.warnings[0].startswith("2 of 3 messages could not be read, such as: ")
    windows = "SELECT COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 1 DAY) EMIT FINAL"
    assert next(session.run(windows)).to_json()["warnings"] == list(rows.warnings)
    assert "warnings" not in outcomes("SHOW STREAMS")[-1].to_json()


def test_what_there_is() -> None:
    assert last_rows(PAGEVIEWS + "SHOW TOPICS") == [
        [n, 1] for n in ("enriched", "female", "pageviews", "regions", "users")
    ]
    assert [row[0] for row in last_rows(PAGEVIEWS + "SHOW STREAMS")] == ["pageviews", "enriched", "female"]
    assert [row[0] for row in last_rows(PAGEVIEWS + "LIST TABLES")] == ["users", "regions"]
    assert [row[0] for row in last_rows(PAGEVIEWS + "SHOW QUERIES")] == ["enriched", "female", "regions"]
    assert last_rows(PAGEVIEWS + "DESCRIBE pageviews")[0] == ["viewtime", "BIGINT", "time"]
    assert ["APPROX_COUNT_DISTINCT", "aggregate"] in last_rows("SHOW FUNCTIONS")
    printed = last_rows(PAGEVIEWS + "PRINT 'users' FROM BEGINNING LIMIT 1")
    assert printed[0][3:] == ["u1", '{"gender":"FEMALE","regionid":"r8"}']
    (explained,) = last_rows(PAGEVIEWS + "EXPLAIN CREATE STREAM x AS SELECT pageid FROM female")
    assert ".rows_to_kafka('x')" in explained[0] and "# - writes to x" in explained[0]
    (explained,) = last_rows(
        PAGEVIEWS + "EXPLAIN SELECT gender, COUNT(*) AS n FROM female"
        " WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY gender EMIT FINAL"
    )
    kept = "# - keeps for each gender in each window n: count()"
    for line in ("# - reads female", kept, "gender VARCHAR, n BIGINT"):
        assert line in explained[0]


def test_possible_fraud() -> None:
    script = f"""
    CREATE STREAM authorization_attempts (card_number VARCHAR, ts BIGINT)
      WITH (KAFKA_TOPIC='attempts', VALUE_FORMAT='JSON', TIMESTAMP='ts');
    CREATE TABLE possible_fraud AS SELECT card_number, count(*) AS attempts FROM authorization_attempts
      WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY card_number HAVING count(*) > 3 EMIT CHANGES;
    INSERT INTO authorization_attempts VALUES {", ".join(f"('c1', {START + n * 1000})" for n in range(5))},
      ('c2', {START}), ('c2', {START + 9000});
    SELECT card_number, attempts FROM possible_fraud EMIT CHANGES;
    """
    assert last_rows(script) == [["c1", 5]]


def posts(rows: list[tuple[int, str, str, str, int, float]]) -> str:
    values = ", ".join(
        f"({START + second * 1000}, '{user}', '{lang}', ARRAY['{tag}', 'all'], {n}, {price})"
        for second, user, lang, tag, n, price in rows
    )
    return f"{DECLARED} INSERT INTO posts (ts, usr, lang, tags, n, price) VALUES {values};"


ROWS = [
    (0, "ann", "en", "x", 1, 1.0),
    (1, "bob", "en", "y", 2, 2.0),
    (2, "ann", "fi", "x", 3, 4.0),
    (70, "ann", "en", "x", 4, 8.0),
]


def test_bounds_stand_beside_estimates_and_in_having() -> None:
    query = """SELECT lang, APPROX_COUNT_DISTINCT(usr) AS users,
      LOWER_BOUND(APPROX_COUNT_DISTINCT(usr)) AS low,
      UPPER_BOUND(COUNT(*)) AS n, PERCENTILE_APPROX(price, 0.5) AS mid FROM posts
      WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY lang
      HAVING LOWER_BOUND(APPROX_COUNT_DISTINCT(usr)) > 1 EMIT FINAL"""
    last = outcomes(posts(ROWS) + query)[-1].to_json()
    assert [row[:4] for row in last["rows"]] == [["en", 2, 2, 2]]
    assert last["bounds"]["users"] == [[2, 2]]
    low, high = last["bounds"]["mid"][0]
    assert low <= last["rows"][0][4] <= high


def test_columns_of_many_kinds() -> None:
    query = """SELECT window_start, COUNT(*) FILTER (WHERE lang = 'en') AS en, SUM(n) AS n,
      AVG(price) AS price,
      MIN(usr) AS first_user, LAST(price) AS latest, SUM(n) * 1.0 / COUNT(*) AS share, STDDEV(price) AS sd,
      PERCENTILE_APPROX(price, ARRAY[0.0, 1.0]) AS spread, APPROX_TOP_K(usr, 1) AS top FROM posts
      WINDOW TUMBLING (SIZE 1 MINUTE) EMIT FINAL"""
    rows = last_rows(posts(ROWS) + query)
    assert rows[0][:7] == ["2026-01-01T00:00:00", 2, 6, pytest.approx(7 / 3), "ann", 4.0, 2.0]
    assert rows[0][7] == pytest.approx(1.5275252316519468)
    assert rows[0][8] == pytest.approx([1.0, 4.0], rel=0.01)
    assert rows[0][9] == [{"item": "ann", "estimate": 2, "lower": 2, "upper": 2}]
    assert rows[1][:3] == ["2026-01-01T00:01:00", 1, 4]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT EXPLODE(tags) AS tag, COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY tag",
        "SELECT EXPLODE(tags) AS tag, COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 1 HOUR)"
        " GROUP BY EXPLODE(tags)",
        "SELECT tag, COUNT(*) AS n FROM posts CROSS JOIN UNNEST(tags) AS t(tag) WINDOW TUMBLING (SIZE 1 HOUR)"
        " GROUP BY tag",
    ],
)
def test_arrays_become_rows(query: str) -> None:
    assert sorted(last_rows(posts(ROWS) + query)) == [["all", 4], ["x", 3], ["y", 1]]


def test_an_order_and_a_limit_of_a_question_that_ends() -> None:
    query = """SELECT lang, COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 1 DAY) GROUP BY lang
      ORDER BY n DESC LIMIT 1"""
    assert last_rows(posts(ROWS) + query) == [["en", 3]]


def test_nulls_stand_where_an_order_says() -> None:
    query = """SELECT tags[2] AS t, COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 1 DAY)
      GROUP BY tags[2] ORDER BY t"""
    more = f"INSERT INTO posts (ts, tags) VALUES ({START}, ARRAY['x']), ({START}, ARRAY['x', 'b']);"
    for order, expected in (
        ("", ["all", "b", None]),
        (" NULLS FIRST", [None, "all", "b"]),
        (" DESC", ["b", "all", None]),
        (" DESC NULLS FIRST", [None, "b", "all"]),
        (" DESC NULLS LAST", ["b", "all", None]),
    ):
        assert [row[0] for row in last_rows(posts(ROWS) + more + query + order)] == expected


def test_a_select_that_ends_may_count_all_rows_without_a_window() -> None:
    # The second row is a day before the first one: of all rows none is late.
    script = f"""{DECLARED} INSERT INTO posts (ts, usr, n) VALUES ({START}, 'ann', 1),
      ({START - 86_400_000}, 'bob', 2), ({START + 5}, 'ann', 4);"""
    total = "SELECT usr, SUM(n) AS n FROM posts GROUP BY usr HAVING COUNT(*) > 0 ORDER BY n DESC LIMIT 1"
    assert last_rows(script + total) == [["ann", 5]]
    assert last_rows(script + "SELECT COUNT(*) AS n, MIN(ROWTIME) AS first FROM posts") == [
        [3, "2025-12-31T00:00:00"]
    ]
    none = "SELECT COUNT(*) AS n, SUM(n) AS s, APPROX_COUNT_DISTINCT(usr) AS u FROM posts WHERE n > 9"
    assert last_rows(script + none) == [[0, None, 0]]
    assert last_rows(script + f"{none} GROUP BY usr") == []


def test_conditions_of_an_inner_join_that_are_no_equalities_filter_its_rows() -> None:
    joined = "SELECT pageid, gender FROM pageviews p JOIN users u ON"
    where = f"{joined} p.userid = u.userid WHERE (gender = 'MALE' OR pageid = 'p2') AND viewtime > 0"
    on = f"{joined} (gender = 'MALE' OR pageid = 'p2') AND p.userid = u.userid WHERE viewtime > 0"
    assert last_rows(PAGEVIEWS + on) == last_rows(PAGEVIEWS + where) == [["p2", "FEMALE"], ["p1", "MALE"]]


def test_a_count_of_an_array_counts_rows() -> None:
    script = f"""{DECLARED} INSERT INTO posts (ts, tags, n) VALUES ({START}, ARRAY['a', 'b'], 1),
      ({START}, NULL, 2), ({START}, ARRAY['c'], 3);"""
    counted = "SELECT COUNT(tags) AS n, COUNT(tags) FILTER (WHERE n > 1) AS some FROM posts"
    assert last_rows(script + counted) == [[2, 1]]


def test_two_streams_are_joined_within_a_length() -> None:
    script = (
        posts(ROWS)
        + f"""
    INSERT INTO clicks VALUES ({START + 3000}, 'ann', 'home'), ({START + 900_000}, 'ann', 'late');
    SELECT p.lang, c.page FROM posts p JOIN clicks c WITHIN 1 MINUTE ON p.usr = c.usr EMIT CHANGES;"""
    )
    assert sorted(last_rows(script)) == [["en", "home"], ["fi", "home"]]


def test_rows_go_from_several_queries_into_one_topic() -> None:
    script = (
        posts(ROWS)
        + """
    CREATE STREAM both (usr VARCHAR, n BIGINT) WITH (KAFKA_TOPIC='both', VALUE_FORMAT='JSON');
    INSERT INTO both SELECT usr, n + 0 AS n FROM posts WHERE lang = 'fi';
    INSERT INTO both SELECT usr, n * 10 AS n FROM posts WHERE n > 3;
    SELECT * FROM both EMIT CHANGES;"""
    )
    assert last_rows(script) == [["ann", 3], ["ann", 40]]


def test_rows_of_another_type_are_refused() -> None:
    target = (
        "CREATE STREAM t (a INT, b VARCHAR, c ARRAY<BIGINT>, d DOUBLE, e TIMESTAMP) WITH (KAFKA_TOPIC='t');"
    )
    for values, message in (
        ("1, 5, NULL, NULL, NULL", "the value must be a VARCHAR, got 5"),
        ("TRUE, NULL, NULL, NULL, NULL", "the value must be an INT, got True"),
        ("1.5, NULL, NULL, NULL, NULL", "the value must be an INT, got 1.5"),
        ("1, NULL, ARRAY['x'], NULL, NULL", "the value must be an ARRAY<BIGINT>, got \\['x'\\]"),
        ("1, NULL, NULL, 'x', NULL", "the value must be a DOUBLE, got 'x'"),
        ("1, NULL, NULL, 1, 'noon'", "the value must be a TIMESTAMP, got 'noon'"),
        ("CAST('2026-01-01' AS TIMESTAMP), NULL, NULL, 1, NULL", "the value must be an INT"),
    ):
        with pytest.raises(SqlError, match=message):
            last_rows(f"{target} INSERT INTO t VALUES ({values});")
    good = (
        f"{target} INSERT INTO t VALUES (1, 'x', ARRAY[1], 2, '2026-01-01 00:00:00'); SELECT a, c, d FROM t;"
    )
    assert last_rows(good) == [[1, [1], 2.0]]
    for given, message in (
        ("price AS a", "a of t is an INT, and the SELECT gives a DOUBLE; write CAST"),
        ("ts AS a", "a of t is an INT, and the SELECT gives a BIGINT"),
        ("n AS b", "b of t is a VARCHAR, and the SELECT gives an INT"),
    ):
        column = "a INT" if given[-1] == "a" else "b VARCHAR"
        declared = f"CREATE STREAM t ({column}) WITH (KAFKA_TOPIC='t');"
        with pytest.raises(SqlError, match=message):
            last_rows(f"{DECLARED} {declared} INSERT INTO t SELECT {given} FROM posts;")


def test_a_stream_that_a_query_writes_has_the_time_of_its_rows() -> None:
    count = "SELECT window_start, COUNT(*) AS n FROM made WINDOW TUMBLING (SIZE 1 MINUTE) EMIT FINAL"
    expected = [["2026-01-01T00:00:00", 3], ["2026-01-01T00:01:00", 1]]
    for select in ("SELECT ts AS at, usr FROM posts", "SELECT ROWTIME AS at, usr FROM posts"):
        assert last_rows(f"{posts(ROWS)} CREATE STREAM made AS {select}; {count}") == expected
    moved = "CREATE STREAM made WITH (TIMESTAMP='at') AS SELECT ts + 60000 AS at FROM posts;"
    assert last_rows(f"{posts(ROWS)} {moved} {count}")[0] == ["2026-01-01T00:01:00", 3]
    without = f"{posts(ROWS)} CREATE STREAM made AS SELECT usr FROM posts;"
    assert last_rows(f"{without} SELECT * FROM made") == [["ann"], ["bob"], ["ann"], ["ann"]]
    for query in (count, "SELECT ROWTIME FROM made"):
        with pytest.raises(SqlError, match="made gets the time of its writing, because its SELECT omits ts"):
            last_rows(f"{without} {query}")


def test_a_column_that_begins_with_nulls_is_shown() -> None:
    values = ", ".join(f"({START + n}, {'NULL' if n < 150 else 2.5})" for n in range(151))
    rows = last_rows(f"{DECLARED} INSERT INTO posts (ts, price) VALUES {values}; SELECT price FROM posts;")
    assert rows[149:] == [[None], [2.5]]


def test_a_key_that_is_no_number_is_counted_as_a_message_that_was_not_read() -> None:
    engine = Memory()
    keys = [b"7", b"\x00\x00\x00\x07", None]
    engine._inserted["k"] = [ReceivedMessage("k", 0, key, b'{"n": 1}', START) for key in keys]
    script = """CREATE STREAM k (id INT KEY, n INT) WITH (KAFKA_TOPIC='k', KEY_FORMAT='JSON',
      WRAP_SINGLE_VALUE=TRUE); SELECT id, n FROM k;"""
    rows = list(SqlSession(engine).run(script))[-1]
    assert rows.rows == [(7, 1), (None, 1)]
    assert rows.warnings[0].startswith("1 of 3 messages could not be read, such as: ")


@each(
    ("declared", "messages", "expected"),
    [
        (
            "WITH (VALUE_FORMAT='SYSLOG', TIMESTAMP='time')",
            [b"<34>Dec 31 23:59:58 web su[7]: failed", b"oops"],
            ("2025-12-31T23:59:58", "web", "failed"),
        ),
        (
            "(host VARCHAR, message VARCHAR) WITH (VALUE_FORMAT='SYSLOG', TIME_ZONE='Europe/Helsinki')",
            [b"<34>Dec 31 23:59:58 web su[7]: failed", b"oops"],
            (None, "web", "failed"),
        ),
        (
            "(host VARCHAR, message VARCHAR) WITH (VALUE_FORMAT='TEXT', "
            "PATTERN='^(?<host>.+): (?<message>.+)$')",
            [b"web: failed", b"oops"],
            (None, "web", "failed"),
        ),
        (
            "(message VARCHAR, host VARCHAR) WITH (VALUE_FORMAT='DELIMITED', HEADER=TRUE)",
            [b"host,n,message\nweb,1,failed", b"oops"],
            (None, "web", "failed"),
        ),
    ],
)
def test_logs_and_text(declared: str, messages: list[bytes], expected: tuple[str | None, str, str]) -> None:
    engine = Memory()
    engine._inserted["log"] = [ReceivedMessage("log", 0, None, value, START) for value in messages]
    declared = declared.replace("WITH (", "WITH (KAFKA_TOPIC='log', ")
    time, *columns = expected
    script = f"CREATE STREAM log {declared}; SELECT {'ROWTIME, ' if time else ''}host, message FROM log;"
    last = list(SqlSession(engine).run(script))[-1]
    assert last.error is None and last.rows == [(*([time] if time else []), *columns)]
    assert last.warnings[0].startswith("1 of 2 messages could not be read")


def test_csv_and_times_of_a_pattern() -> None:
    script = """
    CREATE STREAM trades (symbol VARCHAR, price DOUBLE, at VARCHAR) WITH (KAFKA_TOPIC='trades',
      VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='|', TIMESTAMP='at', TIMESTAMP_FORMAT='dd/MM/yyyy HH:mm:ss');
    INSERT INTO trades VALUES ('A', 1.5, '01/01/2026 00:00:01'), ('A', 2.5, '01/01/2026 00:02:01');
    SELECT window_start, SUM(price) AS spent FROM trades WINDOW TUMBLING (SIZE 1 MINUTE) EMIT FINAL;"""
    assert last_rows(script) == [["2026-01-01T00:00:00", 1.5], ["2026-01-01T00:02:00", 2.5]]


def test_a_name_is_taken_once() -> None:
    again = "CREATE STREAM posts (a INT) WITH (KAFKA_TOPIC='x')"
    with pytest.raises(SqlError, match="posts is a stream already"):
        last_rows(f"{DECLARED} {again}")
    assert last_rows(f"{DECLARED} {again.replace('CREATE', 'CREATE OR REPLACE')}; DESCRIBE posts") == [
        ["a", "INT", ""]
    ]
    kept = f"{DECLARED} {again.replace('STREAM', 'STREAM IF NOT EXISTS')}; DESCRIBE posts"
    assert len(last_rows(kept)) == 7
    assert last_rows(f"{DECLARED} DROP STREAM posts; DROP STREAM IF EXISTS posts; SHOW STREAMS") == [
        ["clicks", "clicks", "JSON"]
    ]


def test_a_query_that_runs_is_not_changed() -> None:
    again = PAGEVIEWS + "CREATE OR REPLACE STREAM female AS SELECT * FROM enriched WHERE gender = 'MALE'"
    with pytest.raises(SqlError, match="a query of this script writes female already"):
        last_rows(again)
    with pytest.raises(SqlError, match="a query of this script writes female; end it first"):
        last_rows(PAGEVIEWS + "DROP STREAM female")


def test_a_script_ends_at_its_first_error() -> None:
    results = outcomes("SHOW FUNCTIONS; SELECT x FROM nothing EMIT CHANGES; SHOW FUNCTIONS")
    assert [one.kind for one in results] == ["rows", "error"]
    assert results[-1].to_json()["error"]["column"] == 31


@pytest.mark.parametrize("name", ["a|b", 'a"b', '"a"', "a\nb", "a\rb", " a ", "plain"])
def test_what_is_inserted_into_a_delimited_topic_is_read_back(name: str) -> None:
    script = f"""
    CREATE STREAM lines (at BIGINT, name VARCHAR, n INT)
      WITH (KAFKA_TOPIC='lines', VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='|', TIMESTAMP='at');
    INSERT INTO lines VALUES (1767225600000, '{name}', 7);
    SELECT name, n FROM lines;
    """
    assert last_rows(script) == [[name, 7]]
