"""Which topics a source reads: some by name, or all that match a pattern, including future ones.

As in librdkafka, a topic that begins with ``^`` is a regular expression (here Python's), which only has to
match the beginning of a name. Patterns exclude topics that would make a stream read its own output (dead
letters, table topics, positions of sinks) and Kafka's internal topics.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NOT_BY_PATTERN = re.compile(
    r"__.*|.*\.(dead-letters|late-messages|batch-positions)|.*\.(table|windows)\.[0-9a-f]{16}"
)


def topic_names(topic: str | Sequence[str]) -> tuple[str, ...]:
    """The names and patterns of one or several topics.

    Raises `TypeError` and `ValueError` for values that can't be either.

    >>> topic_names("posts"), topic_names(["posts", r"^metrics\\."])
    (('posts',), ('posts', '^metrics\\\\.'))
    """
    names = (topic,) if isinstance(topic, str) else topic
    if not isinstance(names, Sequence) or not names or not all(isinstance(one, str) and one for one in names):
        raise TypeError(
            "topic must be a name, a list of names, or a pattern such as "
            rf'"^metrics\\.", got {topic!r}'
        )
    for one in names:
        if is_pattern(one):
            try:
                re.compile(one)
            except re.error as error:
                raise ValueError(f"the topic pattern {one!r} is not a regular expression: {error}") from None
        elif not _NAME.fullmatch(one):
            raise ValueError(
                f"the topic {one!r} can't be a topic's name (letters, digits, dots, dashes and underscores); "
                'a pattern begins with "^"'
            )
    if len(set(names)) < len(names):
        raise ValueError(f"a topic is named twice in {', '.join(names)}; name it once")
    return tuple(names)


def is_pattern(name: str) -> bool:
    """Whether `name` is a pattern."""
    return name.startswith("^")


def matches(names: Collection[str], topic: str) -> bool:
    """Whether a topic matches these names and patterns.

    >>> pattern = [r"^metrics\\..*"]
    >>> [matches(pattern, topic) for topic in ("metrics.cpu", "metrics.cpu.dead-letters", "posts")]
    [True, False, False]
    """
    patterns = [one for one in names if is_pattern(one)]
    by_pattern = any(re.match(pattern, topic) for pattern in patterns)
    return topic in names or (by_pattern and not _NOT_BY_PATTERN.fullmatch(topic))
