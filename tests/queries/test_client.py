"""The Python client: the table's own answers, the server's own words, and live views."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta

import pytest

from streamgauge import Client
from streamgauge.queries.answers.answers import answer
from streamgauge.queries.client import QueryError
from streamgauge.queries.question.question import question
from streamgauge.queries.server.http.server import QueryServer, ServerError, check_token
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.views.merge_cache import MergeCache

from .server.http.served import TOKEN, fed, sent, serving


def test_it_gives_the_answers_of_the_table() -> None:
    table = fed()
    view = table.table.view()

    def own(kind: str, **given: list[object]) -> object:
        return answer(
            view, question(kind, {name.replace("_", "-"): v for name, v in given.items()}), MergeCache()
        )

    with serving(Service({"posts": table.table}), token=TOKEN) as server, Client(server.url, TOKEN) as client:
        assert [result["table"] for result in client.tables()] == ["posts"]
        for result, wanted in (
            (client.ask("rows", "posts", limit=5), own("rows", limit=["5"])),
            (
                client.ask("top-k", "posts", last=timedelta(minutes=2), k=2),
                own("top-k", last=["2m"], k=["2"]),
            ),
            (
                client.ask("distinct", "posts", column="users", by="lang", keys={"lang": ["en", None]}),
                own("distinct", column=["users"], by=["lang"], **{"key.lang": ["en", None]}),
            ),
            (
                client.ask("membership", "posts", item=[5, 6]),
                own("membership", item=[5, 6]),
            ),
            (
                client.ask("rows", "posts", since=datetime(2026, 1, 1, 0, 2, tzinfo=UTC), every="2m", by=[]),
                own("rows", **{"from": ["2026-01-01T00:02"]}, every=["2m"], by=["none"]),
            ),
            (
                client.ask("sets", "posts", keys={"lang": "en"}, other_keys={"lang": "de"}),
                own("sets", **{"key.lang": ["en"], "other-key.lang": ["de"]}),
            ),
            (
                client.get("cdf", "posts", {"column": ["prices"], "x": ["1"]}),
                own("cdf", column=["prices"], x=[1]),
            ),
        ):
            assert result.rows.equals(wanted.rows) and result.about() == wanted.about()


def test_it_says_what_the_server_says() -> None:
    with serving(Service({"posts": fed().table}), token=TOKEN) as server:
        with Client(server.url) as client, pytest.raises(QueryError, match="token is missing") as refused:
            client.tables()
        assert refused.value.status == 401
        with Client(server.url, TOKEN) as client:
            with pytest.raises(QueryError, match="there are posts"):
                client.ask("rows", "nope")
            with pytest.raises(QueryError, match="not a column"):
                client.ask("distinct", "posts", column="nope")
            with pytest.raises(QueryError, match="not a column"):
                next(client.live("distinct", "posts", column="nope"))
            with pytest.raises(ValueError, match="top-k"):
                client.ask("top", "posts")
    with Client(server.url) as client, pytest.raises(QueryError, match=f"no answer from {server.url}"):
        client.tables()
    with pytest.raises(ValueError, match="address of a server"):
        Client("localhost:8055")
    assert TOKEN not in repr(Client(server.url, TOKEN))


def test_live_answers() -> None:
    table = fed(4)
    with serving(Service({"posts": table.table})) as server, Client(server.url) as client:
        live = client.live("rows", "posts", every="span", by=[], columns=["posts"], interval="50ms")
        assert next(live).rows["posts"].to_list() == [200]
        table.feed(sent()[4:5])
        assert next(live).rows["posts"].to_list() == [250]


def test_two_servers_of_the_same_log_say_the_same() -> None:
    with (
        serving(Service({"posts": fed().table})) as one,
        serving(Service({"posts": fed().table})) as other,
        Client(one.url) as first,
        Client(other.url) as second,
    ):
        for kind, column in (("quantiles", "ranks"), ("top-k", None), ("sample", None)):
            result = [client.ask(kind, "posts", column=column) for client in (first, second)]
            assert result[0].rows.equals(result[1].rows)


def test_a_server_says_why_it_can_not_start() -> None:
    with socket.socket() as accepted:
        accepted.bind(("127.0.0.1", 0))
        accepted.listen()
        with pytest.raises(ServerError, match="choose another with --port"):
            QueryServer(Service({}), port=accepted.getsockname()[1])
    for host, token in (("0.0.0.0", None), ("::", None), ("box.example", None), ("127.0.0.1", "short")):
        with pytest.raises(ServerError, match="token") as refused:
            check_token(host, token)
        assert "short" not in str(refused.value).replace("shortest", "")
    with pytest.raises(ServerError, match="not an address of this machine"):
        QueryServer(Service({}), host="nowhere.invalid", token=TOKEN)
