"""UNION ALL gives the rows of all its SELECTs; SEMI and ANTI JOIN those of the left side, once each."""

from __future__ import annotations

from ..scripts import DECLARED, START, last_rows

ROWS = (
    f"{DECLARED} INSERT INTO posts (ts, usr, n) VALUES ({START}, 'ann', 1), ({START + 1000}, 'bob', 2),"
    f" ({START + 2000}, NULL, 3);"
    f" INSERT INTO clicks (ts, usr, page) VALUES ({START}, 'ann', '/'), ({START + 500}, 'ann', '/x'),"
    f" ({START + 90_000}, 'bob', '/');"
    " INSERT INTO users (usr, region) VALUES ('ann', 'no');"
)
_BOTH = "SELECT usr AS who, ts FROM posts UNION ALL SELECT page, ts FROM clicks"
QUERIES = {
    "SELECT usr FROM posts UNION ALL SELECT usr FROM clicks": [
        ["ann"],
        ["bob"],
        [None],
        ["ann"],
        ["ann"],
        ["bob"],
    ],
    "WITH q AS (SELECT n FROM posts WHERE n > 1) SELECT n FROM q UNION ALL (SELECT n + 1 FROM q)": [
        [2],
        [3],
        [3],
        [4],
    ],
    f"CREATE STREAM a AS {_BOTH}; SELECT who, ts FROM a WHERE ts > {START + 1000}": [
        [None, START + 2000],
        ["/", START + 90_000],
    ],
    f"CREATE STREAM a AS {_BOTH}; SELECT COUNT(*) AS n FROM a WINDOW TUMBLING (SIZE 1 MINUTE)": [[5], [1]],
    "INSERT INTO clicks SELECT ts, usr, usr AS page FROM posts UNION ALL SELECT ts, 'x', NULL FROM posts;"
    " SELECT usr FROM clicks": [[one] for one in ("ann", "ann", "bob", "ann", "bob", None, "x", "x", "x")],
    f"CREATE VIEW v AS {_BOTH}; SELECT who, ts FROM v WHERE ts > {START + 1000}": [
        [None, START + 2000],
        ["/", START + 90_000],
    ],
    f"WITH v AS ({_BOTH}) SELECT window_start, COUNT(*) AS n FROM TUMBLE(v, ts, INTERVAL '1' MINUTE) GROUP BY"
    " window_start": [["2026-01-01T00:00:00", 5], ["2026-01-01T00:01:00", 1]],
    f"SELECT COUNT(who) AS n FROM ({_BOTH}) AS v": [[5]],
    "SELECT u, SUM(n) AS s FROM (SELECT usr AS u, n FROM posts UNION ALL (SELECT usr, 10 FROM clicks"
    " UNION ALL SELECT usr, 100 FROM clicks)) AS v GROUP BY u": [["ann", 221], ["bob", 112], [None, 3]],
    "CREATE VIEW v AS SELECT usr, n FROM posts UNION ALL SELECT usr, n + 1 FROM posts WHERE n < 3;"
    " SELECT region, SUM(n) AS s FROM v JOIN users u ON v.usr = u.usr GROUP BY region": [["no", 3]],
    f"CREATE VIEW v AS {_BOTH}; CREATE STREAM a AS SELECT * FROM v; SELECT COUNT(*) AS n FROM a WINDOW"
    " TUMBLING (SIZE 1 MINUTE)": [[5], [1]],
    f"CREATE STREAM a AS {_BOTH}; TERMINATE a; SHOW QUERIES": [],
    "SELECT n FROM posts p LEFT SEMI JOIN users u ON p.usr = u.usr": [[1]],
    "SELECT n FROM posts p LEFT ANTI JOIN users u ON p.usr = u.usr": [[2], [3]],
    "SELECT p.usr, COUNT(*) AS n FROM posts p ANTI JOIN users u ON p.usr = u.usr WINDOW TUMBLING (SIZE 1 DAY)"
    " GROUP BY p.usr": [[None, 1], ["bob", 1]],
    "SELECT n FROM posts p LEFT ANTI JOIN clicks c WITHIN 10 SECONDS ON p.usr = c.usr": [[2], [3]],
}


def test_rows_of_unions_and_half_joins() -> None:
    wrong = {}
    for query, expected in QUERIES.items():
        rows = last_rows(f"{ROWS} {query};")
        if sorted(map(repr, rows)) != sorted(map(repr, expected)):
            wrong[query] = rows
    assert not wrong


def test_partition_by_is_the_key_of_the_messages_that_are_written() -> None:
    keys = {
        "CREATE STREAM k AS SELECT usr, n FROM posts PARTITION BY n": ["1", "2", "3"],
        "CREATE STREAM k AS SELECT * FROM posts WHERE n > 1 PARTITION BY usr": ["bob", None],
        "CREATE STREAM k AS SELECT n, UPPER(usr) AS u FROM posts PARTITION BY UPPER(usr), n EMIT CHANGES": [
            '["ANN",1]',
            '["BOB",2]',
            "[null,3]",
        ],
        "CREATE STREAM k AS SELECT usr AS u FROM posts PARTITION BY usr"
        " UNION ALL SELECT page FROM clicks PARTITION BY page": ["ann", "bob", None, "/", "/x", "/"],
    }
    written = {
        query: [row[3] for row in last_rows(f"{ROWS} {query}; PRINT 'k' FROM BEGINNING;")] for query in keys
    }
    assert written == keys
