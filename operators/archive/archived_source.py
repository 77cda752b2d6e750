"""What a stream reads from an archive, on either engine."""

from __future__ import annotations

from ..definition.sources import KafkaSource
from ..definition.stream import Stream
from ..definition.topic_patterns import matches
from .chain import topics_of
from .recording import Recording
from .segment import ArchiveError
from .store import store_of


def recordings_of(source: KafkaSource) -> list[Recording]:
    """The topics that a source reads from its archive. Raises `ArchiveError` if there are none."""
    assert source.archive is not None
    known = topics_of(store_of(source.archive))
    topics = [topic for topic in known if matches(source.topics, topic)]
    if not topics:
        raise ArchiveError(
            f"{source.archive} holds the topics {', '.join(sorted(known))}, but none that the stream reads: "
            f"{source.topic}"
        )
    return [Recording.open(source.archive, topic) for topic in topics]


def check_over_archive(stream: Stream) -> None:
    """Raise `TypeError` for a stream that needs a broker in addition to its archive."""
    if stream.sending is not None or stream.reading.tables:
        what = "sends its rows to a topic" if stream.sending is not None else "is joined with a table"
        raise TypeError(
            f"this stream {what}, and reads an archive; send the archive to a topic by `streamgauge replay`, "
            "and run the stream there"
        )
