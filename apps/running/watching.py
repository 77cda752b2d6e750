"""Run an app live, until it is told to end."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from ...operators.consumer.ending import as_interrupt
from ...operators.rules.alerting import Outlet
from ...operators.rules.to_output import AlertOutput
from ..app import Feed
from .asked import Job
from .local import live

_LOOK_SECONDS = 0.5


def watch(
    job: Job, topic: str, servers: str, group: str, to: Sequence[Outlet], stale: str | None, as_json: bool
) -> None:
    """Run an app on a topic and print its alerts, until Ctrl-C, SIGTERM, or an error of one of its runs."""
    with as_interrupt():
        runs = live(job, Feed(topic, servers), group, [AlertOutput(as_json), *to], stale)
        print(f"{job.app.name} reads {topic}; Ctrl-C ends it in order", file=sys.stderr)
        try:
            while all(run.running for run in runs):
                time.sleep(_LOOK_SECONDS)
        except KeyboardInterrupt:
            pass
        for run in runs:
            run.stop()
        summaries = [run.wait() for run in runs]
    print(f"{job.app.name} ended: {summaries[0].account}", file=sys.stderr)
