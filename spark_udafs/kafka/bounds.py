"""Where a read begins and ends: by name, offset or timestamp, with the options of Spark's own source.

If several options are set, the first of ``…Timestamp``, ``…OffsetsByTimestamp`` and ``…Offsets`` wins, as in
Spark (its Kafka integration guide).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...operators.kafka.source import TopicPartition

ByPartition = Mapping[str, Mapping[str, int]]
"""A number for each partition, by topic."""


@dataclass(frozen=True)
class Since:
    """The first message at or after a timestamp (milliseconds), one for all partitions or one for each.

    `option` is the name of the option. If no message is that late, `or_end` selects the end instead of
    failing.
    """

    option: str
    timestamp_ms: int | ByPartition
    or_end: bool


Place = Literal["earliest", "latest"] | ByPartition | Since
"""Where to begin or end: a word for all, an offset for each partition (−2 earliest, −1 latest), or a time."""


def starting(given: Mapping[str, str]) -> Place | None:
    """Return where to begin; None if no option is set. `given` has the options by lower-case names.

    Raises `ValueError` that names the option.

    >>> starting({"startingtimestamp": "1700000000000", "startingoffsets": "earliest"})
    Since(option='startingTimestamp', timestamp_ms=1700000000000, or_end=False)
    """
    strategy = given.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise ValueError(f"startingOffsetsByTimestampStrategy must be error or latest, got {strategy!r}")
    return _first(given, "starting", strategy == "latest")


def ending(given: Mapping[str, str]) -> Place | None:
    """Return where to end; None if no option is set. Raises `ValueError` that names the option."""
    return _first(given, "ending", or_end=True)


def check_bounded(begin: Place | None, end: Place | None) -> None:
    """Raise `ValueError` for places where ``spark.read`` can't begin or end, as in Spark's own source."""
    for option, place, word, number in (
        ("startingOffsets", begin, "latest", -1),
        ("endingOffsets", end, "earliest", -2),
    ):
        if place == word:
            raise ValueError(f'{option} "{word}" would read nothing in spark.read')
        if isinstance(place, Mapping):
            at = [f"{topic}-{p}" for (topic, p), offset in by_place(place).items() if offset == number]
            if at:
                raise ValueError(
                    f"{option} gives {number} ({word}) for {', '.join(at)}; spark.read would read nothing"
                )


def check_order(begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
    """Raise `ValueError` for a bounded read that would end before it begins.

    >>> check_order({("posts", 0): 3}, {("posts", 0): 3})
    """
    for (topic, p), begin in begins.items():
        if begin > ends[topic, p]:
            raise ValueError(
                f"{topic}-{p} would be read from offset {begin} to {ends[topic, p]}: the end comes first. "
                "Correct the options that begin with starting and ending"
            )


def by_place(offsets: ByPartition) -> dict[TopicPartition, int]:
    """Convert to a mapping by topic and partition.

    >>> by_place({"posts": {"0": 23}})
    {('posts', 0): 23}
    """
    return {(topic, int(p)): number for topic, ps in offsets.items() for p, number in ps.items()}


def _first(given: Mapping[str, str], which: str, or_end: bool) -> Place | None:
    if (text := given.get(f"{which}timestamp")) is not None:
        option = f"{which}Timestamp"
        if not text.strip().isdecimal():
            raise ValueError(f"{option} must be milliseconds since 1970, got {text!r}")
        return Since(option, int(text), or_end)
    if (text := given.get(f"{which}offsetsbytimestamp")) is not None:
        option = f"{which}OffsetsByTimestamp"
        return Since(option, _numbers(option, text, 0, 'like {"posts":{"0":1700000000000}}'), or_end)
    text = given.get(f"{which}offsets")
    if text is None:
        return None
    if text.lower() in ("earliest", "latest"):
        return text.lower()  # type: ignore[return-value]
    return _numbers(f"{which}Offsets", text, -2, 'earliest, latest or like {"posts":{"0":23,"1":-2}}')


def _numbers(option: str, text: str, least: int, like: str) -> ByPartition:
    try:
        parsed = json.loads(text)
        numbers = {str(t): {str(int(p)): int(n) for p, n in ps.items()} for t, ps in parsed.items()}
        if min((n for ps in numbers.values() for n in ps.values()), default=least) < least:
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f"{option} must be {like}, got {text!r}") from None
    return numbers
