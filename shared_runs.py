"""The public `run_together` and `start_together`: streams in one process that share one consumer.

Like `stream`, this stands above the definition and the engine, and only delegates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from .operators.consumer.options import OnWindow, RunOptions, SharedKeywords, with_run_options
from .operators.definition.stream import Stream

if TYPE_CHECKING:
    from .operators.consumer.shared_run import RunTogether
    from .operators.consumer.summary import Summary
    from .operators.sinks.sink import Sink


@with_run_options
def run_together(
    streams: Mapping[str, Stream],
    *,
    on_window: Mapping[str, OnWindow] | None = None,
    sinks: Mapping[str, Sequence[Sink]] | None = None,
    progress: bool = True,
    **options: Unpack[SharedKeywords],
) -> dict[str, Summary]:
    """Run several streams until their end, as `Stream.run` does for one, and return their results by name.

    Options are those of `start_together`. In a terminal each stream has a progress line, unless
    ``progress=False``. Raises what `start_together` and `RunTogether.wait` raise.

        english, others = posts.branch(pl.col("lang") == "en")
        found = run_together({"english": english.tumbling("1m").agg(users=distinct("user")),
                              "others": others.tumbling("1h").agg(posts=count())}, until="latest")
        found["english"].windows()

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> posts = sg.Stream.from_kafka("posts", value=sg.json({"user": pl.String})).tumbling("1m")
    >>> sg.run_together({"all": posts.agg(n=sg.count())}, on_window={"every": print})
    Traceback (most recent call last):
    ValueError: on_window names 'every', which is not a stream; there are 'all'
    """
    from .operators.consumer import runner
    from .operators.consumer.shared_run import options_of

    plan = options_of(streams, RunOptions(**options), on_window, sinks)
    return runner.run_together(streams, plan, progress)


@with_run_options
def start_together(
    streams: Mapping[str, Stream],
    *,
    on_window: Mapping[str, OnWindow] | None = None,
    sinks: Mapping[str, Sequence[Sink]] | None = None,
    **options: Unpack[SharedKeywords],
) -> RunTogether:
    """Start several streams that share one consumer, and return the running streams immediately.

        run = start_together({"english": english, "others": others}, group_id="posts", workers=2,
                             on_window={"english": show})
        run["english"].table().answers()

    `streams` maps names of your choice to streams, most often branches of one stream. They share one
    membership in the group and one reader; a message is decoded once for all streams that use the same
    decoder, and a checkpoint is one transaction for all. Each has its own windows, summary and table topic,
    like a group ``<group_id>.<name>``: ``streamgauge serve --group posts.english`` serves it. Two streams
    that join topics must join the same two topics, or have none in common.

    `on_window` and `sinks` are set for each stream by name; all other options apply to all streams
    (`operators.consumer.options.RunOptions`), and the windows of all share `state_bytes`. A group can only be
    resumed with the same streams: a changed, additional or missing stream is refused by name. A stream that
    fails ends all, and the error names it. The delivery is ``"exactly_once"``.

    Raises what `Stream.start` raises, with the stream's name, and `ValueError` for streams that can't be read
    together:

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> near, far = (
    ...     sg.Stream.from_kafka("posts", value=sg.json({"user": pl.String}), bootstrap_servers=at)
    ...     .tumbling("1m").agg(posts=sg.count()) for at in ("near:9092", "far:9092")
    ... )
    >>> sg.start_together({"near": near, "far": far})
    Traceback (most recent call last):
    ValueError: the streams 'near' and 'far' are read from different brokers or with different settings, ...
    """
    from .operators.consumer import runner
    from .operators.consumer.shared_run import options_of

    plan = options_of(streams, RunOptions(**options), on_window, sinks)
    return runner.start_together(streams, plan)
