"""The console: what Tab proposes, and when Enter sends."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from streamgauge.apps.sql.completion import candidates
from streamgauge.apps.sql.console import run_until_interrupted
from streamgauge.queries.sql.run.memory import Memory
from streamgauge.queries.sql.run.session import SqlSession

from ...queries.sql.scripts import DECLARED


@pytest.fixture(scope="module")
def session() -> SqlSession:
    made = SqlSession(Memory())
    assert all(one.kind == "done" for one in made.run(DECLARED))
    return made


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ("SELECT", 0, "statement")),
        ("crea", ("CREATE ALERT", 4, "statement")),
        ("SHOW TOPICS; sel", ("SELECT", 3, "statement")),
        ("PRINT 'po", ("posts-eu", 2, "topic")),
        ("CREATE STREAM x (a INT) WITH (KAFKA_TOPIC = '", ("other", 0, "topic")),
        ("SELECT usr FROM po", ("posts", 2, "stream")),
        ("SELECT * FROM posts p JOIN u", ("users", 1, "table")),
        ("DESCRIBE ", ("clicks", 0, "stream")),
        ("SELECT pri", ("price", 3, "column")),
        ("SELECT posts.pr", ("price", 2, "column")),
        ("SELECT APPROX_CO", ("APPROX_COUNT_DISTINCT(", 9, "function")),
        ("SELECT COUNT(*) FROM posts WIN", ("WINDOW TUMBLING (SIZE", 3, "word")),
    ],
)
def test_what_is_proposed(session: SqlSession, text: str, wanted: tuple[str, int, str]) -> None:
    assert wanted in candidates(text, session.catalog, lambda: ["posts-eu", "other"])


def test_columns_are_those_of_the_streams_that_are_named(session: SqlSession) -> None:
    whole = "SELECT  FROM clicks"
    names = {
        name for name, _, kind in candidates("SELECT ", session.catalog, list, whole) if kind == "column"
    }
    assert names == {"ts", "usr", "page"}
    assert candidates("SELECT usr FROM posts WHERE lang = 'e", session.catalog, list) == []


def test_ctrl_c_ends_the_query_and_not_the_console(session: SqlSession) -> None:
    shown, ended = [], []

    class Endless:
        def run(self, text: str) -> Iterator[str]:
            try:
                yield text
                signal.raise_signal(signal.SIGINT)
                yield "more"
            finally:
                ended.append(text)

    before = signal.getsignal(signal.SIGINT)
    for text in ("one", "two"):
        run_until_interrupted(Endless(), text, shown.append)
    assert shown == ended == ["one", "two"]
    assert signal.getsignal(signal.SIGINT) is before
