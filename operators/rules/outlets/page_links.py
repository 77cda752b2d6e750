"""Links from alerts to their picture on the page, and times in a time zone."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from ...formats.jsonable import jsonable
from ...rendering.names import visible_name
from ..alert import Alert, moment

_HOUR_US = 3_600_000_000
_SPANS = (("1h", _HOUR_US), ("6h", 6 * _HOUR_US), ("1d", 24 * _HOUR_US), ("7d", 7 * 24 * _HOUR_US))
_SHOWN = 3
"""The shown span is at least this many times as long as an event's window."""
LONGEST = 2_000
"""A longer link omits the keys, because clients truncate or refuse it."""


def page_link(page: str, alert: Alert, zone: str = "UTC") -> str:
    """The address of an alert's picture on a page: its app, keys, span, zone and, if it fired, event.

    >>> key, figures = ("hall & attic",), (31.0, 31.0, 31.0, 30.0)
    >>> alert = Alert("hot", "threshold", "cleared", key, 0, 0, *figures, "…", "iot", key_names=("sensor",))
    >>> page_link("https://example.org/", alert, "Europe/Berlin")
    'https://example.org/app/iot?span=1h&zone=Europe%2FBerlin&key.sensor=hall+%26+attic'
    """
    length = abs(alert.at_us - alert.since_us) * _SHOWN
    span = next((name for name, longest in _SPANS if length <= longest), "")
    query = {"span": span, "zone": zone}
    event = {"alert": alert.id} if alert.state == "fired" else {}
    keys = {
        f"key.{name}": value if isinstance(value, str) else visible_name(value)
        for name, value in zip(alert.key_names, jsonable(list(alert.key)))
        if value is not None
    }
    folder = f"/app/{quote(alert.app, safe='')}" if alert.app else "/"
    link = f"{page.rstrip('/')}{folder}?{urlencode({**query, **keys, **event}, errors='replace')}"
    if len(link) > LONGEST:
        link = f"{page.rstrip('/')}{folder}?{urlencode({**query, **event})}"
    return link


def time_in(us: int, zone: str) -> str:
    """Microseconds since 1970 in ISO 8601 with the offset of a zone.

    >>> time_in(1_500_000, "Europe/Berlin")
    '1970-01-01T01:00:01.500000+01:00'
    """
    if zone == "UTC":
        return moment(us)
    try:
        return datetime.fromisoformat(moment(us)).astimezone(ZoneInfo(zone)).isoformat()
    except OverflowError:
        return moment(us)
