"""An alert: a rule's report that an event began, ended, or was retracted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ..formats.jsonable import jsonable
from ..rendering.names import visible_key

State = Literal["fired", "cleared", "unknown", "withdrawn"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Alert:
    """One report of a rule about one key; times are event times.

    `state` is ``"fired"`` when an event begins and ``"cleared"`` when it is over; ``"unknown"`` if the last
    reading is too old (`stale_after` of its rule). ``"withdrawn"`` retracts an earlier report that later
    rows contradict, or whose reading was cancelled. `kind` is the kind of event, `key` the values of the
    rule's keys, `at_us` its time (microseconds since 1970: the end of a window, or a reading's own time),
    `since_us` the beginning of the window. The true value lies between `lower` and `upper`, with the
    confidence that the aggregate states; all three are equal for exact values. `limit` is the limit that it
    was compared with, `rule` the rule's name, `why` the reason in words. `details` are further answers for
    programs, as plain JSON. `key_names` are the columns of the values in `key`, if known.
    """

    rule: str
    kind: str
    state: State
    key: tuple[Any, ...]
    at_us: int
    since_us: int
    value: float | None
    lower: float | None
    upper: float | None
    limit: float | None
    why: str
    app: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    key_names: tuple[str, ...] = field(default=(), compare=False)

    @property
    def id(self) -> str:
        """16 hexadecimal digits, the same for the same report anywhere and at any time, and unique to it."""
        identity = [self.app, self.rule, self.state, list(self.key), self.at_us]
        return hashlib.sha256(json.dumps(jsonable(identity)).encode()).hexdigest()[:16]

    @property
    def lasts(self) -> bool | None:
        """Whether its event is active after it; None if that isn't known.

        A withdrawn alert has the earlier state in its `details`.
        """
        if self.state == "withdrawn":
            return {"fired": False, "cleared": True}.get(self.details.get("withdrawn", "fired"))
        return {"fired": True, "cleared": False}.get(self.state)

    def withdrawal(self, why: str) -> Alert:
        """Return the alert that retracts this one.

        >>> import streamgauge as sg
        >>> figures = 31.0, 31.0, 31.0, 30.0
        >>> alert = sg.rules.Alert("hot", "threshold", "fired", ("a",), 60_000_000, 0, *figures, "…")
        >>> alert.withdrawal("its reading was cancelled").lasts
        False
        """
        return replace(self, state="withdrawn", why=why, details={**self.details, "withdrawn": self.state})

    @property
    def plain_key(self) -> Any:
        """The key for JSON: a single value as it is, several as a list, none as null."""
        parts = jsonable(list(self.key))
        return parts[0] if len(parts) == 1 else parts or None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON.

        >>> import streamgauge as sg
        >>> figures = 31.0, 31.0, 31.0, 30.0
        >>> alert = sg.rules.Alert("hot", "threshold", "fired", ("a",), 60_000_000, 0, *figures, "…")
        >>> alert.to_dict()["at"], alert.to_dict()["key"], alert.to_dict()["value"]
        ('1970-01-01T00:01:00+00:00', 'a', 31.0)
        """
        figures = {name: jsonable(getattr(self, name)) for name in ("value", "lower", "upper", "limit")}
        return {
            "id": self.id,
            "app": self.app,
            "kind": self.kind,
            "state": self.state,
            "key": self.plain_key,
            "at": moment(self.at_us),
            "since": moment(self.since_us),
            **figures,
            "rule": self.rule,
            "why": self.why,
            **({"details": jsonable(dict(self.details))} if self.details else {}),
            **({"key_names": list(self.key_names)} if self.key_names else {}),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Alert:
        """Read an alert from `to_dict`'s result."""
        key = fields["key"]
        parts = () if key is None else tuple(key) if isinstance(key, list) else (key,)
        value, lower, upper, limit = (fields[name] for name in ("value", "lower", "upper", "limit"))
        at_us, since_us = (_microseconds(fields[name]) for name in ("at", "since"))
        words = fields["rule"], fields["kind"], fields["state"]
        figures, texts = (value, lower, upper, limit), (fields["why"], fields["app"])
        more = fields.get("details") or {}, tuple(fields.get("key_names", ()))
        return cls(*words, parts, at_us, since_us, *figures, *texts, *more)

    def __str__(self) -> str:
        key = f" {visible_key(self.plain_key)}" if self.key else ""
        app = f"{self.app}: " if self.app else ""
        return f"{moment(self.at_us)} {app}{self.rule}{key} {self.state}: {self.why}"


def moment(us: int) -> str:
    """Microseconds since 1970 in ISO 8601, in UTC.

    >>> moment(1_500_000)
    '1970-01-01T00:00:01.500000+00:00'
    """
    return (_EPOCH + timedelta(microseconds=us)).isoformat()


def _microseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
