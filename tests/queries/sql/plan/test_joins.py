"""Joins with the version of a table that was valid at a row's time, and of a stream with itself."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import polars as pl
import pytest

from streamgauge.queries.sql.errors import SqlError

from ..scripts import START, last_rows, planned

RATES = """
CREATE STREAM orders (id INT, cur VARCHAR, ts BIGINT) WITH (KAFKA_TOPIC='orders', TIMESTAMP='ts');
CREATE TABLE rates (cur VARCHAR PRIMARY KEY, rate INT, since BIGINT)
  WITH (KAFKA_TOPIC='rates', TIMESTAMP='since', VERSIONS='30d');
"""


def inserted(table: str, rows: list[tuple[Any, ...]]) -> str:
    return f"INSERT INTO {table} VALUES {', '.join(map(str, rows))};" if rows else ""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_a_row_has_the_version_that_duckdb_finds(join: str, seed: int) -> None:
    rng = random.Random(seed)
    currencies = ["eur", "usd", "sek"]
    rates = [(rng.choice(currencies), n, START + t * 1000) for n, t in enumerate(rng.sample(range(100), 30))]
    orders = [(n, rng.choice([*currencies, "gbp"]), START + rng.randrange(100) * 1000) for n in range(60)]
    ours = last_rows(
        RATES
        + inserted("rates", rates)
        + inserted("orders", orders)
        + f"SELECT o.id, r.rate, r.cur FROM orders AS o {join} rates FOR SYSTEM_TIME AS OF o.ts AS r"
        " ON o.cur = r.cur"
    )
    connection = duckdb.connect()
    for name, columns, rows in (
        ("rates", ["cur", "rate", "since"], rates),
        ("orders", ["id", "cur", "ts"], orders),
    ):
        connection.register(name, pl.DataFrame(rows, columns, orient="row"))
    theirs = connection.execute(
        f"SELECT o.id, r.rate, r.cur FROM orders o ASOF {join} rates r ON o.cur = r.cur AND o.ts >= r.since"
    ).fetchall()
    assert sorted(map(tuple, ours)) == sorted(theirs)
    assert any(row[1] is None for row in ours) is (join == "LEFT JOIN")


def test_a_windows_sum_is_of_the_versions_of_its_rows() -> None:
    rates = [("eur", 1, START), ("eur", 5, START + 20_000)]
    orders = [(1, "eur", START), (2, "eur", START + 19_999), (3, "eur", START + 20_000)]
    given = RATES + inserted("rates", rates) + inserted("orders", orders)
    counted = (
        "SELECT SUM(rate) AS total FROM orders o JOIN rates {} r ON o.cur = r.cur"
        " WINDOW TUMBLING (SIZE 1 HOUR)"
    )
    assert last_rows(given + counted.format("FOR SYSTEM_TIME AS OF o.ROWTIME AS") + " EMIT FINAL") == [[7]]
    # The time of processing is now, when the last version is valid.
    assert last_rows(given + counted.format("FOR SYSTEM_TIME AS OF PROCTIME() AS") + " EMIT FINAL") == [[15]]
    assert last_rows(given + counted.format("") + " EMIT FINAL") == [[15]]


def test_rows_without_a_version_are_found() -> None:
    rates = [("eur", 1, START + 10_000)]
    orders = [(1, "eur", START), (2, "eur", START + 10_000), (3, "gbp", START)]
    given = RATES + inserted("rates", rates) + inserted("orders", orders)
    query = "SELECT o.id FROM orders o {} rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur"
    assert last_rows(given + query.format("LEFT ANTI JOIN")) == [[1], [3]]
    assert last_rows(given + query.format("LEFT SEMI JOIN")) == [[2]]


def test_a_plan_says_how_long_versions_are_held() -> None:
    source = planned(
        "SELECT p.usr, u.region FROM posts p JOIN users FOR SYSTEM_TIME AS OF p.ROWTIME AS u ON p.usr = u.usr"
    ).source
    assert "versions='1d'" in source and "as_of='ROWTIME'" in source


SHOTS = """
CREATE STREAM shots (ts BIGINT, k VARCHAR, n INT) WITH (KAFKA_TOPIC='shots', TIMESTAMP='ts');
CREATE STREAM others (ts BIGINT, k VARCHAR) WITH (KAFKA_TOPIC='shots', TIMESTAMP='ts');
"""


def test_a_stream_that_is_joined_with_itself_is_written_and_counted() -> None:
    times = [0, 10, 50, 100, 130, 500]
    rows = ", ".join(f"({START + 1000 * at}, 'a', {number})" for number, at in enumerate(times))
    given = f"{SHOTS} INSERT INTO shots VALUES {rows};"
    pairs = "FROM shots a JOIN shots b WITHIN 1 MINUTE ON a.k = b.k WHERE a.n < b.n"
    near = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]
    written = f"CREATE STREAM near AS SELECT a.n AS one, b.n AS two {pairs}; SELECT one, two FROM near"
    assert sorted(map(tuple, last_rows(given + written))) == near
    counted = pairs.replace(" WHERE", " WINDOW TUMBLING (SIZE 1 HOUR) WHERE")
    assert last_rows(given + f"SELECT COUNT(*) AS n {counted} EMIT FINAL") == [[len(near)]]
    view = "CREATE VIEW late AS SELECT * FROM shots WHERE n > 1;"
    joined = (
        "SELECT a.n, b.n AS m FROM late a LEFT JOIN late b WITHIN 1 MINUTE ON a.k = b.k AND a.n + 1 = b.n"
    )
    assert sorted(last_rows(given + view + joined), key=str) == [[2, 3], [3, 4], [4, None], [5, None]]


def test_streams_that_read_one_topic_in_two_ways_are_not_joined() -> None:
    with pytest.raises(SqlError, match="both sides of the join read the topic shots, as streams with other"):
        last_rows(f"{SHOTS} SELECT a.n FROM shots a JOIN others b WITHIN 1 MINUTE ON a.k = b.k")
