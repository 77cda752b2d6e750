"""Run an app on a recording, through a real broker that is started for it: nothing is left running."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console

from ...operators.kafka.topics import admin, ensure_topic
from ...operators.rules.alerting import Outlet
from ...operators.table.jsonable import jsonable
from ..app import Feed, Message
from ..ending import in_order
from ..java import find_java
from ..kafka.broker import EmbeddedKafka
from ..kafka.jars import KAFKA, kafka_jars
from ..page.beside import PageBeside, ShownRun
from ..replay.sender import send
from ..stage import stage
from . import local, spark
from .asked import Job
from .exact import all_inside, compared, exact_counts, in_all
from .outcome import Outcome, events
from .recording import RecordedMessages
from .refused import refused_messages
from .report import AppReport

ENGINES = {"local": local.replay, "spark": spark.replay}


@dataclass(frozen=True)
class AppReplay:
    """A recording's files, an app's job on them, the engine, how fast, and where alerts go besides."""

    job: Job
    paths: Sequence[Path]
    engine: str = "local"
    speed: float = 0.0
    to: Sequence[Outlet] = ()
    page: int | None = None
    """The port of a page that shows it, and stays until Ctrl-C; None for no page."""


def replay(asked: AppReplay, as_json: bool) -> None:
    """Run it, and print what came of it: one JSON object, or a report for people.

    Raises `JavaError`, `JarsError`, `BrokerError`, and what the engine raises.
    """
    # A copy of standard error: engines may send the original elsewhere than to the screen.
    console = Console(file=os.fdopen(os.dup(2), "w"))
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        with in_order() as stack:
            result = replayed(asked, broker(console, stack), console, stack)
            if asked.page is not None:
                _tell(asked, result, as_json)
                console.print("the page stays until Ctrl-C")
                threading.Event().wait()
    except KeyboardInterrupt:
        console.print("stopped; nothing was left running")
        raise
    _tell(asked, result, as_json)


def _tell(asked: AppReplay, result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(jsonable(result), ensure_ascii=False), flush=True)
    else:
        Console().print(AppReport(asked.job.app, result))


def broker(console: Console, stack: ExitStack) -> str:
    """Start one, which is stopped with the stack; gives its address."""
    find_java()
    kafka_jars()
    kafka = EmbeddedKafka()
    stack.callback(kafka.stop)
    with stage(console, f"starting Kafka {KAFKA}", f"Kafka {KAFKA} serves"):
        kafka.start()
    return kafka.bootstrap_servers


def replayed(
    asked: AppReplay, servers: str, console: Console, stack: ExitStack | None = None
) -> dict[str, Any]:
    """Send a recording to a topic of its own on a broker, and give what an engine made of it.

    Its page, if it is to have one, ends with the stack. Raises `ServerError` if its port can't be had.
    """
    job = asked.job
    feed = Feed(f"{job.app.name}-{uuid4().hex[:8]}", servers, {"log_level": 0})
    messages = RecordedMessages(job, asked.paths, asked.speed)
    # One partition: what is late, and what comes first, is then as recorded, in every run.
    ensure_topic(admin({"bootstrap.servers": servers}), feed.topic, 1)

    to, seen = asked.to, None
    if asked.page is not None and stack is not None:
        shown = ShownRun(job, job.streams(feed), feed if asked.engine == "local" else None)
        beside = PageBeside([shown], asked.page)
        stack.callback(beside.stop)
        console.print(f"the page: {beside.url}", highlight=False)
        to, seen = [*to, shown.alerts], shown.take

    def sending() -> int:
        return send(messages, feed.topic, servers, pace=asked.speed > 0)

    with stage(console, f"{job.app.name} on {asked.engine}, from {', '.join(map(str, asked.paths))}"):
        found = ENGINES[asked.engine](job, feed, sending, asked.speed == 0, to, seen)
    with stage(console, "counting exactly, to compare"):
        return result(job, asked.engine, feed, found, messages.messages())


def result(job: Job, engine: str, feed: Feed, found: Outcome, messages: Iterable[Message]) -> dict[str, Any]:
    """What an engine found in messages, with the exact figures beside its estimates, as plain values."""
    answers = exact_answers(job, feed, found, list(messages))
    return {
        "app": job.app.name,
        "engine": engine,
        "format": job.form.name,
        "account": found.account.to_dict(),
        "dead_letters": refused_messages(feed),
        "alerts": events(found.alerts),
        "answers": answers,
        "all_inside_bounds": all_inside(answers),
    }


def exact_answers(job: Job, feed: Feed, found: Outcome, sent: Sequence[Message]) -> dict[str, Any]:
    """The answers of each part that is shown, with their exact figures; its total beside it."""
    streams, totals = job.streams(feed), {part.name: part.total for part in job.parts if part.total}
    answers = {}
    for name, table in found.tables.items():
        counts = exact_counts(streams[name], table, sent)
        answers[name] = compared(table, counts)
        if name in totals:
            answers[totals[name]] = compared(*in_all(table, counts))
    return answers
