"""Run apps on generated messages: a broker, a run of each app, their page. Nothing is left running.

Slow parts start in parallel: Spark and the kernels while Kafka starts, the page before any engine, and each
app's exact results as soon as that app has ended.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from ...operators.definition.stream import Stream
from ...operators.formats.jsonable import jsonable
from ...operators.kafka.topics import admin, ensure_topic
from ...operators.watching.console import TerminalConsole
from ...operators.watching.terminal import write_json
from ...sketches.core.errors import StreamgaugeError
from ..app import App, Feed
from ..dev.replay.process import Replay
from ..ending import in_order
from ..jobs.job import Job
from ..jobs.outcome import Outcome, check_counted
from ..page.in_process_page import PageBeside, ShownRun
from ..running import spark
from ..running.replaying import ENGINES, broker, result
from .kernels import Kernels
from .quiet import quiet
from .report import DemoReport
from .synthetic import MadeUp
from .tailed_log import TailedLog
from .view import AppLook, DemoView, showing

_LOOK_SECONDS = 0.25
_END_SECONDS = 30.0


@dataclass(frozen=True)
class Demo:
    """The options of a demo: its apps, their engines, the duration, and the address of its page."""

    apps: Sequence[App]
    engines: Mapping[str, str]
    seconds: float = 60.0
    seed: int = 0
    port: int = 8055


class Over(StreamgaugeError):
    """The end of the demo was requested."""


class AppDemo:
    """An app running on generated messages, in its own thread; `outcome` is its result."""

    def __init__(self, app: App, feed: Feed, engine: str) -> None:
        assert app.example is not None
        self.feed, self.engine = feed, engine
        self.job = Job.of(app, app.example.format, app.example.settings)
        followed = feed if engine == "local" else None
        self.shown = ShownRun(self.job, self.job.streams(feed), followed)
        self.outcome: Future[dict[str, Any]] = Future()
        self.state = "starting"
        self.made: MadeUp | None = None
        self._replay: Replay | TailedLog | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"demo {app.name}", daemon=True)

    def start(self, seed: int, seconds: float, after: Kernels | None = None) -> None:
        """Start the engine after its kernels are loaded; messages come as soon as it runs."""
        self._drawn, self._after = (seed, seconds), after
        self._thread.start()

    def look(self) -> AppLook:
        """Return the current state."""
        sent = 0 if self._replay is None else self._replay.sent
        return AppLook(self.job.app.name, self.engine, self.state, sent, self.shown.alerts.alerts)

    def end(self) -> None:
        """Request the app's end, whatever it is doing."""
        self._over.set()

    def wait(self, until: float) -> None:
        """Wait until it has ended, or until this time of the monotonic clock; its thread ends with the
        process."""
        if self._thread.ident is not None:
            self._thread.join(max(until - time.monotonic(), 0.0))

    def failed(self) -> bool:
        """Whether an error has ended the app."""
        return self.outcome.done() and self.outcome.exception() is not None

    def result(self) -> dict[str, Any]:
        """Return the result, with exact results and the generated events; for a failed app, the error."""
        if (error := self.outcome.exception()) is not None:
            # Java errors have hundreds of lines; the first says what is wrong.
            reason = (str(error).strip() or repr(error)).splitlines()[0]
            return {"app": self.job.app.name, "engine": self.engine, "error": reason}
        return self.outcome.result()

    def _run(self) -> None:
        try:
            if self._after is not None:
                self._after.wait()
            engine, to = ENGINES[self.engine], [self.shown.alerts]
            outcome = engine(self.job, self.feed, self._send, False, to, self.shown)
            self.state = "checking"
            self.outcome.set_result(self._compared(outcome))
            self.state = "done"
        except BaseException as error:
            self.state = "failed"
            self.outcome.set_exception(error)

    def _compared(self, outcome: Outcome) -> dict[str, Any]:
        assert self.made is not None
        report = result(self.job, self.engine, self.feed, outcome, self.made.messages())
        fired = [(one["rule"], one["key"]) for one in report["alerts"]]
        put_in = [
            {"rule": rule, "key": key, "fired": (rule, key) in fired}
            for rule, key in self.made.example.events
        ]
        return {**report, "put_in": put_in}

    def _send(self) -> int:
        example = self.job.app.example
        assert example is not None
        self.made = MadeUp.from_now(example, *self._drawn)
        with TemporaryDirectory(prefix="streamgauge-demo-") as folder:
            to = self.feed.topic, self.feed.bootstrap_servers
            replay = (
                TailedLog(self.made, Path(folder) / example.log, *to)
                if example.log
                else Replay(self.made, *to)
            )
            return self._sent_by(replay)

    def _sent_by(self, replay: Replay | TailedLog) -> int:
        self._replay = replay
        replay.start()
        try:
            while not replay.done:
                if replay.sent:
                    self.state = "reading"
                if self._over.wait(_LOOK_SECONDS):
                    raise Over
        finally:
            replay.stop()
        self.state = "closing"
        return replay.sent


def run(demo: Demo, as_json: bool, details: bool = False) -> None:
    """Run a demo and print its result, with `details` all of it; exits with 1 if one of the apps has failed.

    Raises `SparkMissingError` before anything is started, an app's error if all fail, after everything is
    stopped, and `NothingCounted`, after printing, if an app counted no message.
    """
    if "spark" in demo.engines.values():
        from ...spark_udafs.requires_pyspark import need_pyspark

        need_pyspark()
    # A copy of standard error, because engines may redirect the original away from the screen.
    console = TerminalConsole(file=os.fdopen(os.dup(2), "w"))
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        with in_order() as stack:
            stack.enter_context(quiet())
            kernels = Kernels.loading(stream for app in demo.apps for stream in _streams(app))
            makers = {getattr(app.example.messages, "__module__", "") for app in demo.apps if app.example}
            Replay.prepare(MadeUp.__module__, *sorted(filter(None, makers)))
            if "spark" in demo.engines.values():
                _start_spark(stack)
            results = shown(demo, broker(console, stack), console, stack, kernels)
    except KeyboardInterrupt:
        console.print("stopped; nothing was left running")
        raise
    if as_json:
        write_json(jsonable(results))
    else:
        TerminalConsole().print(DemoReport(results, details))
    if any("error" in result for result in results.values()):
        raise SystemExit(1)
    check_counted(results)


def _streams(app: App) -> Iterable[Stream]:
    assert app.example is not None
    return (
        Job.of(app, app.example.format, app.example.settings)
        .streams(Feed("demo", "127.0.0.1:9092", {}))
        .values()
    )


def _start_spark(stack: ExitStack) -> None:
    """Start the session for all runs on Spark in the background; it ends with the stack."""
    folder = stack.enter_context(TemporaryDirectory(prefix="streamgauge-spark-", ignore_cleanup_errors=True))
    session = ExitStack()

    def begin() -> None:
        # The app that runs on it reports what is wrong.
        with suppress(Exception):
            session.enter_context(spark.SESSION.joined(Path(folder)))

    starting = threading.Thread(target=begin, name="demo Spark", daemon=True)
    starting.start()

    def end() -> None:
        starting.join(_END_SECONDS)
        session.close()

    stack.callback(end)


def shown(
    demo: Demo, servers: str, console: Console, stack: ExitStack, kernels: Kernels | None = None
) -> dict[str, Any]:
    """Run a demo's apps on a broker until their time is over; return their results by name.

    Engines start when the `kernels` are loaded; without `kernels` each loads its own. The result of a failed
    app is its error, and the others continue. Raises the first app's error if all fail.
    """
    apps = []
    for app in demo.apps:
        feed = Feed(f"demo-{app.name}", servers, {"log_level": 0})
        apps.append(AppDemo(app, feed, demo.engines.get(app.name, "local")))
    client = admin({"bootstrap.servers": servers})
    for one in apps:
        ensure_topic(client, one.feed.topic, 1)
    page = PageBeside([one.shown for one in apps], demo.port)
    stack.callback(page.stop)
    stack.callback(_end, apps)
    console.print(f"the page: {page.url}", highlight=False, soft_wrap=True)
    if kernels is not None:
        kernels.compile_missing(console)
    for one in apps:
        one.start(demo.seed, demo.seconds, kernels)
    stack.push(lambda kind, *_: _stopping(kind, console))
    begun = time.monotonic()
    with showing(console) as show:
        while not all(one.outcome.done() for one in apps):
            left = max(demo.seconds - (time.monotonic() - begun), 0.0)
            show(DemoView(page.url, left, [one.look() for one in apps]))
            if all(one.failed() for one in apps):
                apps[0].outcome.result()
            time.sleep(_LOOK_SECONDS)
    if all(one.failed() for one in apps):
        apps[0].outcome.result()
    return {one.job.app.name: one.result() for one in apps}


def _stopping(kind: type[BaseException] | None, console: Console) -> None:
    """Acknowledge an interrupt, because engines need some seconds to finish what they have begun."""
    if kind is KeyboardInterrupt:
        console.print("stopping …")


def _end(apps: Sequence[AppDemo]) -> None:
    """End all apps at the same time, and wait for them."""
    for one in apps:
        one.end()
    until = time.monotonic() + _END_SECONDS
    for one in apps:
        one.wait(until)
