"""Every value of a query has a column of its own: no alias, key or element writes over another."""

from __future__ import annotations

import pytest

from streamgauge.queries.sql.errors import SqlError

from ..scripts import DECLARED, START, last_rows

SENT = f"""{DECLARED}
CREATE STREAM visits (ts BIGINT, usr VARCHAR, ref VARCHAR) WITH (KAFKA_TOPIC='visits', TIMESTAMP='ts');
CREATE TABLE towns (usr VARCHAR PRIMARY KEY, name VARCHAR) WITH (KAFKA_TOPIC='towns');
INSERT INTO towns VALUES ('ann', NULL), ('bob', 'Oulu');
INSERT INTO posts (ts, usr, lang, tags, n, price) VALUES
  ({START}, 'ann', 'en', ARRAY['x', 'y'], 1, 11.0), ({START + 1000}, 'bob', 'EN', NULL, 2, 19.0),
  ({START + 2000}, 'cid', 'fi', ARRAY['x'], 3, 25.0);
INSERT INTO visits VALUES ({START + 3000}, 'ann', 'bob'), ({START + 4000}, 'dan', 'cid');
"""
W = "WINDOW TUMBLING (SIZE 1 MINUTE)"
CASES = [
    # An alias that is the name of a column
    (
        f"SELECT FLOOR(price / 10) AS price, SUM(price) AS s, COUNT(*) AS n FROM posts {W}"
        " GROUP BY FLOOR(price / 10)",
        [[1.0, 30.0, 2], [2.0, 25.0, 1]],
    ),
    (
        f"SELECT UPPER(lang) AS lang, MIN(lang) AS first, COUNT(*) AS n FROM posts {W} GROUP BY UPPER(lang)"
        " HAVING lang = 'EN'",
        [["EN", "EN", 2]],
    ),
    (
        f"SELECT UPPER(lang) AS usr, APPROX_COUNT_DISTINCT(usr) AS users FROM posts {W} GROUP BY UPPER(lang)"
        " ORDER BY usr",
        [["EN", 2], ["FI", 1]],
    ),
    (
        f"SELECT n AS price, SUM(price) AS n FROM posts {W} GROUP BY n ORDER BY price DESC LIMIT 1",
        [[3, 25.0]],
    ),
    ("SELECT price AS n, n AS price, usr AS lang FROM posts LIMIT 1", [[11.0, 1, "ann"]]),
    # A table's key where nothing matches, also where the table's row is nothing but NULL
    ("SELECT p.usr FROM posts p LEFT JOIN towns t ON p.usr = t.usr WHERE t.usr IS NULL", [["cid"]]),
    (
        "SELECT p.usr, t.usr AS own, t.name FROM posts p LEFT JOIN towns t ON p.usr = t.usr",
        [["ann", "ann", None], ["bob", "bob", "Oulu"], ["cid", None, None]],
    ),
    (
        f"SELECT COUNT(t.usr) AS found, COUNT(*) AS n, COUNT(p.usr) AS m FROM posts p LEFT JOIN towns t"
        f" ON p.usr = t.usr {W}",
        [[2, 3, 3]],
    ),
    (
        "SELECT p.usr, t.usr AS own FROM posts p JOIN towns t ON p.usr = t.usr",
        [["ann", "ann"], ["bob", "bob"]],
    ),
    ("SELECT t.* FROM visits v JOIN towns t ON v.ref = t.usr", [["bob", "Oulu"]]),
    ("SELECT n IN (1, 2.0) AS x FROM posts", [[True], [True], [False]]),
    # Keys that are expressions
    (
        "SELECT p.usr AS a, v.usr AS b FROM posts p JOIN visits v WITHIN 10 SECONDS"
        " ON UPPER(p.usr) = UPPER(v.ref)",
        [["bob", "ann"], ["cid", "dan"]],
    ),
    (
        "SELECT p.usr AS a, v.usr AS b, v.ref FROM posts p LEFT JOIN visits v WITHIN 10 SECONDS"
        " ON SUBSTRING(v.ref, 1, 1) || 'ob' = p.usr",
        [["ann", None, None], ["bob", "ann", "bob"], ["cid", None, None]],
    ),
    (
        "SELECT p.usr AS a, v.usr AS b FROM posts p FULL OUTER JOIN visits v WITHIN 10 SECONDS"
        " ON p.usr = LOWER(v.ref) AND p.n + 1 = LENGTH(v.ref) - 0",
        [["ann", None], ["bob", "ann"], ["cid", None], [None, "dan"]],
    ),
    # Keys of two streams
    (
        "SELECT p.usr AS a, v.usr AS b FROM posts p FULL OUTER JOIN visits v WITHIN 10 SECONDS"
        " ON p.usr = v.usr",
        [["ann", "ann"], ["bob", None], ["cid", None], [None, "dan"]],
    ),
    (
        "SELECT p.usr AS a, v.usr AS b FROM posts p LEFT JOIN visits v WITHIN 10 SECONDS ON p.usr = v.usr"
        " WHERE v.usr IS NULL",
        [["bob", None], ["cid", None]],
    ),
    # A key of another name than the other stream's column of that name
    (
        "SELECT p.usr AS a, v.usr AS b, v.ref FROM posts p JOIN visits v WITHIN 10 SECONDS ON p.usr = v.ref",
        [["bob", "ann", "bob"], ["cid", "dan", "cid"]],
    ),
    (
        f"SELECT COUNT(v.usr) AS found, COUNT(*) AS n FROM posts p LEFT JOIN visits v WITHIN 10 SECONDS"
        f" ON p.usr = v.usr {W}",
        [[1, 3]],
    ),
    # Elements of arrays
    ("SELECT EXPLODE(tags) AS usr, UPPER(usr) AS who FROM posts", [["x", "ANN"], ["y", "ANN"], ["x", "CID"]]),
    ("SELECT EXPLODE(tags) AS tag, ARRAY_LENGTH(tags) AS n FROM posts", [["x", 2], ["y", 2], ["x", 1]]),
    (
        "SELECT usr, EXPLODE(tags) AS a, EXPLODE(ARRAY[n, n + 10]) AS b FROM posts",
        [
            ["ann", "x", 1],
            ["ann", "y", 11],
            ["bob", None, 2],
            ["bob", None, 12],
            ["cid", "x", 3],
            ["cid", None, 13],
        ],
    ),
    (
        "SELECT usr, t.tag FROM posts LEFT JOIN UNNEST(tags) AS t(tag) ON TRUE",
        [["ann", "x"], ["ann", "y"], ["bob", None], ["cid", "x"]],
    ),
    (
        "SELECT u.lang, p.lang AS own FROM posts p CROSS JOIN UNNEST(tags) AS u(lang)",
        [["x", "en"], ["y", "en"], ["x", "fi"]],
    ),
    (
        "SELECT COUNT(*) AS n FROM posts CROSS JOIN UNNEST(tags) AS a(x) CROSS JOIN UNNEST(tags) AS b(y) "
        + W,
        [[5]],
    ),
]


def test_what_each_name_means() -> None:
    wrong = []
    for query, expected in CASES:
        rows = last_rows(f"{SENT} {query};")
        if sorted(map(str, rows)) != sorted(map(str, expected)):
            wrong.append((query, rows, expected))
    assert not wrong, wrong


def test_a_row_of_nothing_but_null_is_a_match() -> None:
    rows = last_rows(f"{SENT} SELECT * FROM visits v LEFT JOIN towns t ON v.usr = t.usr;")
    assert rows == [[START + 3000, "ann", "bob", "ann", None], [START + 4000, "dan", "cid", None, None]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT lang FROM posts p CROSS JOIN UNNEST(tags) AS u(lang)", "lang may be p.lang or u.lang"),
        ("SELECT UPPER(usr) AS usr, * FROM posts", "usr is selected twice"),
        (
            f"SELECT UPPER(lang) AS lang, lang AS x, COUNT(*) FROM posts {W} GROUP BY UPPER(lang)",
            "lang must be in GROUP BY",
        ),
        ("SELECT usr FROM posts p CROSS JOIN UNNEST(tags) AS p(x)", "p is used as a name twice"),
    ],
)
def test_what_could_mean_two_is_refused(query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        last_rows(f"{SENT} {query};")
