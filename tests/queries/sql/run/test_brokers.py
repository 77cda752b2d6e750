"""Queries of a topic's rows, from messages that no broker holds: their parts, and what is said at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from streamgauge.apps.cli.commands import app
from streamgauge.queries.sql.run import brokers
from streamgauge.queries.sql.run.brokers import Brokers
from streamgauge.queries.sql.run.row_reader import ReceivedMessage
from streamgauge.queries.sql.run.session import SqlSession
from streamgauge.queries.sql.run.statement_result import StatementResult

DECLARED = "CREATE STREAM orders (shop VARCHAR, n INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');"
MESSAGES = 45


@pytest.fixture(autouse=True)
def topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic of 45 messages, of which every ninth can't be read, taken ten at a time."""

    def read(self: Brokers, topics: Sequence[str]) -> Iterator[tuple[int, ReceivedMessage]]:
        for number in range(MESSAGES):
            value = {"shop": "ab"[number % 2], "n": "many" if number % 9 == 8 else number}
            yield number, ReceivedMessage("orders", 0, None, json.dumps(value).encode(), number)

    monkeypatch.setattr(brokers, "_MOST", 10)
    monkeypatch.setattr(Brokers, "_read", read)
    monkeypatch.setattr(Brokers, "_known", lambda self: {"orders": [0]})


def results_of(query: str, until: str | None = "latest") -> list[StatementResult]:
    return list(SqlSession(Brokers({"bootstrap.servers": "nowhere:1"}, until)).run(DECLARED + query))[1:]


def printed(*arguments: str) -> Any:
    query = f"{DECLARED} SELECT shop, n FROM orders WHERE shop = 'b'"
    done = CliRunner().invoke(app, ["sql", "-e", query, "--once", *arguments])
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("emit", ["", "EMIT CHANGES"])
def test_rows_of_a_query_that_ends_come_in_parts_of_one_answer(emit: str) -> None:
    parts = results_of(f"SELECT n FROM orders {emit}")
    assert [(one.begun, one.more) for one in parts] == [(False, True), *[(True, True)] * 3, (True, False)]
    assert [row for one in parts for row in one.rows] == [(n,) for n in range(MESSAGES) if n % 9 != 8]


def test_csv_has_one_header_and_json_one_object() -> None:
    lines = printed("--csv").stdout.splitlines()
    assert lines[:2] == ["shop,n", "b,1"] and lines.count("shop,n") == 1
    created, rows = map(json.loads, printed("--json").stdout.splitlines())
    assert created["kind"] == "done" and [f"{shop},{n}" for shop, n in rows["rows"]] == lines[1:]
    assert printed().stdout.count(" shop   n") == 1


def test_a_file_has_the_rows_of_all_parts(tmp_path: Any) -> None:
    lines = printed("--csv", "--output", str(tmp_path / "rows.csv")).stdout
    assert (tmp_path / "rows.csv").read_text() == lines


REASON = 'such as: "n" is a string, not INT'


@pytest.mark.parametrize("emit", ["", "EMIT CHANGES"])
def test_messages_that_could_not_be_read_are_counted_once(emit: str) -> None:
    assert results_of(f"SELECT n FROM orders {emit}")[-1].warnings == (
        f"5 of 45 messages could not be read, {REASON}",
    )
    (few,) = results_of(f"SELECT n FROM orders WHERE n > 10 {emit} LIMIT 2")
    assert few.rows == [(11,), (12,)]
    assert few.warnings == (f"1 of 14 messages could not be read, {REASON}",)
    done = printed("--csv")
    assert done.stderr == f"warning: 5 of 45 messages could not be read, {REASON}\n"
    (both,) = results_of("SELECT n FROM orders UNION ALL SELECT n FROM orders")
    assert [one.split(",")[0] for one in both.warnings] == ["5 of 45 messages could not be read"] * 2


def test_a_query_that_continues_repeats_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def following(self: Brokers, topics: Sequence[str]) -> Iterator[list[ReceivedMessage]]:
        for value in (b'{"n": 1}', b'{"n": "many"}'):
            yield [ReceivedMessage("orders", 0, None, value, MESSAGES)]

    monkeypatch.setattr(Brokers, "_following", following)
    results = results_of("SELECT n FROM orders EMIT CHANGES", until=None)
    said = [[one.split(",")[0].split(" messages")[0] for one in result.warnings] for result in results]
    assert said == [["1 of 10"], ["2 of 20"], ["3 of 30"], ["4 of 40"], ["5 of 45"], [], ["6 of 47"]]
    assert [result.begun for result in results] == [False] + [True] * 6
