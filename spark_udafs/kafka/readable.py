"""What Spark's source can't do of a stream is refused before the first batch, with what to do instead."""

from __future__ import annotations

from ...operators.definition.stream import Stream
from ...operators.definition.topics import is_pattern
from ...operators.definition.windows import Tumbling


def check_sketched(stream: Stream) -> None:
    """Raise `ValueError` for a stream that sends its rows on instead of sketching them."""
    if stream.sending is not None:
        raise ValueError(
            f"on_spark: the stream sends its rows on to {stream.sending.topic!r}, which the consumer alone "
            'does; run it by .run(...), or read the topic in Spark by spark.readStream.format("streamgauge-'
            'kafka") and write the rows by writeStream.format("kafka")'
        )


def check_rows(stream: Stream) -> None:
    """Raise `ValueError` for a stream whose rows, given one by one, would not be those that count."""
    if stream.looks_back:
        raise ValueError(
            'emit "rows": the stream has deduplicate(), which counts rows once where they are sketched; ask '
            "for its table by on_spark, or leave deduplicate() out and use Spark's own "
            "dropDuplicatesWithinWatermark"
        )


def check_readable(stream: Stream) -> None:
    """Raise `ValueError` for a stream of several topics, or one that needs what no task keeps.

    That is rows of another stream, tables, and windows that are not side by side, which the consumer alone
    merges. Raises `TypeError` for a stream of frames.
    """
    if stream.joined is not None:
        raise ValueError(
            f"on_spark: the stream joins those of {stream.reads()}, which Spark's tasks don't keep rows of; "
            "run it by .run(...), or join DataFrames with watermarks in Spark and give sketch() the result"
        )
    if len(stream.kafka_sources) > 1 or len(stream.kafka_source.topics) > 1:
        raise ValueError(
            f"on_spark: the stream reads {' and '.join(s.topic for s in stream.kafka_sources)}, and Spark's "
            "source reads one topic; run it by .run(...), or give each topic a stream and a query of its own"
        )
    if is_pattern(stream.kafka_source.topic):
        raise ValueError(
            f"on_spark: the stream reads all topics that {stream.kafka_source.topic!r} matches, and Spark's "
            "source reads one; run it by .run(...), or name the topic"
        )
    if stream.tables:
        raise ValueError(
            f"on_spark: the stream is joined with the table {stream.tables[0].topic!r}, which Spark's tasks "
            "don't keep; run it by .run(...), or join DataFrames in Spark and give sketch() the result"
        )
    if stream.window is not None and not isinstance(stream.window, Tumbling):
        told = " ".join(stream.window.definition().values())
        raise ValueError(
            f"on_spark: the stream has the windows {told}, which only the consumer merges; run it by "
            ".run(...), or sketch(df) with Spark's own sliding window(...)"
        )
