"""Silences: which alerts are suppressed, and until when."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from .matchers import Matcher, match_all, parse_matchers

log = logging.getLogger("streamgauge.rules")


@dataclass(frozen=True)
class AlertSilence:
    """Silence alerts that match all matchers of `match`, from `since` (default: now) `until` a time.

    A matcher is ``LABEL="TEXT"``, ``LABEL!="TEXT"``, ``LABEL=~"PATTERN"`` or ``LABEL!~"PATTERN"`` for the
    labels `app`, `rule`, `kind`, `key` and `state`, as in Alertmanager. An event that is still active when
    the silence ends is sent then. `why` is a note for later readers.

    Raises `ValueError` without a matcher, for an invalid one, and for times without a time zone.

    >>> from datetime import datetime, timezone
    >>> import streamgauge as sg
    >>> six = datetime(2026, 6, 1, 18, tzinfo=timezone.utc)
    >>> painters = sg.rules.AlertSilence(['key=~"hall.*"'], until=six)
    >>> painters.holds({"rule": "hot", "key": "hall-2"}, datetime(2026, 6, 1, 12, tzinfo=timezone.utc))
    True
    """

    match: Sequence[str]
    until: datetime
    since: datetime | None = None
    why: str = ""

    def __post_init__(self) -> None:
        if not self.matchers:
            raise ValueError('a silence needs a matcher; to silence all alerts write rule=~".*"')
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is None and name == "since":
                continue
            if not isinstance(moment, datetime) or moment.tzinfo is None:
                raise ValueError(
                    f"{name} must be a time with its zone, such as 2026-06-01T18:00:00Z, got {moment}"
                )

    @cached_property
    def matchers(self) -> tuple[Matcher, ...]:
        """The parsed matchers of `match`. Raises `ValueError` for an invalid one."""
        return parse_matchers(self.match, "match")

    def holds(self, labels: Mapping[str, str], now: datetime) -> bool:
        """Whether an alert with these labels is suppressed at a time."""
        begun = self.since is None or self.since <= now
        return begun and now < self.until and match_all(self.matchers, labels)

    def __str__(self) -> str:
        matchers = ", ".join(map(str, self.matchers))
        return f"the silence {{{matchers}}} until {self.until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


class SilenceFile:
    """The silences of a file, which is reread when it has changed, without restarting the run.

    `read` returns a file's silences. If a file can no longer be read, this is logged once, and its earlier
    silences remain in effect.
    """

    def __init__(self, path: Path, read: Callable[[Path], Sequence[AlertSilence]]) -> None:
        self._path, self._read = path, read
        self._version = self._state()
        self._silences = tuple(read(path))

    def __call__(self) -> Sequence[AlertSilence]:
        """The current silences."""
        version = self._state()
        if version != self._version:
            self._version = version
            try:
                self._silences = tuple(self._read(self._path))
            except (OSError, ValueError) as error:
                log.warning("the silences of %s can't be read and stay unchanged: %s", self._path, error)
        return self._silences

    def _state(self) -> tuple[int, int] | None:
        try:
            state = self._path.stat()
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size
