"""Stored tables of sketches, asked in SQL: any span, fewer keys, coarser windows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.operators.table.schema import aggregates_of, write_parquet
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.parse.dialect import statements_of
from streamgauge.queries.sql.plan.catalog import relation_of
from streamgauge.queries.sql.run.pull_query import pull_query
from streamgauge.queries.sql.run.stored_tables import file_view
from streamgauge.queries.views.view import TableView

from ....cases import each
from ...server.http.served import fed, serving
from ..scripts import last_rows

START = 1_767_225_600


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten minutes of posts in two languages, as a stream stored them."""
    folder = tmp_path_factory.mktemp("minutes")
    schema = {"at": pl.Int64, "user": pl.String, "lang": pl.String, "price": pl.Float64}
    rows = sg.Stream.from_schema(schema, time=pl.from_epoch("at"))
    minutes = (
        rows.group_by("lang")
        .tumbling("1m")
        .agg(
            n=sg.count(),
            users=sg.distinct("user"),
            people=sg.distinct_set("user"),
            price=sg.quantiles("price"),
            often=sg.top_k("user", k=5),
        )
    )
    tester = sg.StreamTester(minutes, sinks=[sg.SketchesToParquet(folder)])
    tester.feed(
        {
            "at": START + second,
            "user": f"u{second % 50}" if second % 3 else f"u{second % 20}",
            "lang": "en" if second % 3 else "fi",
            "price": second * 1.0,
        }
        for second in range(600)
    )
    tester.finish()
    return f"CREATE TABLE minutes WITH (SKETCHES='{folder}');"


def answers(declared: str, query: str) -> list[list[Any]]:
    return last_rows(f"{declared} {query}")


def test_days_of_a_zone_in_the_words_of_a_table_function(declared: str) -> None:
    for source in (
        "minutes WINDOW TUMBLING (SIZE 1 DAY, TIME ZONE 'Asia/Kathmandu')",
        "TUMBLE(minutes, window_start AT TIME ZONE 'Asia/Kathmandu', INTERVAL '1' DAY) GROUP BY window_start",
    ):
        query = f"SELECT window_start, COUNT(*) AS n FROM {source};"
        ((start, n),) = answers(declared, query)
        assert (str(start), n) == ("2025-12-31T18:15:00", 600)
    query = "SELECT window_start, COUNT(*) AS n FROM minutes WINDOW TUMBLING (SIZE 1 MONTH);"
    ((start, n),) = answers(declared, query)
    assert (str(start), n) == ("2026-01-01T00:00:00", 600)


def test_longer_windows_in_the_words_of_a_table_function(declared: str) -> None:
    for source in (
        "minutes WINDOW TUMBLING (SIZE 5 MINUTES)",
        "TUMBLE(minutes, window_start, INTERVAL '5' MINUTE)",
        "TABLE(TUMBLE(TABLE minutes, DESCRIPTOR(window_start), INTERVAL '5' MINUTE))",
    ):
        query = f"SELECT window_start, COUNT(*) AS n FROM {source} GROUP BY window_start, window_end"
        assert [row[1] for row in answers(declared, query)] == [300, 300]
    query = "SELECT window_start, COUNT(*) AS n FROM minutes WINDOW TUMBLING (SIZE 5 MINUTES)"
    assert [row[1] for row in answers(declared, query)] == [300, 300]
    for source, message in (
        ("HOP(minutes, window_start, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)", "merged into longer ones"),
        ("TUMBLE(minutes, window_start, INTERVAL '5' MINUTE) WINDOW TUMBLING (SIZE 1 HOUR)", "one window"),
    ):
        with pytest.raises(SqlError, match=message):
            answers(declared, f"SELECT COUNT(*) AS n FROM {source}")


def test_aggregates_of_nothing_are_a_row(declared: str) -> None:
    for condition in ("lang = 'xx'", "lang NOT IN ('en', NULL)", "window_start > '2027-01-01'"):
        counts = "COUNT(*) AS n, COUNT(*) FILTER (WHERE lang = 'en') AS m"
        query = f"SELECT {counts} FROM minutes WHERE {condition}"
        assert answers(declared, query) == [[0, 0]]
        assert answers(declared, f"{query} GROUP BY lang") == []
        assert answers(declared, f"SELECT lang, n FROM minutes WHERE {condition}") == []
    assert answers(declared, "SELECT COUNT(*) AS n FROM minutes WHERE lang = 'xx' HAVING COUNT(*) > 0") == []


def test_windows_as_they_are(declared: str) -> None:
    rows = answers(declared, "SELECT lang, n, window_start FROM minutes WHERE lang = 'en' LIMIT 2")
    assert rows == [["en", 40, "2026-01-01T00:00:00"], ["en", 40, "2026-01-01T00:01:00"]]
    assert len(answers(declared, "SELECT * FROM minutes")) == 20


def test_fewer_keys_and_the_whole_span(declared: str) -> None:
    assert answers(declared, "SELECT lang, COUNT(*) AS n FROM minutes GROUP BY lang ORDER BY n") == [
        ["fi", 200],
        ["en", 400],
    ]
    ((n, users),) = answers(declared, "SELECT COUNT(*) AS n, APPROX_COUNT_DISTINCT(user) AS u FROM minutes")
    assert n == 600 and users == 50
    assert answers(declared, "SELECT APPROX_COUNT_DISTINCT(users) AS u FROM minutes") == [[50]]


def test_an_aggregate_has_the_parameters_that_are_asked_for(declared: str) -> None:
    ((most,),) = answers(declared, "SELECT APPROX_TOP_K(user, 3) AS t FROM minutes")
    ((all_of_them,),) = answers(declared, "SELECT APPROX_TOP_K(user, 5) AS t FROM minutes")
    assert len(most) == 3 and most == all_of_them[:3]
    for call, message in (
        ("APPROX_TOP_K(user, 6)", "k must be from 1 to 5, as minutes has it"),
        ("APPROX_TOP_K(user, 3, 8)", "minutes was not sketched with max_size 8; it has max_size 4096"),
        ("APPROX_COUNT_DISTINCT(user, 20)", "minutes was not sketched with lg_k 20; it has lg_k 12"),
        ("TOP_K(user, k => 9)", "k must be from 1 to 5, as minutes has it"),
    ):
        with pytest.raises(SqlError, match=message):
            answers(declared, f"SELECT {call} AS t FROM minutes")


def test_other_tables_and_windows_are_refused(declared: str) -> None:
    for query, message in (
        ("SELECT other.lang FROM minutes", "no table of the query is called other"),
        (
            "SELECT COUNT(*) AS n FROM TUMBLE(minutes, ts, INTERVAL '1' HOUR)",
            "the time of stored windows is window_start",
        ),
        (
            "SELECT COUNT(*) AS n FROM TUMBLE(minutes, window_start, INTERVAL '1' HOUR)",
            "GROUP BY window_start, …",
        ),
        (
            "SELECT COUNT(*) AS n FROM minutes WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 1 MINUTE)",
            "GRACE PERIOD",
        ),
        (
            "SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) AS a, n FROM minutes",
            "write window_start or window_end",
        ),
        ("SELECT lang FROM minutes TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT n FROM catalogue.minutes", "a stream or table has one name"),
    ):
        with pytest.raises(SqlError, match=message):
            answers(declared, query)
    assert answers(declared, "SELECT m.lang, COUNT(*) AS n FROM minutes m GROUP BY m.lang ORDER BY n") == [
        ["fi", 200],
        ["en", 400],
    ]


def test_a_span_and_coarser_windows(declared: str) -> None:
    query = """SELECT window_start, COUNT(*) AS n FROM minutes WINDOW TUMBLING (SIZE 5 MINUTES)
      WHERE window_start >= '2026-01-01T00:05:00' EMIT_"""
    assert answers(declared, query.replace("EMIT_", "")) == [["2026-01-01T00:05:00", 300]]
    by_minute = """SELECT window_start, COUNT(*) AS n FROM minutes
      WHERE window_end <= '2026-01-01T00:02' GROUP BY window_start"""
    assert [row[1] for row in answers(declared, by_minute)] == [60, 60]
    assert answers(
        declared, "SELECT COUNT(*) AS n FROM minutes WHERE window_start >= NOW() - INTERVAL '1' DAY"
    ) in ([[0]], [[600]])


def test_what_a_stored_table_has(declared: str) -> None:
    assert answers(declared, "DESCRIBE minutes") == [
        ["lang", "key"],
        ["n", "count()"],
        ["users", "distinct(user)"],
        ["people", "distinct_set(user)"],
        ["price", "quantiles(price)"],
        ["often", "top_k(user)"],
    ]
    with pytest.raises(SqlError, match="minutes is a stored table of sketches, which takes no rows"):
        answers(declared, "INSERT INTO minutes VALUES (1)")
    with pytest.raises(SqlError, match="there is no such file or folder"):
        last_rows("CREATE TABLE t WITH (SKETCHES='/nowhere'); SELECT COUNT(*) FROM t")


def test_rows_of_one_group_in_several_files_are_merged(declared: str, tmp_path: Path) -> None:
    table = sg.read_table(declared.split("'")[1])
    table.write(tmp_path / "one.parquet")
    table.slice(0, 2).write(tmp_path / "two.parquet")
    both = f"CREATE TABLE minutes WITH (SKETCHES='{tmp_path}');"
    rows = answers(both, "SELECT lang, n FROM minutes WHERE lang = 'en' LIMIT 2")
    assert rows == [["en", 80], ["en", 40]]
    assert answers(both, "SELECT COUNT(*) AS n FROM minutes") == [[660]]


@pytest.mark.parametrize(
    "query", ["SELECT lang, users FROM minutes", "SELECT APPROX_COUNT_DISTINCT(user) FROM minutes"]
)
def test_what_is_no_sketch_is_refused_where_it_is_used(declared: str, tmp_path: Path, query: str) -> None:
    table = sg.read_table(declared.split("'")[1]).to_arrow()
    place = table.column_names.index("users")
    damaged = pa.array([b"no sketch"] * table.num_rows, table.schema.field(place).type)
    write_parquet(table.set_column(place, table.schema.field(place), damaged), tmp_path / "t.parquet")
    damaged_table = f"CREATE TABLE minutes WITH (SKETCHES='{tmp_path}');"
    with pytest.raises(SqlError, match="line 1, column"):
        answers(damaged_table, query)
    assert answers(damaged_table, "SELECT COUNT(*) AS n FROM minutes") == [[600]]


def test_a_table_of_a_query_server() -> None:
    with serving(Service({"posts": fed().table})) as server:
        declared = f"CREATE TABLE t WITH (SERVER='{server.url}', TABLE='posts');"
        ((n,),) = answers(declared, "SELECT COUNT(*) FROM t WHERE lang IN ('en', 'de')")
        whole = answers(declared, "SELECT lang, COUNT(*) AS n FROM t GROUP BY lang")
        assert n == sum(row[1] for row in whole if row[0] in ("en", "de"))
        assert ["lang", "key"] in answers(declared, "DESCRIBE t")
        with pytest.raises(SqlError, match="nothing is not a key of posts"):
            answers(declared, "SELECT COUNT(*) FROM t GROUP BY nothing")
        with pytest.raises(SqlError, match="has no table t, it has posts"):
            last_rows(f"CREATE TABLE t WITH (SERVER='{server.url}'); DESCRIBE t")


def test_having_and_ranks(declared: str) -> None:
    query = """SELECT lang, PERCENTILE_APPROX(price, 0.75) AS p FROM minutes GROUP BY lang
      HAVING LOWER_BOUND(COUNT(*)) > 300"""
    ((lang, p),) = answers(declared, query)
    assert lang == "en" and p == pytest.approx(450, rel=0.02)


def test_aggregates_of_some_groups_stand_beside_those_of_all(declared: str) -> None:
    query = """SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE lang = 'en') AS en,
      COUNT(*) FILTER (WHERE lang = 'sv') AS sv,
      APPROX_COUNT_DISTINCT(user) FILTER (WHERE lang = 'fi' AND window_start < '2026-01-01T00:01') AS fi,
      COUNT(*) FILTER (WHERE lang LIKE 'e%') * 3 AS thrice FROM minutes"""
    assert answers(declared, query) == [[600, 400, 0, 20, 1200]]
    by_window = """SELECT window_start, COUNT(*) FILTER (WHERE lang = 'en') AS en FROM minutes
      WINDOW TUMBLING (SIZE 5 MINUTES) HAVING COUNT(*) FILTER (WHERE lang = 'fi') > 1"""
    assert [row[1] for row in answers(declared, by_window)] == [200, 200]
    by_language = "SELECT lang, COUNT(*) FILTER (WHERE lang = 'en') AS en FROM minutes GROUP BY lang"
    assert answers(declared, by_language) == [["en", 400], ["fi", 0]]


def test_sets_are_intersected_and_subtracted(declared: str) -> None:
    def both(function: str) -> str:
        sides = (f"THETA_SKETCH_AGG(user) FILTER (WHERE lang = '{lang}')" for lang in ("en", "fi"))
        return f"{function}({', '.join(sides)})"

    query = f"""SELECT {both("THETA_INTERSECTION")} AS both,
      THETA_SKETCH_ESTIMATE({both("THETA_UNION")}) AS any,
      {both("THETA_DIFFERENCE")} AS only, LOWER_BOUND({both("THETA_DIFFERENCE")}) AS at_least,
      THETA_DIFFERENCE(people, {both("THETA_UNION")}) AS nobody FROM minutes
      HAVING {both("THETA_INTERSECTION")} > 1"""
    assert answers(declared, query) == [[20, 50, 30, 30, 0]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT SUM(price) FROM minutes", "minutes holds no sum of price; it has n: count"),
        ("SELECT COUNT(*) FROM minutes GROUP BY country", "country is not a key of minutes"),
        ("SELECT COUNT(*) FROM minutes WHERE user = 'x'", "no key is called user"),
        ("SELECT COUNT(*) FROM minutes EMIT CHANGES", "leave out EMIT"),
        ("SELECT COUNT(*) FROM minutes WINDOW TUMBLING (SIZE 90 SECONDS)", "fit|into|windows"),
        ("SELECT THETA_UNION(users, people) FROM minutes", "THETA_UNION takes sets, .*; users is a distinct"),
        ("SELECT THETA_UNION(people) FROM minutes", "THETA_UNION takes 2 sets, got 1"),
        ("SELECT COUNT(*) FILTER (WHERE user = 'x') FROM minutes", "no key is called user"),
    ],
)
def test_what_a_table_cannot_answer(declared: str, query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        answers(declared, query)


PARTS = {
    "SELECT COUNT(*) AS n FROM minutes WHERE lang = 'en'": (10, {"n"}),
    "SELECT APPROX_COUNT_DISTINCT(user) AS n FROM minutes WHERE window_start >= '2026-01-01 00:05:00'": (
        5,
        {"users"},
    ),
    "SELECT COUNT(*) FILTER (WHERE lang = 'fi') AS a, users FROM minutes WHERE window_end <="
    " '2026-01-01 00:03:00'": (
        3,
        {"n", "users"},
    ),
    "SELECT lang, window_start FROM minutes WHERE window_start > '2026-01-01 00:08:00'": (2, {"n"}),
    "SELECT * FROM minutes WHERE lang IN ('fi', 'sv') ORDER BY n": (
        10,
        {"n", "users", "people", "price", "often"},
    ),
    "SELECT THETA_UNION(THETA_SKETCH_AGG(user) FILTER (WHERE lang = 'en'), THETA_SKETCH_AGG(user)) AS u FROM"
    " minutes": (10, {"people"}),
    "SELECT lang, MAX(price) AS p FROM minutes GROUP BY lang": (
        10,
        {"n", "users", "people", "price", "often"},
    ),
    "SELECT COUNT(*) AS n FROM minutes WHERE window_start >= '2026-02-01'": (0, {"n"}),
    "SELECT lang, COUNT(*) AS c FROM minutes WHERE lang <> 'en' GROUP BY lang HAVING"
    " APPROX_COUNT_DISTINCT(user) > 1 ORDER BY c": (10, {"n", "users"}),
}


@each("query", PARTS)
def test_only_what_a_query_needs_is_read_of_files(declared: str, query: str) -> None:
    windows, columns = PARTS[query]
    (table,), (statement,) = statements_of(declared), statements_of(query)
    relation, now = relation_of(table.node, table.text), datetime(2026, 1, 2, tzinfo=UTC)
    part = file_view(relation, statement.node.select, now)
    assert len(part.windows) == windows and set(aggregates_of(part.schema)) == columns

    def outcome(view: TableView) -> Any:
        (again,) = statements_of(query)
        try:
            return pull_query(again.node.select, view, now).rows.to_dicts()
        except SqlError as error:
            return error.message

    assert outcome(part) == outcome(file_view(relation))
