"""Run an app live, until it is told to end."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace

from ...operators.consumer.ending import as_interrupt
from ...operators.rules.to_output import AlertOutput
from . import local, spark
from .asked import Live

ENGINES = {"local": local.live, "spark": spark.live}


def watch(asked: Live, as_json: bool) -> None:
    """Run an app on a topic and print its alerts, until Ctrl-C, SIGTERM, or an error of its engine."""
    with as_interrupt():
        going = ENGINES[asked.engine](replace(asked, to=[AlertOutput(as_json), *asked.to]))
        name = asked.job.app.name
        print(f"{name} reads {asked.feed.topic}; Ctrl-C ends it in order", file=sys.stderr)
        with suppress(KeyboardInterrupt):
            going.wait()
        account = going.stop()
    print(f"{name} ended: {account}", file=sys.stderr)
