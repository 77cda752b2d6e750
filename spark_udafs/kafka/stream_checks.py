"""Refuse streams that Spark's source can't run, before the first batch and with an alternative."""

from __future__ import annotations

from ...operators.definition.stream import Stream
from ...operators.windows.kinds import KINDS
from ..merge.merge_plan import merged_by_spark


def check_sending(stream: Stream, streaming: bool, letters: str | None) -> None:
    """Raise `ValueError` if nothing would send the rows, and if their topic is also for dead letters."""
    if stream.sending is None:
        return
    topic = stream.sending.topic
    if not streaming:
        raise ValueError(
            f"on_spark: the stream sends its rows to {topic!r}, which needs a query whose checkpoint "
            "records the rows sent; leave streaming=False out and give the result to write(..., "
            "available_now=True)"
        )
    if topic == letters:
        raise ValueError(f"rows_to_kafka: {topic!r} is also the topic of dead letters; name another topic")


def check_rows(stream: Stream) -> None:
    """Raise `ValueError` for a stream whose rows, emitted one by one, would differ from the counted ones."""
    if stream.reading.joined is not None:
        raise ValueError(
            'emit "rows": the stream joins two streams, whose rows meet where they are sketched; ask for its '
            "table by on_spark, or join DataFrames with watermarks in Spark and give sketch() the result"
        )
    if (verb := stream.reading.looking_back) is not None:
        raise ValueError(
            f'emit "rows": the stream has {verb}(), which knows rows before where they are '
            f"sketched; ask for its table by on_spark, or leave {verb}() out and use Spark's "
            "own dropDuplicatesWithinWatermark or window functions"
        )


def check_readable(stream: Stream) -> None:
    """Raise `ValueError` for windows that aren't composed of panes, which only the consumer can merge.

    Raises `TypeError` for a stream of frames.
    """
    _ = stream.reading.kafka_sources  # raises for frames
    if stream.window is not None and stream.sending is None and not merged_by_spark(stream.window):
        words = " ".join(stream.window.definition().values())
        raise ValueError(
            f"on_spark: the stream has the windows {words}, which only the consumer merges; run it by "
            f".run(...), or ask for windows that Spark merges as well ({', '.join(_merged_by_spark())})"
        )


def _merged_by_spark() -> list[str]:
    return [name for name, kind in KINDS.items() if merged_by_spark(kind.window_class)]
