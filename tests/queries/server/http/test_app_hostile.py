"""Every route with hostile values of every parameter: what is wrong is said, and never with a 5xx."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from streamgauge.queries.answers.answers import Limits
from streamgauge.queries.question.question import LONGEST_US, MOST_KEYS, MOST_VALUES, PARAMETERS
from streamgauge.queries.server.http.app import application
from streamgauge.queries.server.http.openapi import document
from streamgauge.queries.server.http.service import Service

from .served import fed, responses
from .test_app import QUESTIONS

TEXTS = (
    "",
    " ",
    "\0",
    "\ud800",
    "\u202e",
    "-1",
    "0",
    "1e400",
    "nan",
    "NaN",
    "99999999d",
    "2562047788h",
    "9" * 30 + "us",
    str(2**63),
    str(2**70),
    "9" * 5000,
    "0001-01-01T00:00+14:00",
    "9999-12-31T23:59:59.999999-14:00",
    "1677-01-01",
    "window_start",
    "posts",
    "lang",
    "%s%n",
)
PLAIN: tuple[Any, ...] = (
    "\ud800",
    -1,
    0,
    2**63,
    2**70,
    10**400,
    1.5,
    1e308,
    True,
    None,
    {},
    {"a": {"b": []}},
    [[0.5]],
    [{}],
    [None],
    ["a", "a"],
    ["lang", "lang"],
    [0.5] * (MOST_VALUES + 1),
    ["x"] * (MOST_VALUES + 1),
)


def questions() -> list[str]:
    paths = document()["paths"]
    return [path.rpartition("/")[2] for path in paths if {"get", "post"} <= paths[path].keys()]


async def _each(service: Service, requests: list[dict[str, Any]]) -> list[httpx.Response]:
    transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
    service.stopping.set()  # live views end after their first event
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8055") as client:
        return [await client.request(**request) for request in requests]


def answers(requests: list[dict[str, Any]]) -> list[httpx.Response]:
    return asyncio.run(_each(Service({"posts": fed(30).table}), requests))


def in_url(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("kind", questions())
def test_no_value_of_any_parameter_breaks_the_server(kind: str) -> None:
    path = f"/tables/posts/{kind}"
    named = document()["paths"][f"/tables/{{table}}/{kind}"]["get"]["parameters"]
    names = [one["name"] for one in named if one["in"] == "query" and one["name"] != "key"]
    assert set(names) <= set(PARAMETERS) and len(names) > 5
    names += ["key.lang", "key.\0", "other-key.lang", "\ud800"]
    base = dict(pair.split("=") for pair in QUESTIONS[kind].split("&") if "=" in pair and "." not in pair)
    requests: list[dict[str, Any]] = []
    for name in names:
        more = "&".join(f"{key}={value}" for key, value in base.items() if key != name)
        requests += [
            {"method": "GET", "url": f"{path}?{more}&{in_url(name)}={in_url(text)}"} for text in TEXTS
        ]
        for value in PLAIN:
            if name.partition(".")[0] in ("key", "other-key"):
                body = {**base, name.partition(".")[0]: {name.partition(".")[2]: value}}
            else:
                body = {**base, name: value}
            requests.append({"method": "POST", "url": path, "content": json.dumps(body).encode()})
    bodies = (
        b"[" * 100_000,
        b'{"q":' + b"[" * 100_000,
        b'{"q":' * 5_000,
        b"\xff",
        b"1",
        b"[]",
        b'{"k":' + b"9" * 5000 + b"}",
    )
    requests += [{"method": "POST", "url": path, "content": body} for body in bodies]
    result = answers(requests)
    broken = [str(request)[:200] for request, one in zip(requests, result) if one.status_code >= 500]
    assert broken == []
    assert all(one.json()["detail"] for one in result if one.status_code == 400)
    assert {200, 400} <= {one.status_code for one in result}


def test_neither_do_the_other_routes() -> None:
    routes = [path for path in document()["paths"] if "post" not in document()["paths"][path]]
    requests = []
    for text in TEXTS[:-1]:
        requests += [
            {"method": method, "url": path.replace("{table}", in_url(text) or "x")}
            for path in routes
            for method in ("GET", "POST", "HEAD")
            if path != "/tables/{table}/live" and len(text) < 1000
        ]
        requests += [
            {"method": "GET", "url": f"/tables/posts/live?{name}={in_url(text)}"}
            for name in ("interval", "question", "last", "limit", "x", "q")
        ]
        requests.append({"method": "GET", "url": f"/docs/assets/{in_url(text)}"})
    for request, response in zip(requests, answers(requests), strict=True):
        assert response.status_code < 500, (str(request)[:300], response.text[:300])


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("top-k", {"column": "tags", "k": 2**63}, "k must be a whole number from 1 to 100,000"),
        ("rows", {"limit": 2**63}, "limit must be a whole number from 1 to 2,147,483,647"),
        ("rows", {"every": "99999999d"}, "every must be at most 365000d"),
        ("rows", {"every": "2562047788h"}, "every must be at most 365000d"),
        ("rows", {"last": "99999999d"}, "last must be at most 365000d"),
        ("quantiles", {"q": [0.5] * 100_000}, f"q must be given at most {MOST_VALUES:,} times, got 100,000"),
        ("frequency", {"column": "often", "item": ["a"] * 1_001}, "item must be given at most 1,000 times"),
        ("rows", {"key": {"lang": ["a"] * 10_001}}, f"key.lang must be given at most {MOST_KEYS:,} times"),
        ("cdf", {"column": "prices", "x": 10**400}, "x must be a number"),
    ],
)
def test_what_asks_for_too_much_is_refused_with_the_parameter_and_the_limit(
    kind: str, given: dict[str, Any], said: str
) -> None:
    result = responses(f"/tables/posts/{kind}", method="POST", json=given)
    assert result.status_code == 400 and said in result.json()["detail"] and len(result.text) < 400


def test_the_longest_windows_are_answered() -> None:
    result = responses(f"/tables/posts/rows?every={LONGEST_US // 86_400_000_000}d&by=none")
    assert result.status_code == 200 and len(result.json()["rows"]) == 1


def test_groups_times_ranks_are_bounded_before_they_are_answered() -> None:
    few = Service({"posts": fed().table}, limits=Limits(answers=40))
    result = responses("/tables/posts/quantiles?column=prices&by=lang&every=1m&q=0.5&q=0.6", service=few)
    assert result.status_code == 422 and "48 rows, and one has at most 40" in result.json()["detail"]
