"""Closed windows as tables of sketches on a topic, for query servers and later merges.

A window is a message for each partition of the table topic that has groups in it, in the partition of the
same number, or several parts if it is too large for one (`kafka.chunked_records`). Headers, in decimal
digits or plain text:

| header | what |
|---|---|
| `kind` | ``window`` |
| `fingerprint` | the definition's fingerprint |
| `start`, `end` | of the window, in microseconds since 1970: the earliest and the latest, if it has several |
| `final` | 1 if it will not be sent again, 0 if rows may still follow |
| `sending`, `part` | of each part, if there are several |

The value is the table as an Arrow IPC stream, compressed by zstd (`table.schema.from_ipc` reads it). A later
message replaces the rows of earlier messages with the same window and keys. Messages of transactions that
were not committed must not be read: use ``isolation.level=read_committed``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..kafka.chunked_records import split_value
from ..kafka.outgoing_message import Outgoing
from ..table.schema import to_ipc
from ..windows.durations import Duration, microseconds
from .sink import ClosedWindow, Origin, SinkTopic

KIND = b"window"


def windows_topic(group_id: str, fingerprint: str) -> str:
    """The name of the topic of a stream's closed windows.

    >>> windows_topic("by-minute", "0123456789abcdef")
    'by-minute.windows.0123456789abcdef'
    """
    return f"{group_id}.windows.{fingerprint}"


@dataclass(frozen=True)
class SketchesToKafka:
    """Store the tables of closed windows on the topic ``<group>.windows.<fingerprint>``, each exactly once.

    ``streamgauge serve`` and the query server read it; `retention` is how long Kafka stores a window after it
    was acknowledged; it applies if the run creates the topic. It needs a run with a `group_id`.

    Raises `ValueError` for a retention that isn't a duration, and, when the run starts, without a `group_id`.

    >>> import streamgauge as sg
    >>> origin = Origin("by-minute", "0123456789abcdef", named=True, digest="")
    >>> sg.SketchesToKafka(retention="30d").topic(origin).config["retention.ms"]
    '2592000000'
    """

    retention: Duration = "7d"

    def __post_init__(self) -> None:
        if microseconds(self.retention) < 1_000:
            raise ValueError(f"retention must be a duration such as '7d', got {self.retention!r}")

    def topic(self, origin: Origin) -> SinkTopic:
        """See `MessageSink`."""
        if not origin.named:
            raise ValueError(
                "SketchesToKafka() needs a run with a group_id: without one, a run leaves no topic behind; "
                'write run(group_id="by-minute", sinks=[SketchesToKafka()])'
            )
        config = {
            "cleanup.policy": "delete",
            "retention.ms": str(microseconds(self.retention) // 1_000),
            "retention.bytes": "-1",
        }
        return SinkTopic(windows_topic(origin.group_id, origin.fingerprint), 0, config)

    def messages(self, window: ClosedWindow) -> Iterator[Outgoing]:
        """See `MessageSink`. Sessions and count windows are sent once they are final."""
        if window.may_grow:
            return
        origin = window.origin
        topic = windows_topic(origin.group_id, origin.fingerprint)
        headers = [
            ("kind", KIND),
            ("fingerprint", origin.fingerprint.encode()),
            ("start", b"%d" % window.start_us),
            ("end", b"%d" % window.end_us),
            ("final", b"%d" % window.final),
        ]
        for value, part_headers in split_value(to_ipc(window.groups.table), headers):
            yield Outgoing(topic, window.partition, value, part_headers)
