"""Selecting alerts: comparisons of their labels with texts and patterns, in Alertmanager's syntax."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from ...rendering.names import visible_key, visible_name
from ..alert import Alert

LABELS = ("app", "rule", "kind", "key", "state")
"""The labels of an alert."""

_MATCHER = re.compile(r'\s*(\w+)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^"\s][^"]*?))\s*', re.DOTALL)

Sign = Literal["=", "!=", "=~", "!~"]


def labels_of(alert: Alert) -> dict[str, str]:
    """An alert's labels, as text; empty labels are omitted.

    >>> alert = Alert("hot", "threshold", "fired", ("hall", 7), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    >>> labels_of(alert)
    {'rule': 'hot', 'kind': 'threshold', 'key': 'hall, 7', 'state': 'fired'}
    """
    labels = {
        "app": visible_name(alert.app) if alert.app else "",
        "rule": visible_name(alert.rule),
        "kind": visible_name(alert.kind),
        "key": visible_key(alert.plain_key),
        "state": alert.state,
    }
    return {name: value for name, value in labels.items() if value}


@dataclass(frozen=True)
class Matcher:
    """One comparison. A pattern must match the whole text; a missing label counts as empty text.

    >>> Matcher.parse('key=~"hall.*"').matches({"rule": "hot", "key": "hall-2"})
    True
    """

    label: str
    sign: Sign
    value: str

    @classmethod
    def parse(cls, text: str) -> Matcher:
        """Parse ``LABEL="TEXT"``, with ``!=``, ``=~`` or ``!~`` in place of ``=``.

        Raises `ValueError` for anything else, an unknown label, and an invalid pattern.
        """
        parts = _MATCHER.fullmatch(text) if isinstance(text, str) else None
        if parts is None:
            raise ValueError(f'a matcher must be like rule="hot" or key=~"hall.*", got {text!r}')
        label, sign, quoted, bare = parts.groups()
        if label not in LABELS:
            raise ValueError(f"{text}: the label must be one of {', '.join(LABELS)}, got {label!r}")
        value = bare if quoted is None else re.sub(r"\\([\"\\])", r"\1", quoted)
        if sign in ("=~", "!~"):
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"{text}: not a pattern: {error}") from None
        return cls(label, cast(Sign, sign), value)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether it matches an alert with these labels."""
        value = labels.get(self.label, "")
        if self.sign in ("=", "!="):
            return (value == self.value) == (self.sign == "=")
        return (re.fullmatch(self.value, value) is not None) == (self.sign == "=~")

    def __str__(self) -> str:
        quoted = self.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.label}{self.sign}"{quoted}"'


def parse_matchers(texts: Sequence[str], what: str) -> tuple[Matcher, ...]:
    """Parse several matchers. Raises `ValueError`; `what` names their owner in errors."""
    if isinstance(texts, str) or not isinstance(texts, list | tuple):
        raise ValueError(f"{what} must be a list of matchers, as in ['rule=\"hot\"'], got {texts!r}")
    try:
        return tuple(Matcher.parse(text) for text in texts)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def match_all(matchers: Sequence[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether all of them match an alert with these labels."""
    return all(matcher.matches(labels) for matcher in matchers)
