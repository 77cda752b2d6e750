"""Run an app on a recording, through a real broker that is started for it; nothing is left running."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer
from rich.console import Console

from ...operators.formats.jsonable import jsonable
from ...operators.kafka.topics import admin, ensure_topic
from ...operators.rules.alerting import Outlet
from ...operators.rules.outlets.to_command import listed_commands
from ...operators.sketching.dead_letters import TOPIC_CONFIG
from ...operators.table.schema import schema_of
from ...operators.watching.console import TerminalConsole
from ...operators.watching.terminal import write_json
from ..app import Feed, Message
from ..dev.kafka.beside import KafkaBeside
from ..dev.kafka.jars import KAFKA
from ..dev.replay.sender import send
from ..ending import in_order
from ..jobs.job import Job
from ..jobs.outcome import Outcome, check_counted, events
from ..jobs.outlets import end
from ..spinner import stage
from . import local, spark
from .exact import all_inside, compared, exact_counts_together, in_all
from .late import late_messages
from .recording import RecordedMessages
from .refused import refused_messages
from .report import AppReport

ENGINES = {"local": local.replay, "spark": spark.replay}


@dataclass(frozen=True)
class AppReplay:
    """A recording's files, an app's job on them, the engine, the speed, and further outlets of alerts."""

    job: Job
    paths: Sequence[Path]
    engine: str = "local"
    speed: float = 0.0
    to: Sequence[Outlet] = ()
    page: int | None = None
    """The port of a page that shows the run until Ctrl-C; None for no page."""


def replay(request: AppReplay, as_json: bool, kafka: KafkaBeside | None = None) -> None:
    """Run a replay, and print its result: one JSON object, or a report for people.

    `kafka` is the broker to run on, which is stopped at the end; by default a new one.
    Raises `JavaError`, `JarsError`, `BrokerError`, what the engine raises, and `NothingCounted`, after
    printing, if no message was counted.
    """
    # A copy of standard error, because engines may redirect the original away from the screen.
    console = TerminalConsole(file=os.fdopen(os.dup(2), "w"))
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        with in_order() as stack:
            # While Kafka starts, there is time to load the kernels of the required sketches.
            threading.Thread(target=_load_kernels, args=(request.job,), daemon=True).start()
            servers = broker(console, stack, kafka)
            producer = None if kafka is None else kafka.producer()
            result = replayed(request, servers, console, stack, producer)
            # Pending grouped alerts are sent now, so that the account is final.
            result["outlets"] = {title: account.to_dict() for title, account in end(request.to).items()}
            if request.page is not None:
                _print_result(request, result, as_json)
                console.print("the page stays until Ctrl-C")
                threading.Event().wait()
    except KeyboardInterrupt:
        console.print("stopped; nothing was left running")
        raise
    _print_result(request, result, as_json)
    check_counted({request.job.app.name: result})


def _load_kernels(job: Job) -> None:
    with suppress(Exception):  # the run reports what is wrong with a job
        for stream in job.streams(Feed(job.app.name, "localhost:9092", {})).values():
            schema_of(stream)


def _print_result(request: AppReplay, result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        write_json(jsonable(result), flush=True)
    else:
        TerminalConsole().print(AppReport(request.job.app, result))


def broker(console: Console, stack: ExitStack, kafka: KafkaBeside | None = None) -> str:
    """Wait for a starting broker, or start one; return its address. The end of the stack stops it."""
    kafka = kafka or KafkaBeside()
    stack.callback(kafka.stop)
    with stage(console, f"starting Kafka {KAFKA}", f"Kafka {KAFKA} serves"):
        return kafka.started().bootstrap_servers


def replayed(
    request: AppReplay,
    servers: str,
    console: Console,
    stack: ExitStack | None = None,
    producer: Producer | None = None,
) -> dict[str, Any]:
    """Send a recording to a new topic on a broker, and return an engine's results.

    `producer` is a producer for the broker, by default a new one. The page, if any, ends with the stack.
    Raises `ServerError` if its port is unavailable.
    """
    job = replace(request.job, recorded=request.speed == 0 and request.page is None)
    feed = Feed(f"{job.app.name}-{uuid4().hex[:8]}", servers, {"log_level": 0})
    messages = RecordedMessages(job, request.paths, request.speed)
    # One partition, so that order and lateness are as recorded in every run.
    ensure_topic(admin({"bootstrap.servers": servers}), feed.topic, 1, TOPIC_CONFIG)

    for path in request.paths:
        if not path.is_dir() and (note := job.form.note(path, job.settings)):
            console.print(f"{path}: {note}", highlight=False, markup=False, soft_wrap=True)

    to, view = request.to, None
    if request.page is not None and stack is not None:
        from ..page.in_process_page import PageBeside, ShownRun

        shown = ShownRun(job, job.streams(feed), feed if request.engine == "local" else None)
        beside = PageBeside([shown], request.page)
        stack.callback(beside.stop)
        console.print(f"the page: {beside.url}", highlight=False)
        to, view = [*to, shown.alerts], shown

    def sending() -> int:
        return send(messages, feed.topic, servers, pace=request.speed > 0, producer=producer)

    with stage(console, f"{job.app.name} on {request.engine}, from {', '.join(map(str, request.paths))}"):
        outcome = ENGINES[request.engine](job, feed, sending, request.speed == 0, to, view)
    with stage(console, "counting exactly, to compare"):
        return result(job, request.engine, feed, outcome, messages.messages())


def result(
    job: Job, engine: str, feed: Feed, outcome: Outcome, messages: Iterable[Message]
) -> dict[str, Any]:
    """Return an engine's results, with exact results beside its estimates, as plain values."""
    sent = list(messages)
    answers = exact_answers(job, feed, outcome, sent)
    streams = job.streams(feed)
    late = {name: account.late for name, account in zip(streams, outcome.accounts)}
    rules = [rule for some in job.rules.values() for rule in some]
    return {
        "app": job.app.name,
        "engine": engine,
        "format": job.form.name,
        "account": outcome.account.to_dict(),
        "late": late_messages(streams, late, sent),
        "late_readings": outcome.late_readings.to_dict(),
        "dead_letters": refused_messages(feed),
        "alerts": events(outcome.alerts),
        "commands": [command for alert in outcome.alerts for command in listed_commands(rules, alert)],
        "answers": answers,
        "all_inside_bounds": all_inside(answers) if outcome.counted else None,
    }


def exact_answers(job: Job, feed: Feed, outcome: Outcome, sent: Sequence[Message]) -> dict[str, Any]:
    """Return the answers of each shown part, with their exact results, and its total."""
    streams, totals = job.streams(feed), {part.name: part.total for part in job.parts if part.total}
    derive = {part.name: part.derive for part in job.parts}
    answers, counts = {}, exact_counts_together(streams, outcome.tables, sent)
    for name, table in outcome.tables.items():
        answers[name] = derive[name](compared(table, counts[name]))
        if name in totals:
            answers[totals[name]] = compared(*in_all(table, counts[name]))
    return answers
