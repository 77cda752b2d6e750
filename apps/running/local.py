"""An app on the standalone consumer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from ...operators.consumer.options import RunOptions
from ...operators.consumer.runner import start_together
from ...operators.consumer.together import RunTogether, options_of
from ...operators.definition.stream import Stream
from ...operators.rules.alerting import Outlet
from ...operators.sinks.sink import Sink
from ...operators.sinks.to_table import ToTable
from ...operators.sketching.accounting import Account
from ...operators.table.schema import END, START, schema_of
from ..app import Feed
from .asked import Going, Job, Live, least
from .outcome import AlertList, Outcome

_PATIENT = 3600.0
"""In a replay no partition is idle: what closes windows is the recording alone."""
_LOOK_SECONDS = 0.1


def replay(
    job: Job,
    feed: Feed,
    send: Callable[[], int],
    at_once: bool,
    to: Sequence[Outlet],
    seen: Callable[[str, pa.Table], None] | None = None,
) -> Outcome:
    """Count what `send` sends, all of it first or while it is sent; every window is closed in the end.

    `send` gives how many messages there were; what it raises ends the run. The group is named as the topic.
    `seen` is called with a part's name and each window that has
    closed. Raises what ends a run.
    """
    streams, told = job.streams(feed), AlertList()
    tables = {
        name: _Windows(stream, None if seen is None else partial(seen, name))
        for name, stream in streams.items()
    }

    def started(**options: Any) -> RunTogether:
        shared = RunOptions(
            group_id=feed.topic,
            idle_seconds=_PATIENT,
            checkpoint_seconds=0.25,
            **options,
        )
        taken = {name: table.take for name, table in tables.items()}
        return start_together(streams, options_of(streams, shared, taken, _alerting(job, [told, *to])))

    if at_once:
        send()
    else:
        going = started()
        try:
            sent = send()
            while going.running and any(one.account.read < sent for one in going.summaries().values()):
                time.sleep(_LOOK_SECONDS)
        finally:
            going.stop()
            going.wait()
    # Up to the end of the topic: the windows that are open then are given out as they are.
    ended = started(until="latest").wait()
    account = least([summary.account for summary in ended.values()])
    shown = job.shown({name: windows.table() for name, windows in tables.items()})
    return Outcome(account, told.alerts, shown)


@dataclass(frozen=True)
class _Consumers:
    """See `apps.running.asked.Going`."""

    run: RunTogether

    def account(self) -> Account:
        """See `Going`."""
        return least([summary.account for summary in self.run.summaries().values()])

    def wait(self) -> None:
        """See `Going`."""
        while self.run.running:
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> Account:
        """See `Going`."""
        self.run.stop()
        return least([summary.account for summary in self.run.wait().values()])


def live(asked: Live) -> Going:
    """Start an app's streams on a topic; they go on until they are stopped, and later where they ended."""
    job, streams = asked.job, asked.job.streams(asked.feed)
    options = RunOptions(group_id=asked.group, workers=asked.workers, metrics=asked.metrics)
    alerting = _alerting(job, asked.to, asked.stale)
    # Closed windows are kept for a week, for the page and for whoever asks a query server.
    sinks = {name: [ToTable(), *alerting.get(name, ())] for name in streams}
    return _Consumers(start_together(streams, options_of(streams, options, None, sinks)))


def _alerting(job: Job, to: Sequence[Outlet], stale: str | None = None) -> dict[str, Sequence[Sink]]:
    """The rules of each part that has some. That nothing comes is told by the first of them."""
    found: dict[str, Sequence[Sink]] = {}
    for part in job.parts:
        alerting = job.alerting(part, to, None if found else stale)
        if alerting is not None:
            found[part.name] = [alerting]
    return found


class _Windows:
    """A part's windows; one that comes again takes the place of the first."""

    def __init__(self, stream: Stream, seen: Callable[[pa.Table], None] | None) -> None:
        self._seen = seen
        self._schema = schema_of(stream)
        self._tables: dict[Any, pa.Table] = {}

    def take(self, table: pa.Table) -> None:
        """What a run calls with each window."""
        first = table.column(END)[0].as_py(), table.column(START)[0].as_py()
        self._tables[first] = table.replace_schema_metadata(self._schema.metadata)
        if self._seen is not None:
            self._seen(table)

    def table(self) -> pa.Table:
        """All of them."""
        tables = [self._tables[key] for key in sorted(self._tables)]
        return pa.concat_tables(tables) if tables else self._schema.empty_table()
