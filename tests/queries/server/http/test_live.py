"""Live answers: at once, again after changes that matter, from where a client left off, to many at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from streamgauge.operators.watermarks.position import inputs_of
from streamgauge.queries.server.http.service import Service

from .served import fed, sent, serving


def events(response: httpx.Response) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each event's name, id and data."""
    by_key: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line:
            by_key[name] = value
        elif "data" in by_key:
            yield by_key["event"], by_key["id"], json.loads(by_key["data"])
            by_key = {}


@contextmanager
def watching(url: str, path: str, **headers: str) -> Iterator[Iterator[Any]]:
    with httpx.stream("GET", f"{url}{path}", headers=headers, timeout=120) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield events(response)


PATH = "/tables/posts/live?question=rows&every=span&by=none&columns=posts&interval=50ms"


def posts(event: Any) -> int:
    return event[2]["rows"][0]["posts"]


def test_the_present_answer_and_a_new_one_after_each_change() -> None:
    table = fed(4)
    with serving(Service({"posts": table.table})) as server, watching(server.url, PATH) as one:
        name, first, _ = event = next(one)
        assert name == "answer" and posts(event) == 200
        table.feed(sent()[4:6])
        # Two messages are two changes; the second event may cover both.
        seen = [posts(event := next(one))]
        while seen[-1] < 300:
            seen.append(posts(event := next(one)))
        assert seen[-1] == 300 and event[1] != first
        # A client that comes back with the last id gets nothing before the next change.
        with watching(server.url, PATH, **{"Last-Event-ID": event[1]}) as again:
            table.table.update_lag(5)  # which changes no answer
            table.feed(sent()[6:7])
            assert posts(next(again)) == posts(next(one)) == 330
        with watching(server.url, PATH, **{"Last-Event-ID": first}) as again:
            assert posts(next(again)) == 330


def test_it_ends_with_the_server_and_there_is_a_limit() -> None:
    service = Service({"posts": fed(4).table}, live=1)
    ended = threading.Event()
    with serving(service) as server, watching(server.url, PATH) as one:
        next(one)
        second = httpx.get(f"{server.url}{PATH}", timeout=120)
        assert second.status_code == 503 and second.json()["title"] == "Too many live views"

        def wait() -> None:
            assert list(one) == []
            ended.set()

        thread = threading.Thread(target=wait)
        thread.start()
        server.stop()
        thread.join(120)
    assert ended.is_set() and service.views == 0


def test_a_table_that_is_not_known_yet_is_a_problem_and_then_answered() -> None:
    table = fed(4)
    waiting = fed(0)
    waiting.table.forget()
    with serving(Service({"posts": waiting.table})) as server, watching(server.url, PATH) as one:
        name, _, data = next(one)
        assert name == "problem" and data["status"] == 503
        waiting.table.begin(table.table.stream, {0: None}, inputs_of({"posts": 2}), {})
        waiting.feed(sent()[:4])
        name, *_ = event = next(one)
        while name == "problem" or not event[2]["rows"] or posts(event) < 200:
            name, *_ = event = next(one)
