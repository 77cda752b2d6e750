"""Candidates as VOEvent 2.0 documents, which brokers and robotic telescopes read.

Source: Seaman et al. 2011, "Sky Event Reporting Metadata", version 2.0, IVOA recommendation
(https://www.ivoa.net/documents/VOEvent/20110711/), and its schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from ...operators.kafka.outgoing_message import ANY_PARTITION, Outgoing
from ...operators.rules.alert import Alert, moment
from ...operators.rules.outlets.to_topic import key_bytes
from ...operators.sinks.sink import SinkTopic
from ...sketches.core.version import VERSION
from ..app import Settings

_NAMESPACE = "http://www.ivoa.net/xml/VOEvent/v2.0"
_SCHEMA = f"{_NAMESPACE} http://www.ivoa.net/xml/VOEvent/VOEvent-v2.0.xsd"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_IDENTIFIER = re.compile(r"ivo://[A-Za-z0-9][A-Za-z0-9._~-]+(/[A-Za-z0-9._~/-]*)?")
_ROLES = ("observation", "prediction", "utility", "test")
_SYSTEM = "UTC-ICRS-TOPO"
_RADIUS = 1 / 3600
"""Degrees: surveys attribute detections within one arcsecond to the same object."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_PARAMS = {
    "photometry": {
        "band": ("", "instr.bandpass"),
        "mag": ("mag", "phot.mag"),
        "error": ("mag", "stat.error;phot.mag"),
        "limit": ("mag", "phot.mag;stat.max"),
        "age": ("d", "time.duration"),
        "rate": ("mag/d", "phot.mag;arith.rate"),
    },
    "scores": {"rb": ("", "stat.likelihood"), "drb": ("", "stat.likelihood")},
    "match": {
        "match": ("", "meta.id.cross"),
        "match_type": ("", "src.class"),
        "match_distance": ("arcsec", "pos.angDistance"),
        "match_in": ("", "meta.dataset"),
    },
    "host": {
        "host": ("", "meta.id.parent"),
        "host_distance": ("arcsec", "pos.angDistance"),
        "host_z": ("", "src.redshift"),
    },
}
"""An alert's details in groups, each with its unit and its term in the IVOA's controlled vocabulary
(UCD1+, version 1.5)."""


@dataclass(frozen=True)
class VOEventAuthor:
    """The publisher of events: an IVOA identifier, and the role of the events.

    Raises `ValueError` for an identifier or a role that VOEvent doesn't have.

    >>> VOEventAuthor("ivo://org.example/candidates").role
    'observation'
    """

    identifier: str
    role: str = "observation"

    def __post_init__(self) -> None:
        if not _IDENTIFIER.fullmatch(self.identifier):
            raise ValueError(
                f"the author of VOEvents must be an identifier such as ivo://org.example/candidates, "
                f"got {self.identifier!r}"
            )
        if self.role not in _ROLES:
            raise ValueError(f"the role of VOEvents must be one of {', '.join(_ROLES)}, got {self.role!r}")


@dataclass(frozen=True)
class VOEventsToKafka:
    """Send each alert that has a position to a topic as a VOEvent 2.0 document, exactly once.

    They are sent like the alerts of `AlertsToKafka`, with the same keys and headers; the document is the
    value.
    """

    to: str
    author: VOEventAuthor

    def topic(self) -> SinkTopic:
        """See `operators.rules.alerting.SendingOutlet`."""
        return SinkTopic(self.to, 1, {})

    def messages(self, alert: Alert) -> Iterator[Outgoing]:
        """See `operators.rules.alerting.SendingOutlet`; repeated messages differ only in the date of
        writing."""
        if _position(alert) is not None:
            headers = [("id", alert.id.encode()), ("state", alert.state.encode())]
            value = voevent(alert, self.author, datetime.now(UTC))
            yield Outgoing(self.to, ANY_PARTITION, value, headers, key_bytes(alert))


def voevent_outlets(settings: Settings) -> list[VOEventsToKafka]:
    """Return the outlet in a run's settings, if any. Raises `ValueError` for an invalid author or role."""
    if not settings["voevent"]:
        return []
    try:
        author = VOEventAuthor(settings["voevent_author"], settings["voevent_role"])
    except ValueError as error:
        raise ValueError(f"--set voevent_author and --set voevent_role: {error}") from None
    return [VOEventsToKafka(settings["voevent"], author)]


def voevent(alert: Alert, author: VOEventAuthor, now: datetime) -> bytes:
    """Convert an alert to a document, written at a time. Raises `ValueError` without a position.

    The withdrawal of an alert becomes a retraction of its event.
    """
    place = _position(alert)
    if place is None:
        raise ValueError(f"the alert {alert.id} has no position, and can't be a VOEvent")
    ElementTree.register_namespace("voe", _NAMESPACE)
    ElementTree.register_namespace("xsi", _XSI)
    root = ElementTree.Element(
        f"{{{_NAMESPACE}}}VOEvent",
        {
            "version": "2.0",
            "role": author.role,
            "ivorn": _identity(alert, author),
            f"{{{_XSI}}}schemaLocation": _SCHEMA,
        },
    )
    _who(root, author, now)
    _what(root, alert)
    _where_and_when(root, alert, place)
    how = _sub(root, "How")
    _sub(how, "Description", f"found in a survey's alerts by streamgauge {VERSION}, rule {alert.rule}")
    why = _sub(root, "Why")
    _sub(why, "Concept", "process.variation.trans;em.opt")
    _sub(why, "Description", alert.why)
    if page := alert.details.get("page"):
        _sub(why, "Reference", uri=str(page), mimetype="text/html")
    if alert.state != "fired":
        cited = _sub(root, "Citations")
        _sub(cited, "EventIVORN", _identity(replace(alert, state="fired"), author), cite="retraction")
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return document


def _identity(alert: Alert, author: VOEventAuthor) -> str:
    """Return an event's identifier: a fragment of its author's, always the same for an alert."""
    name = quote(str(alert.key[0]) if alert.key else "", safe="", errors="replace")
    return f"{author.identifier}#{name}/{alert.id}"


def _who(root: ElementTree.Element, author: VOEventAuthor, now: datetime) -> None:
    who = _sub(root, "Who")
    _sub(who, "AuthorIVORN", author.identifier)
    _sub(who, "Date", f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S}")


def _what(root: ElementTree.Element, alert: Alert) -> None:
    what = _sub(root, "What")
    for name, value, ucd in (
        ("object", alert.key[0] if alert.key else "", "meta.id;src"),
        ("rule", alert.rule, "meta.id"),
        ("kind", alert.kind, "meta.code"),
    ):
        _param(what, name, value, "", ucd)
    for group, params in _PARAMS.items():
        known = {name: alert.details[name] for name in params if alert.details.get(name) is not None}
        if known:
            inside = _sub(what, "Group", name=group)
            for name, value in known.items():
                _param(inside, name, value, *params[name])


def _param(parent: ElementTree.Element, name: str, value: Any, unit: str, ucd: str) -> None:
    kind = {"dataType": "float"} if isinstance(value, float | int) else {}
    given = {"name": name, "value": str(value), **kind, **({"unit": unit} if unit else {}), "ucd": ucd}
    _sub(parent, "Param", **given)


def _where_and_when(root: ElementTree.Element, alert: Alert, place: tuple[float, float]) -> None:
    data = _sub(_sub(root, "WhereWhen"), "ObsDataLocation")
    _sub(data, "ObservatoryLocation")
    seen = _sub(data, "ObservationLocation")
    _sub(seen, "AstroCoordSystem", id=_SYSTEM)
    coords = _sub(seen, "AstroCoords", coord_system_id=_SYSTEM)
    instant = _sub(_sub(coords, "Time", unit="s"), "TimeInstant")
    _sub(instant, "ISOTime", moment(alert.at_us).removesuffix("+00:00"))
    position = _sub(coords, "Position2D", unit="deg")
    _sub(position, "Name1", "RA")
    _sub(position, "Name2", "Dec")
    value = _sub(position, "Value2")
    for name, degrees in zip(("C1", "C2"), place):
        _sub(value, name, repr(degrees))
    _sub(position, "Error2Radius", f"{_RADIUS:.6f}")


def _position(alert: Alert) -> tuple[float, float] | None:
    """Return right ascension and declination in degrees, if known."""
    ra, dec = (alert.details.get(name) for name in ("ra", "dec"))
    if not isinstance(ra, float | int) or not isinstance(dec, float | int):
        return None
    return (float(ra), float(dec)) if math.isfinite(ra) and math.isfinite(dec) else None


def _sub(
    parent: ElementTree.Element, name: str, text: str | None = None, /, **given: str
) -> ElementTree.Element:
    """Add an element to another; characters that XML doesn't allow are replaced."""
    element = ElementTree.SubElement(parent, name, {key: _clean(value) for key, value in given.items()})
    element.text = None if text is None else _clean(text)
    return element


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
