"""Run an app live, until its end is requested."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace

from rich.text import Text

from ...operators.consumer.signals import as_interrupt
from ...operators.rendering.answers import plain
from ...operators.rendering.names import amount
from ...operators.rules.outlets.to_output import AlertsToConsole
from ...operators.watching.console import TerminalConsole
from ...operators.watching.terminal import write_line
from ..jobs.job import Live
from ..jobs.outlets import flush
from . import local, spark

OUTLET_SECONDS = 4.0
"""The time limit for outlets to send pending alerts, before a run stops and again afterwards."""

ENGINES = {"local": local.live, "spark": spark.live}


def watch(request: Live, as_json: bool) -> None:
    """Run an app on a topic and print its alerts, until Ctrl-C, SIGTERM, or an error of its engine."""
    with as_interrupt():
        going = ENGINES[request.engine](replace(request, to=[AlertsToConsole(as_json), *request.to]))
        name = request.job.app.name
        write_line(f"{name} reads {request.feed.topic}; Ctrl-C ends it in order", sys.stderr)
        with suppress(KeyboardInterrupt):
            going.wait()
        flush(request.to, OUTLET_SECONDS)
        account = going.stop()
    write_line(f"{name} ended: {account}", sys.stderr)
    if account.late:
        messages = amount(account.late, "message")
        late = f"{messages} came too late for their windows; wait for them by --set delay="
        TerminalConsole(file=sys.stderr).print(Text(late, style="bold yellow"))
    for sentence in going.late_readings().sentences():
        TerminalConsole(file=sys.stderr).print(Text(plain(sentence), style="bold yellow"))
