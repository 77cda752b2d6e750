"""Apps on made-up messages: a broker, a run of each app, their page. Nothing is left running."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from ...operators.kafka.topics import admin, ensure_topic
from ...operators.table.jsonable import jsonable
from ..app import App, Feed
from ..ending import in_order
from ..page.beside import PageBeside, ShownRun
from ..replay.process import Replay
from ..running.asked import Job
from ..running.outcome import Outcome
from ..running.replaying import ENGINES, broker, result
from ..stage import stage
from .kernels import ready
from .made import MadeUp
from .report import DemoReport
from .shown import AppLook, DemoView, showing

_LOOK_SECONDS = 0.25
_END_SECONDS = 30.0


@dataclass(frozen=True)
class Demo:
    """What is asked of a demo: its apps, the engine of each, for how long, and where its page is."""

    apps: Sequence[App]
    engines: Mapping[str, str]
    seconds: float = 60.0
    seed: int = 0
    port: int = 8055


class Over(Exception):
    """The demo is told to end."""


class AppDemo:
    """An app at work on made-up messages, in a thread of its own; `found` is what came of it."""

    def __init__(self, app: App, feed: Feed, engine: str) -> None:
        assert app.example is not None
        self.feed, self.engine = feed, engine
        self.job = Job.of(app, app.example.format, app.example.settings)
        followed = feed if engine == "local" else None
        self.shown = ShownRun(self.job, self.job.streams(feed), followed)
        self.found: Future[Outcome] = Future()
        self.made: MadeUp | None = None
        self._replay: Replay | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"demo {app.name}", daemon=True)

    def start(self, seed: int, seconds: float) -> None:
        """Start its engine; messages come as soon as that runs."""
        self._asked = seed, seconds
        self._thread.start()

    def look(self) -> AppLook:
        """What it has come to."""
        sent = 0 if self._replay is None else self._replay.sent
        return AppLook(self.job.app.name, self.engine, sent, self.shown.alerts.alerts)

    def end(self) -> None:
        """Tell it to end, whatever it does."""
        self._over.set()

    def wait(self, until: float) -> None:
        """Wait until it has ended, or until this moment of the monotonic clock: its thread ends with us."""
        if self._thread.ident is not None:
            self._thread.join(max(until - time.monotonic(), 0.0))

    def result(self) -> dict[str, Any]:
        """What it found, beside the exact figures and what was put in. Raises what ended it."""
        found = self.found.result()
        assert self.made is not None
        told = result(self.job, self.engine, self.feed, found, self.made.messages())
        fired = [(one["rule"], one["key"]) for one in told["alerts"]]
        put_in = [
            {"rule": rule, "key": key, "told": (rule, key) in fired} for rule, key in self.made.example.events
        ]
        return {**told, "put_in": put_in}

    def _run(self) -> None:
        try:
            engine, to = ENGINES[self.engine], [self.shown.alerts]
            self.found.set_result(engine(self.job, self.feed, self._send, False, to, self.shown.take))
        except BaseException as error:
            self.found.set_exception(error)

    def _send(self) -> int:
        assert self.job.app.example is not None
        self.made = MadeUp.from_now(self.job.app.example, *self._asked)
        self._replay = Replay(self.made, self.feed.topic, self.feed.bootstrap_servers)
        self._replay.start()
        try:
            while not self._replay.done:
                if self._over.wait(_LOOK_SECONDS):
                    raise Over
        finally:
            self._replay.stop()
        return self._replay.sent


def run(asked: Demo, as_json: bool) -> None:
    """Run it, and print what came of it. Raises what a part of it raises, once all is stopped."""
    # A copy of standard error: engines may send the original elsewhere than to the screen.
    console = Console(file=os.fdopen(os.dup(2), "w"))
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        with in_order() as stack:
            results = shown(asked, broker(console, stack), console, stack)
    except KeyboardInterrupt:
        console.print("stopped; nothing was left running")
        raise
    if as_json:
        print(json.dumps(jsonable(results), ensure_ascii=False))
    else:
        Console().print(DemoReport(results))


def shown(asked: Demo, servers: str, console: Console, stack: ExitStack) -> dict[str, Any]:
    """Run a demo's apps on a broker until their time is over; gives what each has found, by name."""
    apps = []
    for app in asked.apps:
        feed = Feed(f"demo-{app.name}", servers, {"log_level": 0})
        apps.append(AppDemo(app, feed, asked.engines.get(app.name, "local")))
    ready([stream for one in apps for stream in one.job.streams(one.feed).values()], console)
    client = admin({"bootstrap.servers": servers})
    for one in apps:
        ensure_topic(client, one.feed.topic, 1)
    page = PageBeside([one.shown for one in apps], asked.port)
    stack.callback(page.stop)
    stack.callback(_end, apps)
    for one in apps:
        one.start(asked.seed, asked.seconds)
    stack.push(lambda kind, *_: _stopping(kind, console))
    begun = time.monotonic()
    with showing(console) as show:
        while not all(one.found.done() for one in apps):
            left = max(asked.seconds - (time.monotonic() - begun), 0.0)
            show(DemoView(page.url, left, [one.look() for one in apps]))
            if failed := [one for one in apps if one.found.done() and one.found.exception() is not None]:
                failed[0].found.result()
            time.sleep(_LOOK_SECONDS)
    with stage(console, "counting exactly, to compare"):
        return {one.job.app.name: one.result() for one in apps}


def _stopping(kind: type[BaseException] | None, console: Console) -> None:
    """Say that an interrupt has been heard: what engines have begun takes them some seconds to end."""
    if kind is KeyboardInterrupt:
        console.print("stopping …")


def _end(apps: Sequence[AppDemo]) -> None:
    """End all of them at the same time, and wait for that."""
    for one in apps:
        one.end()
    until = time.monotonic() + _END_SECONDS
    for one in apps:
        one.wait(until)
