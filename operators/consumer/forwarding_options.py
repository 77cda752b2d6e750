"""Options of a run that forwards its rows, and the topic that it writes to."""

from __future__ import annotations

from collections.abc import Mapping

from ..definition.stream import Stream
from ..kafka.topics import Admin, ensure_topic
from .options import RunOptions

_OF_WINDOWS = ("on_window", "sinks", "emit", "state_bytes", "at_limit", "table")


def check_forwarding(stream: Stream, options: RunOptions) -> None:
    """Raise `ValueError` for options that need windows, and for an unsupported delivery guarantee."""
    if stream.sending is None:
        return
    usual = RunOptions()
    for name in _OF_WINDOWS:
        if getattr(options, name) != getattr(usual, name):
            raise ValueError(
                f"{name}: the stream sends its rows to {stream.sending.topic!r}, so it has "
                "no windows; leave it out"
            )
    if options.delivery == "effectively_once":
        raise ValueError(
            'delivery="effectively_once": it drops duplicates when the log is merged, but rows '
            f'sent to {stream.sending.topic!r} are read by any consumer; use "exactly_once", '
            'or "at_least_once" and drop duplicates by the header "source"'
        )
    if stream.sending.topic in (options.dead_letters, options.late):
        raise ValueError(
            f"rows_to_kafka: {stream.sending.topic!r} is also the topic of dead letters or late messages"
        )


def forwarding_partitions(stream: Stream, client: Admin, inputs: Mapping[str, int]) -> int:
    """The number of partitions of the topic for rows, which is created if missing; 0 without one."""
    if stream.sending is None:
        return 0
    return ensure_topic(client, stream.sending.topic, max(inputs.values()), {})
