"""Queries in SQL to a server: its questions' answers, its token, its limits, and where a text is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge import Client
from streamgauge.queries.answers.answers import Limits, answer
from streamgauge.queries.client import QueryError
from streamgauge.queries.question.question import question
from streamgauge.queries.response_format import ARROW, from_arrow
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.views.live import LiveTable
from streamgauge.queries.views.merge_cache import MergeCache

from .served import TOKEN, fed, responses, serving

QUERY = """SELECT lang, COUNT(*) AS n, APPROX_COUNT_DISTINCT(user) AS users FROM posts
  GROUP BY lang ORDER BY n DESC"""


def posted(text: Any, service: Service | None = None, **more: Any) -> Any:
    return responses("/sql", service=service, method="POST", json={"sql": text}, **more)


def test_a_query_is_answered_in_json_and_in_arrow() -> None:
    service = Service({"posts": fed().table})
    own = answer(
        service.tables["posts"].view(),
        question("rows", {"every": ["span"], "by": ["lang"], "columns": ["posts", "users"]}),
        MergeCache(),
    )
    wanted = own.rows.sort("posts", descending=True)
    response = posted(QUERY, service).json()
    assert response["columns"] == ["lang", "n", "users"]
    assert response["rows"] == [
        [row["lang"], row["posts"], round(row["users"]["estimate"])] for row in wanted.to_dicts()
    ]
    assert [low <= row[2] <= high for row, (low, high) in zip(response["rows"], response["bounds"]["users"])]
    assert {**own.about(), "question": "sql"} == {name: response[name] for name in own.about()}
    arrow = posted(QUERY, service, headers={"Accept": ARROW})
    assert arrow.headers["content-type"] == ARROW
    whole = from_arrow(arrow.content)
    assert [list(row) for row in whole.rows.rows()] == response["rows"]
    assert whole.bounds == response["bounds"]


def test_the_first_of_an_order_are_those_of_all() -> None:
    service = Service({"posts": fed().table})
    for column in ("COUNT(*)", "APPROX_COUNT_DISTINCT(user)", "SUM(user)"):
        text = f"SELECT lang, {column} AS n FROM posts GROUP BY lang ORDER BY n DESC"
        everything = posted(text, service).json()["rows"]
        assert posted(f"{text} LIMIT 2", service).json()["rows"] == everything[:2]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("SELECT lang FROM post", 18, "there is no table post; did you mean posts?"),
        ("SELECT COUNT(*) FROM posts GROUP BY langs", 37, "langs is not a key of posts; did you mean lang?"),
        ("SHOW TOPICS", 1, "a server answers one SELECT"),
        ("SELECT 1; SELECT 2", 11, "a server answers one SELECT"),
        ("SELECT COUNT(*) FROM posts EMIT CHANGES", 28, "leave out EMIT"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, column: int, message: str) -> None:
    refused = posted(text)
    problem = refused.json()
    assert (refused.status_code, problem["line"], problem["column"]) == (400, 1, column)
    assert message in problem["detail"]


def test_limits_and_the_token_are_those_of_every_question() -> None:
    assert posted(QUERY, token=TOKEN).status_code == 401
    assert posted(5).status_code == 400
    few = Service({"posts": fed().table}, limits=Limits(windows=2))
    assert posted(QUERY, few).status_code == 422
    assert (
        posted("SELECT * FROM posts", Service({"posts": fed().table}, limits=Limits(answers=3))).status_code
        == 422
    )
    assert (
        posted(QUERY, Service({"posts": fed().table}, seconds=0)).json()["title"]
        == "The question took too long"
    )
    assert posted(QUERY, Service({"posts": LiveTable("posts")})).status_code == 503
    large = responses("/sql", method="POST", content=b'{"sql": "' + b" " * 2**20 + b'"}')
    assert large.status_code == 413


def test_a_client_asks_in_sql() -> None:
    with (
        serving(Service({"posts.all": fed().table}), token=TOKEN) as server,
        Client(server.url, TOKEN) as client,
    ):
        result = client.sql(QUERY.replace("posts", "posts.all"))
        assert (
            result.rows.columns == ["lang", "n", "users"]
            and len(result.bounds["users"]) == result.rows.height
        )
        assert client.sql(QUERY.replace("posts", '"posts.all"')).rows.equals(result.rows)
        with pytest.raises(QueryError, match="line 1, column 15: there is no table x"):
            client.sql("SELECT 1 FROM x")
