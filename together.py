"""What `from streamgauge import run_together` gives: streams in one process that share one reading.

As `stream` does, this stands above the definition and the engine, and only hands on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from .operators.definition.stream import Stream

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from .operators.consumer.options import DeliveryName, OnWindow
    from .operators.consumer.summary import Summary
    from .operators.consumer.together import RunTogether
    from .operators.sinks.sink import Sink


def run_together(
    streams: Mapping[str, Stream],
    *,
    delivery: DeliveryName = "exactly_once",
    until: Literal["latest"] | None = None,
    on_window: Mapping[str, OnWindow] | None = None,
    workers: int = 1,
    group_id: str | None = None,
    start: Literal["earliest", "latest"] = "earliest",
    table_partitions: int = 1,
    dead_letters: str | None = "",
    late: str | None = None,
    emit: Literal["close", "checkpoint", "both"] = "close",
    state_bytes: int | None = None,
    at_limit: Literal["spill", "refuse"] = "spill",
    checkpoint_seconds: float = 1.0,
    idle_seconds: float = 5.0,
    metrics: str | int | None = None,
    registry: CollectorRegistry | None = None,
    keep_windows: int = 1_000,
    sinks: Mapping[str, Sequence[Sink]] | None = None,
    progress: bool = True,
) -> dict[str, Summary]:
    """Run several streams until their end, as `Stream.run` runs one, and give what came of each by its name.

    Options are those of `start_together`. In a terminal a line for each stream says meanwhile how it is
    doing; ``progress=False`` leaves them out. Raises what `start_together` and `RunTogether.wait` raise.

        english, others = posts.branch(pl.col("lang") == "en")
        found = run_together({"english": english.tumbling("1m").agg(users=distinct("user")),
                              "others": others.tumbling("1h").agg(posts=count())}, until="latest")
        found["english"].windows()

    >>> import polars as pl
    >>> from streamgauge import Stream, count, json
    >>> posts = Stream.from_kafka("posts", value=json({"user": pl.String})).tumbling("1m").agg(n=count())
    >>> run_together({"all": posts}, on_window={"every": print})
    Traceback (most recent call last):
    ValueError: on_window names 'every', which is not a stream; there are 'all'
    """
    from .operators.consumer import runner
    from .operators.consumer.options import RunOptions
    from .operators.consumer.together import options_of

    options = RunOptions(
        delivery=delivery,
        until=until,
        workers=workers,
        group_id=group_id,
        start=start,
        table_partitions=table_partitions,
        dead_letters=dead_letters,
        late=late,
        emit=emit,
        state_bytes=state_bytes,
        at_limit=at_limit,
        checkpoint_seconds=checkpoint_seconds,
        idle_seconds=idle_seconds,
        metrics=metrics,
        registry=registry,
        keep_windows=keep_windows,
    )
    return runner.run_together(streams, options_of(streams, options, on_window, sinks), progress)


def start_together(
    streams: Mapping[str, Stream],
    *,
    delivery: DeliveryName = "exactly_once",
    until: Literal["latest"] | None = None,
    on_window: Mapping[str, OnWindow] | None = None,
    workers: int = 1,
    group_id: str | None = None,
    start: Literal["earliest", "latest"] = "earliest",
    table_partitions: int = 1,
    dead_letters: str | None = "",
    late: str | None = None,
    emit: Literal["close", "checkpoint", "both"] = "close",
    state_bytes: int | None = None,
    at_limit: Literal["spill", "refuse"] = "spill",
    checkpoint_seconds: float = 1.0,
    idle_seconds: float = 5.0,
    metrics: str | int | None = None,
    registry: CollectorRegistry | None = None,
    keep_windows: int = 1_000,
    sinks: Mapping[str, Sequence[Sink]] | None = None,
) -> RunTogether:
    """Start several streams that share one reading, and come back at once with all of them in hand.

        run = start_together({"english": english, "others": others}, group_id="posts", workers=2,
                             on_window={"english": show})
        query(run["english"].table())

    `streams` are by names of your choice; most often they are branches of one stream. They have one
    membership in the group and one reader; a message is decoded once for all streams whose sources read it
    alike, and a checkpoint is one transaction for all. Each has windows, a summary and a table topic of its
    own, as the group ``<group_id>.<name>`` would have: ``streamgauge serve --group posts.english`` asks it.
    Two of them that join topics join the same two, or none of each other's.

    `on_window` and `sinks` are of one stream and given by its name; all other options are of all
    (`operators.consumer.options.RunOptions`), and the windows of all share `state_bytes`.

    A group goes on with the same streams: a changed one is refused by name, and so is one more or one less. A
    stream that fails ends all, and its error says which it was. Their delivery is ``"exactly_once"``.

    Raises what `Stream.start` raises, with the stream's name, and `ValueError` for streams that no reader can
    read together:

    >>> import polars as pl
    >>> from streamgauge import Stream, count, json
    >>> near, far = (
    ...     Stream.from_kafka("posts", value=json({"user": pl.String}), bootstrap_servers=at)
    ...     .tumbling("1m").agg(posts=count()) for at in ("near:9092", "far:9092")
    ... )
    >>> start_together({"near": near, "far": far})
    Traceback (most recent call last):
    ValueError: the streams 'near' and 'far' are read from other brokers or with other settings, and ...
    """
    from .operators.consumer import runner
    from .operators.consumer.options import RunOptions
    from .operators.consumer.together import options_of

    options = RunOptions(
        delivery=delivery,
        until=until,
        workers=workers,
        group_id=group_id,
        start=start,
        table_partitions=table_partitions,
        dead_letters=dead_letters,
        late=late,
        emit=emit,
        state_bytes=state_bytes,
        at_limit=at_limit,
        checkpoint_seconds=checkpoint_seconds,
        idle_seconds=idle_seconds,
        metrics=metrics,
        registry=registry,
        keep_windows=keep_windows,
    )
    return runner.start_together(streams, options_of(streams, options, on_window, sinks))
