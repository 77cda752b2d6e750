"""An app on the standalone consumer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from ...operators.consumer.options import RunOptions
from ...operators.consumer.runner import start_together
from ...operators.consumer.shared_run import RunTogether, options_of
from ...operators.rules.alerting import Alerting, Outlet
from ...operators.rules.late_readings import LateReadings
from ...operators.sinks.sink import Sink
from ...operators.sinks.sketches_to_kafka import SketchesToKafka
from ...operators.sketching.account import Account
from ...operators.table.schema import END, START, schema_of
from ...operators.table.sketch_table import SketchTable
from ..app import Feed
from ..jobs.job import Going, Job, Live, RunView, least
from ..jobs.outcome import AlertList, Outcome

_PATIENT = 3600.0
"""The idle time in a replay, in which no partition may become idle: only the recording closes windows."""
_STOP_SECONDS = 15.0
"""The time limit of a stop; with the time for outlets, a program ends within Kubernetes' 30 seconds."""
_LOOK_SECONDS = 0.1


def replay(
    job: Job,
    feed: Feed,
    send: Callable[[], int],
    at_once: bool,
    to: Sequence[Outlet],
    view: RunView | None = None,
) -> Outcome:
    """Count the messages that `send` sends, after or while they are sent; every window is closed at the end.

    `send` returns the number of messages; its errors end the run. The group is named like the topic. `view`
    gets each closed window. Raises what ends a run.
    """
    streams, alerts = job.streams(feed), AlertList()
    # Windows are only passed one by one if requested; otherwise, the run's table is used.
    shown = {name: partial(view.take, name) for name in streams} if view is not None else {}
    windows = {} if at_once and not shown else {name: _Windows(shown.get(name)) for name in streams}
    runs: list[Mapping[str, Sequence[Alerting]]] = []

    def late_readings() -> LateReadings:
        # The second run takes up the rules' state, with its counts, once a window closes.
        return max(map(_late_readings, runs), key=lambda one: one.total, default=LateReadings())

    if view is not None:
        view.watch_late(late_readings)

    def started(**options: Any) -> RunTogether:
        shared = RunOptions(
            # No later run continues a run that reads everything, so its windows are final. A page follows the
            # group's table topics.
            group_id=None if at_once and view is None else feed.topic,
            idle_seconds=_PATIENT,
            checkpoint_seconds=0.25,
            **options,
        )
        callbacks = {name: one.take for name, one in windows.items()}
        runs.append(_alerting(job, [alerts, *to]))
        return start_together(streams, options_of(streams, shared, callbacks or None, runs[-1]))

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
    # Up to the end of the topic, where open windows are emitted in their current state.
    ended = started(until="latest").wait()
    accounts = [summary.account for summary in ended.values()]
    tables = {}
    for name, stream in streams.items():
        table = windows[name].table(schema_of(stream)) if windows else ended[name].table.to_arrow()
        tables[name] = table.replace_schema_metadata(schema_of(stream).metadata)
    return Outcome(accounts, alerts.alerts, job.shown(tables), late_readings())


@dataclass(frozen=True)
class _Consumers:
    """See `apps.jobs.job.Going`."""

    run: RunTogether
    alerting: Mapping[str, Sequence[Alerting]]

    def account(self) -> Account:
        """See `Going`."""
        return least([summary.account for summary in self.run.summaries().values()])

    def wait(self) -> None:
        """See `Going`."""
        while self.run.running:
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> Account:
        """See `Going`."""
        self.run.stop(_STOP_SECONDS)
        return least([summary.account for summary in self.run.wait().values()])

    def late_readings(self) -> LateReadings:
        """See `Going`."""
        return _late_readings(self.alerting)


def live(live_job: Live) -> Going:
    """Start an app's streams on a topic; they run until stopped, and a later run resumes there."""
    job, streams = live_job.job, live_job.job.streams(live_job.feed)
    options = RunOptions(
        group_id=live_job.group,
        workers=live_job.workers,
        metrics=live_job.metrics,
        truncated=live_job.truncated,
        table=live_job.table,
        keep=live_job.keep,
    )
    alerting = _alerting(job, live_job.to, live_job.stale)
    # Closed windows are stored for a week, for the page and for clients of a query server.
    sinks: dict[str, Sequence[Sink]]
    sinks = {name: [SketchesToKafka(), *alerting.get(name, ())] for name in streams}
    return _Consumers(start_together(streams, options_of(streams, options, None, sinks)), alerting)


def _alerting(job: Job, to: Sequence[Outlet], stale: str | None = None) -> dict[str, Sequence[Alerting]]:
    """Return the rules of each part that has rules. The first part also reports a lack of messages."""
    sinks: dict[str, Sequence[Alerting]] = {}
    for part in job.parts:
        alerting = job.alerting(part, to, None if sinks else stale)
        if alerting is not None:
            sinks[part.name] = [alerting]
    return sinks


def _late_readings(alerting: Mapping[str, Sequence[Alerting]]) -> LateReadings:
    return sum((one.late_readings() for some in alerting.values() for one in some), LateReadings())


class _Windows:
    """A part's windows; a window that is emitted again replaces the earlier one."""

    def __init__(self, seen: Callable[[pa.Table], None] | None) -> None:
        self._seen = seen
        self._tables: dict[Any, pa.Table] = {}

    def take(self, window: SketchTable) -> None:
        """Receive a window from a run."""
        table = window.to_arrow()
        first = table.column(END)[0].as_py(), table.column(START)[0].as_py()
        self._tables[first] = table
        if self._seen is not None:
            self._seen(table)

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return all windows in a table with this schema."""
        tables = [self._tables[key].replace_schema_metadata(schema.metadata) for key in sorted(self._tables)]
        return pa.concat_tables(tables) if tables else schema.empty_table()
