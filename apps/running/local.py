"""An app on the standalone consumer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ...operators.consumer.options import RunOptions
from ...operators.consumer.run import Run
from ...operators.consumer.runner import start
from ...operators.definition.stream import Stream
from ...operators.rules.alerting import Outlet
from ...operators.sketching.accounting import Account
from ...operators.table.schema import END, START, schema_of
from ..app import Feed
from .asked import Job
from .outcome import AlertList, Outcome

_PATIENT = 3600.0
"""In a replay no partition is idle: what closes windows is the recording alone."""
_LOOK_SECONDS = 0.1


def replay(job: Job, feed: Feed, send: Callable[[], int], at_once: bool, to: Sequence[Outlet]) -> Outcome:
    """Count what `send` sends, all of it first or while it is sent; every window is closed in the end.

    `send` gives how many messages there were. Raises what ends a run.
    """
    streams, told = job.streams(feed), AlertList()
    tables = {name: _Windows(stream) for name, stream in streams.items()}

    def started(**options: Any) -> dict[str, Run]:
        runs = {}
        for part in job.parts:
            alerting = job.alerting(part, [told, *to])
            runs[part.name] = start(
                streams[part.name],
                RunOptions(
                    on_window=tables[part.name].take,
                    sinks=[] if alerting is None else [alerting],
                    group_id=f"{feed.topic}-{part.name}",
                    idle_seconds=_PATIENT,
                    checkpoint_seconds=0.25,
                    dead_letters=None,
                    **options,
                ),
            )
        return runs

    if at_once:
        send()
    else:
        going = started()
        sent = send()
        while any(run.summary().account.read < sent for run in going.values() if run.running):
            time.sleep(_LOOK_SECONDS)
        for run in going.values():
            run.stop()
            run.wait()
    # Up to the end of the topic: the windows that are open then are given out as they are.
    accounts = [run.wait().account for run in started(until="latest").values()]
    shown = {part.name: tables[part.name].table() for part in job.parts if part.shown}
    return Outcome(accounts[0] if accounts else Account(), told.alerts, shown)


class _Windows:
    """A part's windows; one that comes again takes the place of the first."""

    def __init__(self, stream: Stream) -> None:
        self._schema = schema_of(stream)
        self._tables: dict[Any, pa.Table] = {}

    def take(self, table: pa.Table) -> None:
        """What a run calls with each window."""
        first = table.column(END)[0].as_py(), table.column(START)[0].as_py()
        self._tables[first] = table.replace_schema_metadata(self._schema.metadata)

    def table(self) -> pa.Table:
        """All of them."""
        tables = [self._tables[key] for key in sorted(self._tables)]
        return pa.concat_tables(tables) if tables else self._schema.empty_table()


def live(job: Job, feed: Feed, group: str, to: Sequence[Outlet], stale: str | None) -> list[Run]:
    """Start an app's runs on a topic; they go on until they are stopped, and later where they ended."""
    streams = job.streams(feed)
    runs = []
    for part in job.parts:
        alerting = job.alerting(part, to, stale if part is job.parts[0] else None)
        options = RunOptions(sinks=[] if alerting is None else [alerting], group_id=f"{group}-{part.name}")
        runs.append(start(streams[part.name], options))
    return runs
