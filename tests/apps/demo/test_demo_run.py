"""The apps' demo on a real broker: the events that are put in fire, and estimates hold."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from rich.console import Console

from streamgauge.apps.demo.demo_run import Demo, shown
from streamgauge.apps.demo.report import DemoReport
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_of
from streamgauge.apps.trending.example import under_load

from ...waiting import until

pytestmark = pytest.mark.kafka


def flags(result: Any) -> Iterator[bool]:
    """Of each estimate in answers, whether it is inside its bounds, as 99.7 % are."""
    if isinstance(result, dict) and "inside_bounds" in result:
        yield result["inside_bounds"]
    for part in result.values() if isinstance(result, dict) else result if isinstance(result, list) else ():
        yield from flags(part)


@pytest.mark.soak
def test_all_that_is_put_in_is_reported(kafka) -> None:
    apps = [app for app in map(app_of, APPS) if app.example is not None]
    said = io.StringIO()
    with ExitStack() as stack:
        console = Console(file=said, width=200)
        results = shown(Demo(apps, {}, seconds=15.0, port=0), kafka.bootstrap_servers, console, stack)
        page = re.search(r"http://\S+?/(?=:)", said.getvalue())
        assert page is not None
        days = f"{page.group()}tables/iot-days/rows"
        counted = results["iot"]["account"]["counted"]
        # Days are open until the end; the page shows them as they fill.
        until(lambda: sum(row["readings"] for row in httpx.get(days, timeout=120).json()["rows"]) == counted)
    assert list(results) == [app.name for app in apps]
    for name, result in results.items():
        assert result["put_in"] and all(one["fired"] for one in result["put_in"]), (name, result["put_in"])
        account = result["account"]
        # Where its windows begin depends on the moment, so of some hundred estimates a few may be outside.
        inside = list(flags(result["answers"]))
        assert result["all_inside_bounds"] == all(inside), name
        assert inside.count(False) <= 2 + 0.01 * len(inside) and len(inside) > 5, name
        assert account["read"] == account["counted"] + account["filtered"] > 0, name
    out = io.StringIO()
    Console(file=out, width=80).print(DemoReport(results))
    assert len(
        re.findall("All [2-9] events that were put in fired|The event that was", out.getvalue())
    ) == len(apps)
    assert "messages, " in said.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.soak])]
)
def test_a_load_of_posts_is_counted_and_checked(kafka, engine: str) -> None:
    # Its group is named after it, and others have left state of their posts with the broker.
    app = replace(app_of("trending"), name=f"under-load-{engine}", example=under_load(300.0, 8.0))
    demo = Demo([app], {app.name: engine}, seconds=8.0, seed=5, port=0)
    with ExitStack() as stack:
        console = Console(file=io.StringIO(), width=200)
        result = shown(demo, kafka.bootstrap_servers, console, stack)[app.name]
    account = result["account"]
    assert account["read"] == sum(n for name, n in account.items() if name != "read")
    assert account["counted"] > 0.97 * account["read"] > 800
    assert account["filtered"] > 0 and account["dead_lettered"] > 0 and result["put_in"] == []
    inside = list(flags(result["answers"]))
    assert inside.count(False) <= 1 + 0.01 * len(inside) and len(inside) > 30
    assert result["answers"]["top"][0]["tags"] and result["answers"]["volume"][0]["posts"] > 0


def test_an_app_that_fails_ends_the_demo_with_its_error(kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.demo import demo_run

    def fail(*_: object) -> None:
        raise RuntimeError("the engine is broken")

    monkeypatch.setitem(demo_run.ENGINES, "local", fail)
    with ExitStack() as stack, pytest.raises(RuntimeError, match="the engine is broken"):
        shown(
            Demo([app_of("iot")], {}, seconds=15.0, port=0),
            kafka.bootstrap_servers,
            Console(file=io.StringIO()),
            stack,
        )


@pytest.mark.slow
def test_the_others_are_reported_beside_an_app_that_fails(kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.demo import demo_run

    def fail(*_: object) -> None:
        raise RuntimeError("Python worker failed to connect back.\n\tat java.base/java.lang.Thread.run")

    monkeypatch.setitem(demo_run.ENGINES, "spark", fail)
    apps = [app_of("trending"), app_of("iot")]
    with ExitStack() as stack:
        result = shown(
            Demo(apps, {"trending": "spark"}, seconds=5.0, port=0),
            kafka.bootstrap_servers,
            Console(file=io.StringIO()),
            stack,
        )
    assert result["trending"] == {
        "app": "trending",
        "engine": "spark",
        "error": "Python worker failed to connect back.",
    }
    assert result["iot"]["account"]["read"] > 0
    out = io.StringIO()
    Console(file=out, width=120).print(DemoReport(result))
    assert (
        "trending has failed on the engine spark: Python worker failed to connect back.\n" in out.getvalue()
    )


def test_an_interrupt_is_answered_at_once(kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.demo import demo_run

    said = io.StringIO()
    heard: list[bool] = []

    def engine(job: Job, feed: object, send: Callable[[], int], *_: object) -> None:
        try:
            send()
        finally:
            heard.append("stopping" in said.getvalue())

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(demo_run.ENGINES, "local", engine)
    monkeypatch.setattr(demo_run, "time", SimpleNamespace(monotonic=time.monotonic, sleep=interrupted))
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:
        shown(Demo([app_of("iot")], {}, port=0), kafka.bootstrap_servers, Console(file=said), stack)
    assert heard == [True]


def test_all_apps_are_stopped_before_any_is_waited_for(kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.demo import demo_run

    both = threading.Barrier(2)
    begun: list[str] = []
    met: list[int] = []

    def engine(job: Job, feed: object, send: Callable[[], int], *_: object) -> None:
        begun.append(job.app.name)
        try:
            send()
        finally:
            met.append(both.wait(120))

    def interrupted(_: float) -> None:
        until(lambda: len(begun) == 2)
        raise KeyboardInterrupt

    monkeypatch.setitem(demo_run.ENGINES, "local", engine)
    monkeypatch.setattr(demo_run, "_END_SECONDS", 300.0)
    monkeypatch.setattr(demo_run, "time", SimpleNamespace(monotonic=time.monotonic, sleep=interrupted))
    apps = [app_of(name) for name in ("iot", "stocks")]
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:
        shown(Demo(apps, {}, port=0), kafka.bootstrap_servers, Console(file=io.StringIO()), stack)
    assert sorted(met) == [0, 1]
