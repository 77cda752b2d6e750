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


def asked(query: str, until: str | None = "latest") -> list[StatementResult]:
    return list(SqlSession(Brokers({"bootstrap.servers": "nowhere:1"}, until)).run(DECLARED + query))[1:]


def printed(*arguments: str) -> Any:
    query = f"{DECLARED} SELECT shop, n FROM orders WHERE shop = 'b'"
    done = CliRunner().invoke(app, ["sql", "-e", query, "--until", "latest", *arguments])
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("emit", ["", "EMIT CHANGES"])
def test_rows_of_a_query_that_ends_come_in_parts_of_one_answer(emit: str) -> None:
    parts = asked(f"SELECT n FROM orders {emit}")
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
