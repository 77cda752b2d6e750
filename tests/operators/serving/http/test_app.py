"""Answers over HTTP are those of the table itself, in JSON and in Arrow; what can't be had is said."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from streamgauge.operators.serving.answers import Limits, answer
from streamgauge.operators.serving.http.asking import LARGEST_BODY
from streamgauge.operators.serving.http.service import Service
from streamgauge.operators.serving.http.writing import ARROW, from_arrow, told
from streamgauge.operators.serving.live import LiveTable
from streamgauge.operators.serving.question import KINDS, question
from streamgauge.operators.serving.rollups import Rollups
from streamgauge.operators.serving.view import Stale

from .served import TOKEN, asked, fed

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


@pytest.mark.parametrize("kind", KINDS)
def test_every_question_in_json_and_in_arrow(kind: str) -> None:
    service = Service({"posts": fed().table})
    url = f"/tables/posts/{kind}?{QUESTIONS[kind]}"
    given: dict[str, list[str]] = {}
    for pair in filter(None, QUESTIONS[kind].split("&")):
        name, _, value = pair.partition("=")
        given.setdefault(name, []).append(value)
    wanted = answer(service.tables["posts"].view(), question(kind, given), Rollups())
    assert wanted.rows.height
    found = asked(url, service=service)
    assert found.status_code == 200 and found.json() == json.loads(json.dumps(told(wanted)))
    found = asked(url, service=service, headers={"Accept": ARROW})
    assert found.headers["content-type"] == ARROW
    whole = from_arrow(found.content)
    assert whole.rows.equals(wanted.rows) and whole.about() == wanted.about()
    flat = {name: value for name, value in given.items() if not name.startswith(("key.", "other-key."))}
    keys = {name: {"lang": given[f"{name}.lang"]} for name in ("key", "other-key") if f"{name}.lang" in given}
    posted = asked(f"/tables/posts/{kind}", service=service, method="POST", json={**flat, **keys})
    assert posted.json() == json.loads(json.dumps(told(wanted)))


def test_tables_say_what_they_are_of() -> None:
    (table,) = asked("/tables").json()["tables"]
    assert table == asked("/tables/posts").json()
    assert (table["table"], table["windows"], table["open"], table["ready"]) == ("posts", 6, True, True)
    assert table["keys"] == [{"name": "lang", "type": "string"}]
    assert table["lasting"]["length"] == "1m" and table["definition"]["window"]["size"] == "1m"
    questions = {column["name"]: column["questions"] for column in table["columns"]}
    assert questions["tags"] == ["rows", "top-k", "frequency"] and questions["posts"] == ["rows"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/tables/nope/rows", 404, "there are posts"),
        ("/nope", 404, "/docs"),
        ("/tables/posts/top-k?lst=1h", 400, 'did you mean "last"'),
        ("/tables/posts/distinct", 400, "column= names one of"),
        (f"/tables/posts/rows?key.lang={'x' * 17_000}", 414, "by POST"),
        ("/tables/posts/live?interval=1us", 400, "50ms"),
        ("/tables/posts/live?question=distinct", 400, "column= names one of"),
    ],
)
def test_what_can_not_be_had_is_said_as_a_problem(path: str, status: int, said: str) -> None:
    found = asked(path)
    assert found.status_code == status and found.headers["content-type"] == "application/problem+json"
    assert found.json()["status"] == status and said in found.json()["detail"]


def test_other_methods_forms_and_sizes_are_refused() -> None:
    assert asked("/tables", method="DELETE").status_code == 405
    assert asked("/tables/posts/rows", headers={"Accept": "text/csv"}).status_code == 406
    big = b"[" + b" " * LARGEST_BODY + b"]"
    found = asked("/tables/posts/rows", method="POST", content=big)
    assert found.status_code == 413 and "1,048,576" in found.json()["detail"]
    assert asked("/tables/posts/rows", method="POST", content=b"{").status_code == 400
    few = Service({"posts": fed().table}, limits=Limits(windows=2))
    assert asked("/tables/posts/rows", service=few).status_code == 422
    slow = Service({"posts": fed().table}, seconds=-1.0)
    found = asked("/tables/posts/rows", service=slow)
    assert found.status_code == 503 and found.headers["retry-after"] == "1"


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

    from streamgauge.operators.serving.http.app import application

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


def test_a_token_is_asked_for_and_never_told() -> None:
    right = {"Authorization": f"Bearer {TOKEN}"}
    for headers in (
        {},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Basic x"},
    ):
        for path in ("/tables", "/tables/posts", "/tables/posts/rows", "/tables/posts/live", "/nope"):
            found = asked(path, token=TOKEN, headers=headers)
            assert found.status_code == 401 and TOKEN not in found.text
            assert found.headers["www-authenticate"] == "Bearer"
    assert asked("/tables", token=TOKEN, headers=right).status_code == 200
    assert asked("/tables", token=TOKEN, headers={**right, "Host": "box.example"}).status_code == 200
    for path in ("/health", "/ready", "/docs", "/openapi.json"):
        assert asked(path, token=TOKEN).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8055", "", "10.0.0.1"])
def test_without_a_token_only_this_machine_s_names_are_answered(host: str) -> None:
    found = asked("/tables", headers={"Host": host})
    assert found.status_code == 421 and "--token-file" in found.json()["detail"]
    for own in ("localhost", "LOCALHOST:1", "127.0.0.1:8055", "[::1]:8055", "[::1]"):
        assert asked("/tables", headers={"Host": own}).status_code == 200


def test_the_documentation_names_every_question_and_fetches_nothing_from_elsewhere() -> None:
    page, document = asked("/docs", "/openapi.json")
    assert (
        "http" not in page.text.replace("<!doctype html>", "")
        and "'self'" in page.headers["content-security-policy"]
    )
    for path in ("/docs/assets/swagger-ui-bundle.js", "/docs/assets/swagger-ui.css", "/docs/start.js"):
        assert path in page.text and asked(path).status_code == 200
    paths = document.json()["paths"]
    assert {f"/tables/{{table}}/{kind}" for kind in KINDS} < set(paths)
    names = {one["name"] for one in paths["/tables/{table}/top-k"]["get"]["parameters"]}
    assert {"table", "column", "last", "by", "k", "key"} <= names and "q" not in names


def test_readiness_and_staleness() -> None:
    table = LiveTable("posts")
    service = Service({"posts": table})
    assert asked("/ready", service=service).status_code == 503
    found = asked("/tables/posts/rows", service=service)
    assert found.status_code == 503 and "can't be asked yet" in found.json()["detail"]
    assert asked("/tables", service=service).json()["tables"][0]["ready"] is False
    live = fed().table
    service = Service({"posts": live})
    assert asked("/ready", service=service).json() == {"ready": True, "waiting": {}}
    live.is_at(None, Stale(1_767_225_600.0, "no broker answers"))
    assert asked("/ready", service=service).json()["waiting"] == {"posts": "it is stale"}
    found = asked("/tables/posts/rows?limit=1", service=service).json()
    assert (
        found["stale"] == {"since": "2026-01-01T00:00:00+00:00", "why": "no broker answers"} and found["rows"]
    )
    live.is_at(3)
    assert asked("/tables/posts/rows?limit=1", service=service).json()["lag"] == 3
