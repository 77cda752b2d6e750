"""Each app with the messages of its own example, as its page shows them some minutes after what happens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.page.served_app import ServedApp, tables_of
from streamgauge.apps.registry import app_of
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.testing import StreamTester
from streamgauge.operators.watermarks.idle_timer import Rest
from streamgauge.queries.views.live import LiveTable

from ...queries.logs import Fed, messages

NOW = datetime(2026, 1, 1, 3, tzinfo=UTC)
END = NOW + timedelta(seconds=100)
SILENT = 90
"""Seconds without a message after them, so that all windows but the days' are closed."""


def exampled(name: str) -> tuple[ServedApp, dict[str, LiveTable]]:
    """The app of that name, and the table of each of its parts; its alerts are those of its rules."""
    app = app_of(name)
    assert app.example is not None
    job = Job.of(app, app.example.format, app.example.settings)
    end_ms = END.timestamp() * 1000
    made = app.example.messages(7, int(NOW.timestamp() * 1000))
    sent = list(takewhile(lambda message: (message.sent_ms or 0) < end_ms, made))
    values, keys = [one.value for one in sent], [one.key for one in sent]
    stamps = [one.sent_ms or 0 for one in sent]
    all_of_it = Messages.of(values, keys, topic="posts", partition=0, first_offset=0, timestamps=stamps)
    names = tables_of(app, name)
    served = ServedApp.of_run(app, names, app.example.settings, format=app.example.format)
    assert served.alerts is not None
    tables = {}
    for part, stream in zip(job.parts, job.streams(Feed("posts", "none")).values()):
        fed = Fed(stream=stream, inputs=1)
        fed.table.name = names[part.name]
        fed.feed(messages([_delta(stream, all_of_it)]))
        tables[fed.table.name] = fed.table
        if alerting := job.alerting(part, [served.alerts]):
            times = [datetime.fromtimestamp(at / 1000, UTC) for at in stamps]
            tester = StreamTester(stream, start=END, sinks=[alerting])
            tester.feed_messages(values, keys, timestamps=times)
            tester.advance(SILENT)
    return served, tables


def _delta(stream: Stream, given: Messages) -> object:
    progress = PartitionState(stream, "posts", 0, 0, clock=END.timestamp)
    intake = PartitionBuffer(Remarks("posts", {}), keeps_late=False)
    intake.add_partition(progress, [])
    intake.sketch(stream.reading.kafka_source, given)
    progress.rest = Rest(SILENT * 1_000_000, 5_000_000, int((END.timestamp() + SILENT) * 1e6))
    return progress.delta()
