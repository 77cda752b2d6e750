"""WITH and queries in FROM give the rows that DuckDB gives; what isn't rows is refused at its place."""

from __future__ import annotations

import pytest

from streamgauge.queries.sql.errors import SqlError

from ..scripts import planned
from ..test_query_fuzz import Engines, Generator

ROWS = (
    "WITH q AS (SELECT k, n AS x, UPPER(w) AS w FROM s WHERE n > 1) SELECT k, x + 1 AS n, w FROM q",
    "WITH q AS (SELECT k, n AS x FROM s) SELECT * FROM q WHERE x <> 2",
    "SELECT k, x FROM (SELECT k, n AS x FROM s) t WHERE x > 1 OR k = 'a'",
    "SELECT t.x, t.k FROM (SELECT k, n * 2 AS x FROM s WHERE n > 0 OR b) AS t WHERE t.x < 9 OR t.k IS NULL",
    "WITH q AS (SELECT s.k, u.town, u.w FROM s LEFT JOIN u ON s.k = u.k) SELECT k FROM q WHERE town IS NULL",
    "WITH one AS (SELECT n AS p, k FROM s), two AS (SELECT p + 1 AS q FROM one WHERE p > 1) SELECT q"
    " FROM two",
    "WITH q AS (SELECT k AS n, n AS k FROM s) SELECT n, k FROM q WHERE k > 1",
    "WITH q AS (SELECT *, n * 2 AS twice FROM s) SELECT k, twice, x FROM q WHERE twice > 2",
    "WITH s AS (SELECT k, n AS m FROM s) SELECT m FROM s",
    "WITH q AS (SELECT k, n * 2 AS m FROM s WHERE n > 1 OR b) SELECT q.k, m, town FROM q JOIN u ON q.k = u.k",
    "WITH q AS (SELECT k AS town, n AS m FROM s WHERE n > 1) SELECT q.town, m, u.town AS t FROM q LEFT JOIN u"
    " ON q.town = u.k WHERE m < 9 OR u.town IS NULL",
    "WITH q AS (SELECT k AS a, n AS m FROM s WHERE n <> 2) SELECT a, u.k, town FROM q LEFT JOIN u ON a = u.k",
)
GROUPED = (
    (
        "WITH q AS (SELECT UPPER(k) AS k, n FROM s) SELECT k, COUNT(*) AS c, SUM(n) AS n FROM q WINDOW"
        " TUMBLING (SIZE 1 HOUR) GROUP BY k HAVING COUNT(*) > 1",
        "SELECT k, COUNT(*), SUM(n) FROM (SELECT UPPER(k) AS k, n FROM s) GROUP BY k HAVING COUNT(*) > 1",
    ),
    (
        "WITH q AS (SELECT k, n FROM s) SELECT k || 'x' AS w, COUNT(*) FILTER (WHERE n > 1) AS c FROM q"
        " WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY w",
        "SELECT k || 'x', COUNT(*) FILTER (WHERE n > 1) FROM s GROUP BY k || 'x'",
    ),
)
JOINED = tuple(
    (
        text.format(within=" WITHIN 5 SECONDS", near=""),
        text.format(within="", near=" AND abs(s.ts - r.ts) <= 5000"),
    )
    for text in (
        "SELECT s.n, r.n AS m FROM s JOIN s AS r{within} ON s.k = r.k{near}",
        "SELECT s.n, r.n AS m FROM s LEFT JOIN s AS r{within} ON s.n = r.m{near}",
        "SELECT s.n, r.n AS m, r.k FROM s FULL JOIN s AS r{within} ON s.w = r.k{near}",
        "SELECT s.n, r.n AS m FROM s JOIN s AS r{within} ON s.k = r.k AND s.n = r.m + 1{near}",
        "WITH q AS (SELECT ts, k, n * 2 AS m FROM s WHERE n > 1) SELECT s.m, r.m AS n FROM q AS s JOIN q AS r"
        "{within} ON s.k = r.k{near}",
        "WITH q AS (SELECT * FROM s WHERE n > 1) SELECT s.x, r.w FROM q AS s FULL JOIN q AS r{within} ON"
        " s.n = r.n{near}",
        "WITH q AS (SELECT * FROM t WHERE n > 1) SELECT s.x, r.w FROM s LEFT JOIN q AS r{within} ON s.k = r.k"
        "{near} WHERE s.n > 0",
        "WITH q AS (SELECT k AS w, ts FROM t) SELECT r.w, s.w AS v FROM t AS s JOIN q AS r{within} ON"
        " s.k = r.w{near}",
        "WITH q AS (SELECT k, n, ts FROM s WHERE n < 5) SELECT s.n, r.x FROM q AS s JOIN s AS r{within} ON"
        " s.k = r.k{near}",
        "SELECT s.n, u.town FROM s JOIN s AS r{within} ON s.k = r.k{near} LEFT JOIN u ON r.w = u.k",
    )
)
UNNESTED = (
    "WITH q AS (SELECT n, tags FROM s WHERE n > 1) SELECT t, q.n FROM q CROSS JOIN UNNEST({tags}) AS e(t)"
)
STARRED = "WITH q AS (SELECT * FROM s WHERE n > 1) SELECT q.n, u.town FROM q LEFT JOIN u ON q.k = u.k"
Q = "WITH q AS (SELECT usr, tags FROM posts)"
REFUSED = {
    "WITH q AS (SELECT usr FROM posts) SELECT usr, price FROM q": "no column is called price; there are usr",
    "WITH q AS (SELECT usr FROM posts) SELECT usr, price AS price FROM q": "no column is called price",
    "WITH q AS (SELECT usr FROM posts) SELECT usr FROM q WHERE price > 1": "no column is called price",
    "WITH q AS (SELECT *, n * 2 AS n FROM posts) SELECT n FROM q": "n is selected twice; give one",
    "WITH q AS (SELECT usr, n AS usr FROM posts) SELECT usr FROM q": "usr is selected twice; give one",
    "WITH q AS (SELECT n + 1 FROM posts) SELECT * FROM q": "a column of a named query must",
    "WITH q AS (SELECT COUNT(*) AS n FROM posts) SELECT n FROM q": "a named query can't aggregate",
    "WITH q AS (SELECT usr FROM posts LIMIT 1) SELECT usr FROM q": "a named query selects rows",
    "WITH q AS (SELECT EXPLODE(tags) AS t FROM posts) SELECT t FROM q": "EXPLODE in a named query",
    f"{Q} SELECT usr FROM q JOIN users u ON q.usr = u.usr": "usr may be q.usr or",
    f"{Q} SELECT lang, price FROM q JOIN users u ON q.usr = u.usr": "no column is called price",
    f"{Q} SELECT ROWTIME FROM q JOIN clicks c WITHIN 1 DAY ON q.usr = c.usr": "ROWTIME may be",
    f"{Q} SELECT * FROM q JOIN users u ON q.usr = u.usr": "* beside a named query",
    f"{Q} SELECT u.* FROM q JOIN users u ON q.usr = u.usr": "u.* beside a named query",
    "WITH q AS (SELECT usr FROM users) SELECT q.usr FROM clicks c JOIN q ON c.usr = q.usr": "users is a",
    "SELECT c.page FROM clicks c JOIN (SELECT usr FROM posts) q ON c.usr = q.usr": "a join of two",
    "SELECT c.page FROM clicks c JOIN (SELECT usr FROM posts) ON c.usr = usr": "a query in FROM must have a",
    "SELECT c.page FROM clicks c JOIN (SELECT usr, COUNT(*) AS n FROM posts GROUP BY usr) q WITHIN 1 DAY ON"
    " c.usr = q.usr": "a named query selects rows",
    "SELECT usr FROM (SELECT usr FROM posts)": "a query in FROM must have a name",
    "WITH RECURSIVE q AS (SELECT usr FROM posts) SELECT usr FROM q": "RECURSIVE: a stream can't be read",
    "WITH q(a) AS (SELECT usr FROM posts) SELECT a FROM q": "name the columns in the SELECT",
}


@pytest.mark.slow
def test_rows_of_a_named_query_are_those_that_duckdb_gives() -> None:
    both = [*((text, text) for text in (*ROWS, STARRED)), *GROUPED, *JOINED]
    both.append((UNNESTED.format(tags="tags"), UNNESTED.format(tags="q.tags")))
    for seed in range(3):
        engines = Engines(Generator(seed).rows())
        for ours, theirs in both:
            assert engines.differ(ours, theirs) == "", ours


def test_what_is_not_rows_is_refused() -> None:
    wrong = []
    for text, message in REFUSED.items():
        try:
            planned(text)
            wrong.append(f"{text}: planned")
        except SqlError as error:
            wrong += [] if error.message.startswith(message) else [f"{text}: {error.message}"]
    assert not wrong, "\n".join(wrong)
