"""Several streams in one process that share one consumer: their plans and their state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..definition.stream import Stream
from ..sinks.sink import Sink
from ..table.stored_files import stored_at
from ..watching.health import Health
from .group.committed import LARGEST, STREAM_NAME, largest_metadata
from .options import LEAST_STATE, OnWindow, RunOptions
from .summary import Summary
from .supervision.stream_results import StreamResults
from .supervision.supervisor import Supervisor

_ID = "x" * 22
"""The length of the topic ids that brokers assign."""
_LONGEST = 200
"""The longest group and stream name together for which the table topic's name still fits."""


class RunTogether(Supervisor):
    """Running streams that share one consumer: ``run["tags"]`` is one of them.

    Each has its own `table`, `summary`, `figures` and `health`, like a `Run`. `stop`, `wait`, `drain` and
    `scale` apply to all streams; iterating yields the names.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> schema = {"user": pl.String, "lang": pl.String, "at": pl.String}
    >>> value, broker = sg.json(schema), "localhost:9092"
    >>> posts = sg.Stream.from_kafka("posts", value=value, time="at", bootstrap_servers=broker)
    >>> english, others = posts.branch(pl.col("lang") == "en")
    >>> by_minute = english.tumbling("1m").agg(posts=sg.count())
    >>> by_hour = others.tumbling("1h").agg(posts=sg.count())
    >>> run = sg.start_together({"english": by_minute, "others": by_hour}, until="latest")
    >>> found = run.wait()
    >>> sum(summary.account.counted for summary in found.values()), list(run)
    (4, ['english', 'others'])
    """

    def __repr__(self) -> str:
        state = self._state()[0]
        counts = ", ".join(f"{name}: {own.account.read:,} read" for name, own in self._results.items())
        return f"RunTogether(in the group {self.plans.first.group_id!r}, {state}; {counts})"

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, name: str) -> StreamResults:
        if name not in self._results:
            raise KeyError(f"{name!r} is not a stream of this run; there are {_named(self._results)}")
        return self._results[name]

    def health(self) -> Health:
        """Whether all are healthy and ready; `why` gives the reason if one is not."""
        return self._whole_health()

    def summaries(self, interrupted: bool = False) -> dict[str, Summary]:
        """The results so far, by the streams' names."""
        return {name: own.summary(interrupted) for name, own in self._results.items()}

    def wait(self, seconds: float | None = None, interrupted: bool = False) -> dict[str, Summary]:
        """Wait for the end of all, and return the last summaries; unbounded runs end by `stop` or an error.

        A stream that fails ends all. Its error is raised, with a note that names the stream; `TimeoutError`
        after `seconds`, while they continue.
        """
        self._ended(seconds)
        return self.summaries(interrupted)

    def drain(self, seconds: float | None = None) -> dict[str, Summary]:
        """Stop reading, deliver everything, close all windows that may close (`Run.drain`), and wait.

        Raises what `wait` raises, and `TimeoutError` after `seconds`, while draining continues.
        """
        self._drained()
        return self.wait(seconds)


def options_of(
    streams: Mapping[str, Stream],
    options: RunOptions,
    on_window: Mapping[str, OnWindow] | None,
    sinks: Mapping[str, Sequence[Sink]] | None,
) -> dict[str, RunOptions]:
    """The options of each stream: `options` apply to all; `on_window` and `sinks` are by stream name.

    Raises `TypeError` and `ValueError` for streams and options that can't run together.
    """
    if not isinstance(streams, Mapping) or not streams:
        raise TypeError(f'streams must map names to streams, as in {{"english": english}}, got {streams!r}')
    for name, stream in streams.items():
        if not isinstance(name, str) or not re.fullmatch(STREAM_NAME, name):
            raise ValueError(
                f"streams: {name!r} is not a name of at most 40 letters, digits, dashes and underscores"
            )
        if not isinstance(stream, Stream):
            raise TypeError(f"streams: {name!r} is {stream!r}, not a stream")
    if options.delivery != "exactly_once":
        raise ValueError(
            f"delivery is {options.delivery!r}, and streams that run together are delivered exactly once: "
            "one transaction holds the deltas of all of them. For another delivery, run them separately"
        )
    if len(options.group_id or "") + max(map(len, streams)) >= _LONGEST:
        raise ValueError(
            f"group_id is {options.group_id!r}; with a stream's name it is at most {_LONGEST} characters long"
        )
    joined = [name for name, stream in streams.items() if stream.reading.joined is not None]
    if largest_metadata(dict.fromkeys(streams, (_ID, _ID)), joined) > LARGEST:
        raise ValueError(
            f"streams: {len(streams)} are too many to run together, since a broker stores at most "
            f"{LARGEST:,} bytes of metadata with an offset, and each stream's event time takes some; run "
            "some of them in another group"
        )
    callbacks, sent = _by_name("on_window", on_window, streams), _by_name("sinks", sinks, streams)
    if (limit := options.state_bytes) is not None:
        if limit // len(streams) < LEAST_STATE:
            raise ValueError(
                f"state_bytes is {limit!r}; {len(streams)} streams share it, and each needs {LEAST_STATE:,}"
            )
        options = replace(options, state_bytes=limit // len(streams))
    folder = None if options.table is None else stored_at(options.table)
    folders = {} if folder is None else {name: str(folder / name) for name in streams}
    return {
        name: replace(
            options,
            on_window=callbacks.get(name),
            sinks=sent.get(name, ()),
            table=folders.get(name),
            keep=options.keep if folders else None,
        )
        for name in streams
    }


def _by_name(option: str, given: Any, streams: Mapping[str, Stream]) -> Mapping[str, Any]:
    """An option with a value per stream. Raises `TypeError` and `ValueError` unless it is given by name."""
    if given is None:
        return {}
    first = next(iter(streams))
    if not isinstance(given, Mapping):
        raise TypeError(
            f'{option} must map names of streams to values, as in {{"{first}": ...}}, got {given!r}'
        )
    if unknown := [name for name in given if name not in streams]:
        raise ValueError(f"{option} names {unknown[0]!r}, which is not a stream; there are {_named(streams)}")
    return given


def _named(streams: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, streams))
