"""Running a stream over an archive in place of brokers, with the worker's and merger's code, in this process.

The clock is the recording's: it shows the time at which the latest message read was sent. So rules that
depend on the passing of time, and the limit on times in the future, behave as they did live. Each partition's
rows are processed in order, and partitions by the times of their messages; windows close when all partitions
are past them, and the last ones at the end, as with ``until="latest"``.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import fields
from datetime import UTC, datetime

from ..consumer.options import OnWindow, RunOptions
from ..consumer.summary import Summary
from ..definition.stream import Stream
from ..sinks.sink import ClosedWindow, Origin, Sink, WritingSink, topics_of
from ..table.sketch_table import SketchTable
from ..testing import StreamTester
from .archived_source import check_over_archive, recordings_of
from .recording import Recording, in_time

log = logging.getLogger("streamgauge.archive")

_TAKEN = (
    *("on_window", "sinks", "table", "keep", "until", "workers", "keep_windows", "idle_seconds"),
    "connect_seconds",
)
"""The options of a run that apply, or have no effect, without a broker."""


def run_archive(stream: Stream, options: RunOptions) -> Summary:
    """Run a stream over the archive that it reads, and return its result.

    Raises `ValueError` for options and sinks that need a broker, `TypeError` for streams that do, and
    `ArchiveError` for an archive that is damaged or contains none of the stream's topics.
    """
    _check(stream, options)
    opened = [one for source in stream.reading.kafka_sources for one in recordings_of(source)]
    recordings = list({one.topic: one for one in opened}.values())
    tester = _tester(stream, options, recordings)
    begun, refused, example = time.monotonic(), Counter[str](), ""
    for slices in in_time(recordings):
        for messages, _ in slices:
            tester.feed_batch(messages)
        for row in tester.refused:
            refused[row.topic] += 1
            example = example or f"{row.topic}[{row.partition}] at {row.offset}: {row.reason}"
        tester.refused.clear()
        tester.late.clear()  # they are counted by now
    tester.finish()
    account = tester.account
    remarks = []
    if refused:
        remarks.append(f"{sum(refused.values()):,} messages can't be counted; the first is {example}")
        log.warning("%s", remarks[0])
    seconds = max(time.monotonic() - begun, 1e-9)
    return Summary(
        account=account,
        table=tester.tables(),
        seconds=seconds,
        messages_per_second=account.read / seconds,
        lag=0,
        remarks=tuple(remarks),
    )


def _check(stream: Stream, options: RunOptions) -> None:
    default = RunOptions()
    for one in fields(RunOptions):
        if one.name not in _TAKEN and getattr(options, one.name) != getattr(default, one.name):
            raise ValueError(
                f"{one.name} is for runs on brokers, and this stream reads an archive; leave it out, or send "
                "the archive to a topic by `streamgauge replay` and run the stream there"
            )
    check_over_archive(stream)
    if sent := topics_of(options.all_sinks, Origin.of(stream, "archive", named=True)):
        raise ValueError(
            f"a sink sends to the topic {sent[0].name!r}, and a stream that reads an archive has no brokers; "
            "use sinks that write elsewhere, or send the archive to a topic by `streamgauge replay`"
        )


def _tester(stream: Stream, options: RunOptions, recordings: list[Recording]) -> StreamTester:
    times = [one.earliest_ms for r in recordings for chain in r.partitions.values() for one in chain]
    start = min((ms for ms in times if ms is not None), default=0)
    sinks: list[Sink] = options.all_sinks
    if options.on_window is not None:
        sinks.append(_Callback(options.on_window))
    return StreamTester(
        stream,
        partitions=max((r.n_partitions for r in recordings), default=1),
        start=datetime.fromtimestamp(start / 1e3, UTC),
        sinks=sinks,
    )


class _Callback(WritingSink):
    """A run's `on_window` as a sink."""

    def __init__(self, on_window: OnWindow) -> None:
        self._on_window = on_window

    def begin(self, origin: Origin) -> None:
        """See `WritingSink.begin`."""

    def write(self, window: ClosedWindow) -> None:
        """See `WritingSink.write`."""
        table = SketchTable.of_groups(window.groups)
        self._on_window(table)
        table.drop_answers()
