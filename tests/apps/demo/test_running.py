"""The apps' demo on a real broker: what is put in is told, and estimates hold."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from rich.console import Console

from streamgauge.apps.demo.report import DemoReport
from streamgauge.apps.demo.running import Demo, shown
from streamgauge.apps.registry import APPS, app_of
from streamgauge.apps.running.asked import Job

from ...waiting import until

pytestmark = pytest.mark.kafka


def flags(found: Any) -> Iterator[bool]:
    """Of each estimate in answers, whether it is inside its bounds, as 99.7 % are."""
    if isinstance(found, dict) and "inside_bounds" in found:
        yield found["inside_bounds"]
    for part in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from flags(part)


def test_all_that_is_put_in_is_told(kafka) -> None:
    apps = [app for app in map(app_of, APPS) if app.example is not None]
    said = io.StringIO()
    with ExitStack() as stack:
        console = Console(file=said, width=200)
        found = shown(Demo(apps, {}, seconds=15.0, port=0), kafka.bootstrap_servers, console, stack)
        page = re.search(r"http://\S+?/(?=:)", said.getvalue())
        assert page is not None
        days = f"{page.group()}tables/iot-days/rows"
        counted = found["iot"]["account"]["counted"]
        # Days are open until the end; the page shows them as they fill.
        until(lambda: sum(row["readings"] for row in httpx.get(days, timeout=120).json()["rows"]) == counted)
    assert list(found) == [app.name for app in apps]
    for name, result in found.items():
        assert result["put_in"] and all(one["told"] for one in result["put_in"]), (name, result["put_in"])
        account = result["account"]
        # Where its windows begin depends on the moment, so of some hundred estimates a few may be outside.
        inside = list(flags(result["answers"]))
        assert result["all_inside_bounds"] == all(inside), name
        assert inside.count(False) <= 2 + 0.01 * len(inside) and len(inside) > 5, name
        assert account["read"] == account["counted"] + account["filtered"] > 0, name
    out = io.StringIO()
    Console(file=out, width=80).print(DemoReport(found))
    assert len(
        re.findall("All [2-9] events that were put in were told|The event that was", out.getvalue())
    ) == len(apps)
    assert "messages, " in said.getvalue()


def test_an_app_that_fails_ends_the_demo_with_its_error(kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.demo import running

    def fail(*_: object) -> None:
        raise RuntimeError("the engine is broken")

    monkeypatch.setitem(running.ENGINES, "local", fail)
    with ExitStack() as stack, pytest.raises(RuntimeError, match="the engine is broken"):
        shown(
            Demo([app_of("iot")], {}, seconds=15.0, port=0),
            kafka.bootstrap_servers,
            Console(file=io.StringIO()),
            stack,
        )


def test_an_interrupt_is_answered_at_once(kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.demo import running

    said = io.StringIO()
    heard: list[bool] = []

    def engine(job: Job, feed: object, send: Callable[[], int], *_: object) -> None:
        try:
            send()
        finally:
            heard.append("stopping" in said.getvalue())

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(running.ENGINES, "local", engine)
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=time.monotonic, sleep=interrupted))
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:
        shown(Demo([app_of("iot")], {}, port=0), kafka.bootstrap_servers, Console(file=said), stack)
    assert heard == [True]


def test_an_end_is_told_to_all_apps_before_any_is_waited_for(kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.demo import running

    both = threading.Barrier(2)
    begun: list[str] = []
    met: list[int] = []

    def engine(job: Job, feed: object, send: Callable[[], int], *_: object) -> None:
        if job.app.name == "logs":
            until(lambda: len(begun) == 2)
            raise RuntimeError("the engine is broken")
        begun.append(job.app.name)
        try:
            send()
        finally:
            met.append(both.wait(120))

    monkeypatch.setitem(running.ENGINES, "local", engine)
    monkeypatch.setattr(running, "_END_SECONDS", 300.0)
    apps = [app_of(name) for name in ("iot", "stocks", "logs")]
    with pytest.raises(RuntimeError, match="the engine is broken"), ExitStack() as stack:
        shown(Demo(apps, {}, port=0), kafka.bootstrap_servers, Console(file=io.StringIO()), stack)
    assert sorted(met) == [0, 1]
