"""Answers over HTTP are those of the table itself, in JSON and in Arrow; what can't be had is said."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from streamgauge.queries.answers.answers import Limits, answer
from streamgauge.queries.question.question import KINDS, question
from streamgauge.queries.response_format import ARROW, from_arrow, to_dict
from streamgauge.queries.server.http.request_params import LARGEST_BODY
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.views.live import LiveTable
from streamgauge.queries.views.merge_cache import MergeCache
from streamgauge.queries.views.view import Stale

from .served import TOKEN, fed, responses

QUESTIONS = {
    "rows": "",
    "distinct": "column=people&by=lang",
    "top-k": "last=3m&k=4",
    "quantiles": "column=prices&q=0.5&q=0.99",
    "cdf": "column=prices&x=1",
    "frequency": "column=often&item=t1",
    "membership": "item=5&as=whole",
    "sample": "null=lang",
    "sets": "key.lang=en&other-key.lang=de",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_question_in_json_and_in_arrow(kind: str) -> None:
    service = Service({"posts": fed().table})
    url = f"/tables/posts/{kind}?{QUESTIONS[kind]}"
    given: dict[str, list[str]] = {}
    for pair in filter(None, QUESTIONS[kind].split("&")):
        name, _, value = pair.partition("=")
        given.setdefault(name, []).append(value)
    wanted = answer(service.tables["posts"].view(), question(kind, given), MergeCache())
    assert wanted.rows.height
    result = responses(url, service=service)
    assert result.status_code == 200 and result.json() == json.loads(json.dumps(to_dict(wanted)))
    result = responses(url, service=service, headers={"Accept": ARROW})
    assert result.headers["content-type"] == ARROW
    whole = from_arrow(result.content)
    assert whole.rows.equals(wanted.rows) and whole.about() == wanted.about()
    flat = {name: value for name, value in given.items() if not name.startswith(("key.", "other-key."))}
    keys = {name: {"lang": given[f"{name}.lang"]} for name in ("key", "other-key") if f"{name}.lang" in given}
    posted = responses(f"/tables/posts/{kind}", service=service, method="POST", json={**flat, **keys})
    assert posted.json() == json.loads(json.dumps(to_dict(wanted)))


def test_an_item_is_what_the_column_holds() -> None:
    service = Service({"posts": fed().table})
    result = responses("/tables/posts/membership?item=5", service=service).json()
    assert result["rows"] == responses(f"/tables/posts/membership?{QUESTIONS['membership']}").json()["rows"]
    body = {"column": "seen", "item": [5.0]}
    posted = responses("/tables/posts/membership", service=service, method="POST", json=body).json()
    assert [row["found"] for row in posted["rows"]] == [row["found"] for row in result["rows"]] == [True]
    for path in (
        "membership?item=cats",
        "membership?item=5&as=text",
        "frequency?column=often&item=5&as=whole",
    ):
        refused = responses(f"/tables/posts/{path}", service=service)
        assert refused.status_code == 400 and ": holds " in refused.text, path


def test_tables_say_what_they_are_of() -> None:
    (table,) = responses("/tables").json()["tables"]
    assert table == responses("/tables/posts").json()
    assert (table["table"], table["windows"], table["open"], table["ready"]) == ("posts", 6, True, True)
    assert table["keys"] == [{"name": "lang", "type": "string"}]
    assert table["window"]["size"] == "1m" and table["definition"]["window"]["size"] == "1m"
    questions = {column["name"]: column["questions"] for column in table["columns"]}
    assert questions["tags"] == ["rows", "top-k", "frequency"] and questions["posts"] == ["rows"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/tables/nope/rows", 404, "there are posts"),
        ("/nope", 404, "/docs"),
        ("/tables/posts/top-k?lst=1h", 400, 'did you mean "last"'),
        ("/tables/posts/distinct", 400, "set column= to one of"),
        (f"/tables/posts/rows?key.lang={'x' * 17_000}", 414, "by POST"),
        ("/tables/posts/live?interval=1us", 400, "50ms"),
        ("/tables/posts/live?question=distinct", 400, "set column= to one of"),
    ],
)
def test_what_can_not_be_had_is_said_as_a_problem(path: str, status: int, said: str) -> None:
    result = responses(path)
    assert result.status_code == status and result.headers["content-type"] == "application/problem+json"
    assert result.json()["status"] == status and said in result.json()["detail"]


def test_other_methods_forms_and_sizes_are_refused() -> None:
    assert responses("/tables", method="DELETE").status_code == 405
    assert responses("/tables/posts/rows", headers={"Accept": "text/csv"}).status_code == 406
    big = b"[" + b" " * LARGEST_BODY + b"]"
    result = responses("/tables/posts/rows", method="POST", content=big)
    assert result.status_code == 413 and "1,048,576" in result.json()["detail"]
    assert responses("/tables/posts/rows", method="POST", content=b"{").status_code == 400
    few = Service({"posts": fed().table}, limits=Limits(windows=2))
    assert responses("/tables/posts/rows", service=few).status_code == 422
    slow = Service({"posts": fed().table}, seconds=-1.0)
    result = responses("/tables/posts/rows", service=slow)
    assert result.status_code == 503 and result.headers["retry-after"] == "1"


def test_more_questions_than_may_wait_are_refused_and_the_others_answered() -> None:
    table = fed().table
    inside, go = threading.Semaphore(0), threading.Event()

    class Slow:
        name = "posts"

        def view(self):
            inside.release()
            go.wait(120)
            return table.view()

    import httpx

    from streamgauge.queries.server.http.app import application

    async def ask() -> list[int]:
        service = Service({"posts": Slow()}, threads=2, waiting=1)
        transport = httpx.ASGITransport(application(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            first = [asyncio.create_task(client.get("/tables/posts/rows?limit=1")) for _ in range(3)]
            for _ in range(2):
                await asyncio.to_thread(inside.acquire)
            refused = await client.get("/tables/posts/rows?limit=1")
            health = await client.get("/health")  # goes on meanwhile
            go.set()
            done = [response.status_code for response in await asyncio.gather(*first)]
            return [refused.status_code, health.status_code, *done]

    assert asyncio.run(ask()) == [429, 200, 200, 200, 200]


@pytest.mark.slow
def test_a_token_is_asked_for_and_never_shown() -> None:
    right = {"Authorization": f"Bearer {TOKEN}"}
    for headers in (
        {},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Basic x"},
    ):
        for path in ("/tables", "/tables/posts", "/tables/posts/rows", "/tables/posts/live", "/nope"):
            result = responses(path, token=TOKEN, headers=headers)
            assert result.status_code == 401 and TOKEN not in result.text
            assert result.headers["www-authenticate"] == "Bearer"
    assert responses("/tables", token=TOKEN, headers=right).status_code == 200
    assert responses("/tables", token=TOKEN, headers={**right, "Host": "box.example"}).status_code == 200
    for path in ("/health", "/ready", "/docs", "/openapi.json"):
        assert responses(path, token=TOKEN).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8055", "", "10.0.0.1"])
def test_without_a_token_only_this_machine_s_names_are_answered(host: str) -> None:
    result = responses("/tables", headers={"Host": host})
    assert result.status_code == 421 and "--token-file" in result.json()["detail"]
    for own in ("localhost", "LOCALHOST:1", "127.0.0.1:8055", "[::1]:8055", "[::1]"):
        assert responses("/tables", headers={"Host": own}).status_code == 200


def test_the_documentation_names_every_question_and_fetches_nothing_from_elsewhere() -> None:
    page, document = responses("/docs", "/openapi.json")
    assert (
        "http" not in page.text.replace("<!doctype html>", "")
        and "'self'" in page.headers["content-security-policy"]
    )
    for path in ("/docs/assets/swagger-ui-bundle.js", "/docs/assets/swagger-ui.css", "/docs/start.js"):
        assert path in page.text and responses(path).status_code == 200
    paths = document.json()["paths"]
    assert {f"/tables/{{table}}/{kind}" for kind in KINDS} < set(paths)
    names = {one["name"] for one in paths["/tables/{table}/top-k"]["get"]["parameters"]}
    assert {"table", "column", "last", "by", "k", "key"} <= names and "q" not in names


def test_readiness_and_staleness() -> None:
    table = LiveTable("posts")
    service = Service({"posts": table})
    assert responses("/ready", service=service).status_code == 503
    result = responses("/tables/posts/rows", service=service)
    assert result.status_code == 503 and result.json()["title"] == "The table can't answer yet"
    assert result.json()["detail"] == "its table topic is being looked for"
    assert responses("/tables", service=service).json()["tables"][0]["ready"] is False
    live = fed().table
    service = Service({"posts": live})
    assert responses("/ready", service=service).json() == {"ready": True, "waiting": {}}
    live.update_lag(None, Stale(1_767_225_600.0, "no broker answers"))
    assert responses("/ready", service=service).json()["waiting"] == {"posts": "it is stale"}
    result = responses("/tables/posts/rows?limit=1", service=service).json()
    assert (
        result["stale"] == {"since": "2026-01-01T00:00:00+00:00", "why": "no broker answers"}
        and result["rows"]
    )
    live.update_lag(3)
    assert responses("/tables/posts/rows?limit=1", service=service).json()["lag"] == 3
