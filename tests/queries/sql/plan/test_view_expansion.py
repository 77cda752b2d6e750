"""A view is a query of rows by a name: it is put in place of the name, and refused where it can't be."""

from __future__ import annotations

from ..scripts import DECLARED, START, last_rows, outcomes

POSTS = (
    f"{DECLARED} INSERT INTO posts (ts, usr, n) VALUES ({START}, 'ann', 1), ({START + 1}, 'bob', 2),"
    f" ({START}, 'cy', 3);"
    " CREATE VIEW high AS SELECT usr, n * 2 AS twice FROM posts WHERE n > 1;"
)
SELECTED = {
    "SELECT * FROM high": [["bob", 4], ["cy", 6]],
    "SELECT h.usr FROM high h WHERE h.twice > 4": [["cy"]],
    "CREATE VIEW more AS SELECT twice + 1 AS x FROM high; SELECT x FROM more": [[5], [7]],
    "CREATE VIEW more AS WITH q AS (SELECT usr AS who FROM high) SELECT who FROM q; SELECT who FROM more": [
        ["bob"],
        ["cy"],
    ],
    "CREATE OR REPLACE VIEW high AS SELECT usr FROM posts WHERE n = 1; SELECT * FROM high": [["ann"]],
    "SELECT COUNT(*) AS n, SUM(twice) AS s FROM high WINDOW TUMBLING (SIZE 1 MINUTE)": [[2, 10]],
    "CREATE VIEW all_of AS SELECT p.*, n + 1 AS m FROM posts p; SELECT usr, m FROM all_of WHERE m > 3": [
        ["cy", 4]
    ],
    "CREATE VIEW timed AS SELECT ts AS t, n FROM posts WHERE n > 1; SELECT window_start, SUM(n) AS s FROM"
    " TABLE(TUMBLE(TABLE timed, DESCRIPTOR(t), INTERVAL '1' DAY)) GROUP BY window_start, window_end": [
        ["2026-01-01T00:00:00", 5]
    ],
    "CREATE VIEW timed AS SELECT usr AS who, ts AS t FROM posts; SELECT who, COUNT(*) AS c FROM"
    " TABLE(SESSION(TABLE timed PARTITION BY who, DESCRIPTOR(t), INTERVAL '1' MINUTE))"
    " GROUP BY window_start, window_end, who ORDER BY who": [["ann", 1], ["bob", 1], ["cy", 1]],
}
REFUSED = {
    "CREATE VIEW x AS SELECT p.*, u.region FROM posts p JOIN users u ON p.usr = u.usr": "p.* beside a join",
    "CREATE VIEW x AS SELECT q.* FROM posts p": "no stream of the query is called q",
    "CREATE VIEW x AS SELECT ts + 1 AS t FROM posts; SELECT COUNT(*) AS n FROM TUMBLE(x, t, INTERVAL '1' DAY)"
    " GROUP BY window_start": "t isn't the event time as the stream has it",
    "WITH x AS (SELECT ts FROM TUMBLE(posts, ts, INTERVAL '1' DAY)) SELECT COUNT(*) AS n"
    " FROM TUMBLE(x, ts, INTERVAL '1' HOUR) GROUP BY window_start": "a query has one window, and the named",
    "SELECT price FROM high": "no column is called price; did you mean twice?",
    "CREATE VIEW high AS SELECT usr FROM posts": "high is a view already",
    "CREATE VIEW posts AS SELECT usr FROM posts": "posts is a stream already",
    "CREATE STREAM high (a INT) WITH (KAFKA_TOPIC='h')": "high is a view already",
    "CREATE VIEW x AS SELECT nothing FROM posts": "no column is called nothing",
    "CREATE VIEW x AS SELECT COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 1 MINUTE)": "a named query",
    "DROP VIEW high; SELECT usr FROM high": "no stream or table is called high",
    "DROP VIEW low": "no view is called low; there are high",
    "DESCRIBE high": "high is a view, which is read by FROM alone",
}


def test_a_view_is_read_as_its_query() -> None:
    for text, rows in SELECTED.items():
        assert last_rows(f"{POSTS} {text};") == rows, text
    assert outcomes(f"{POSTS} DROP VIEW IF EXISTS low;")[-1].kind == "done"


def test_an_alert_of_a_view_is_a_rule() -> None:
    alert = (
        "CREATE ALERT many AS SELECT usr FROM high WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY usr"
        " HAVING SUM(twice) > 5"
    )
    assert outcomes(f"{POSTS} {alert};")[-1].error is None
    (row,) = last_rows(f"{POSTS} EXPLAIN {alert};")
    assert "Threshold" in row[0]


def test_what_is_no_view_is_refused() -> None:
    for text, message in REFUSED.items():
        error = outcomes(f"{POSTS} {text};")[-1].error
        assert error is not None and error.message.startswith(message), (text, error)


def test_an_error_of_a_view_stands_where_its_name_does() -> None:
    error = outcomes(f"{POSTS} DROP STREAM posts;\nSELECT usr FROM high;")[-1].error
    assert error is not None and str(error).splitlines()[1:] == [
        "  SELECT usr FROM high;",
        " " * 18 + "^" * 4,
    ]
