"""What `from streamgauge import run_together` gives: streams in one process that share one reading.

As `stream` does, this stands above the definition and the engine, and only hands on.
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
    """Run several streams until their end, as `Stream.run` runs one, and give what came of each by its name.

    Options are those of `start_together`. In a terminal a line for each stream says meanwhile how it is
    doing; ``progress=False`` leaves them out. Raises what `start_together` and `RunTogether.wait` raise.

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
    """Start several streams that share one reading, and come back at once with all of them in hand.

        run = start_together({"english": english, "others": others}, group_id="posts", workers=2,
                             on_window={"english": show})
        run["english"].table().answers()

    `streams` are by names of your choice; most often they are branches of one stream. They have one
    membership in the group and one reader; a message is decoded once for all streams whose sources read it
    alike, and a checkpoint is one transaction for all. Each has windows, a summary and a table topic of its
    own, as the group ``<group_id>.<name>`` would have: ``streamgauge serve --group posts.english`` serves it.
    Two of them that join topics join the same two, or none of each other's.

    `on_window` and `sinks` are of one stream and given by its name; all other options are of all
    (`operators.consumer.options.RunOptions`), and the windows of all share `state_bytes`.

    A group goes on with the same streams: a changed one is refused by name, and so is one more or one less. A
    stream that fails ends all, and its error says which it was. Their delivery is ``"exactly_once"``.

    Raises what `Stream.start` raises, with the stream's name, and `ValueError` for streams that no reader can
    read together:

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> near, far = (
    ...     sg.Stream.from_kafka("posts", value=sg.json({"user": pl.String}), bootstrap_servers=at)
    ...     .tumbling("1m").agg(posts=sg.count()) for at in ("near:9092", "far:9092")
    ... )
    >>> sg.start_together({"near": near, "far": far})
    Traceback (most recent call last):
    ValueError: the streams 'near' and 'far' are read from other brokers or with other settings, and ...
    """
    from .operators.consumer import runner
    from .operators.consumer.shared_run import options_of

    plan = options_of(streams, RunOptions(**options), on_window, sinks)
    return runner.start_together(streams, plan)
