"""Candidates in the form of the Transient Name Server's bulk reports, for a human to send.

Source: the server's manual of its bulk report in JSON (``at_report``), https://www.wis-tns.org/api/docs. The
reporter has to fill in groups and instruments, for which the server has its own numbers. The filter is filled
in for ZTF's objects; for all others, the band is in the comments. Nothing is sent to the server from here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...operators.kafka.outgoing_message import ANY_PARTITION, Outgoing
from ...operators.rules.alert import Alert
from ...operators.rules.outlets.to_topic import key_bytes
from ...operators.sinks.sink import SinkTopic
from ..app import Settings

_AB = "1"
_POSSIBLE_SUPERNOVA = "1"
_ZTF = {"g": "110", "r": "111", "i": "112"}
"""The server's numbers of ZTF's filters."""


@dataclass(frozen=True)
class TnsReportsToKafka:
    """Send each candidate to a topic as a report, exactly once, with the same keys and headers as alerts."""

    to: str
    reporter: str = ""
    group: str = ""

    def topic(self) -> SinkTopic:
        """See `operators.rules.alerting.SendingOutlet`."""
        return SinkTopic(self.to, 1, {})

    def messages(self, alert: Alert) -> Iterator[Outgoing]:
        """See `operators.rules.alerting.SendingOutlet`; withdrawals are not reported."""
        if alert.state == "fired" and alert.kind == "candidate" and (report := tns_report(alert, self)):
            headers = [("id", alert.id.encode()), ("state", alert.state.encode())]
            yield Outgoing(self.to, ANY_PARTITION, json.dumps(report).encode(), headers, key_bytes(alert))


def tns_outlets(settings: Settings) -> list[TnsReportsToKafka]:
    """Return the outlet in a run's settings, if any."""
    if not settings["tns"]:
        return []
    return [TnsReportsToKafka(settings["tns"], settings["tns_reporter"], settings["tns_group"])]


def tns_report(alert: Alert, outlet: TnsReportsToKafka) -> dict[str, Any] | None:
    """Convert an alert to a report of one object; None without a position or a magnitude."""
    details = alert.details
    ra, dec, mag = (details.get(name) for name in ("ra", "dec", "mag"))
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in (ra, dec, mag)):
        return None
    at = f"{datetime.fromtimestamp(alert.at_us / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    name = str(alert.key[0]) if alert.key else ""
    photometry = {
        "obsdate": at,
        "flux": _text(mag),
        "flux_error": _text(details.get("error")),
        "limiting_flux": _text(details.get("limit")),
        "flux_units": _AB,
        "filter_value": _ZTF.get(str(details.get("band")), "") if name.startswith("ZTF") else "",
        "comments": f"band {details['band']}" if details.get("band") else "",
    }
    report = {
        "ra": {"value": _text(ra), "units": "deg"},
        "dec": {"value": _text(dec), "units": "deg"},
        "reporting_group_id": outlet.group,
        "discovery_data_source_id": outlet.group,
        "reporter": outlet.reporter,
        "discovery_datetime": at,
        "at_type": _POSSIBLE_SUPERNOVA,
        "host_name": str(details.get("host") or ""),
        "host_redshift": _text(details.get("host_z")),
        "internal_name": name,
        "remarks": alert.why,
        "photometry": {"photometry_group": {"0": photometry}},
    }
    return {"at_report": {"0": report}}


def _text(value: Any) -> str:
    return "" if value is None else repr(float(value))
