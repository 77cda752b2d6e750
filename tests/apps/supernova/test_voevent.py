"""Candidates as VOEvent 2.0: what a broker reads in them, and what the schema of the IVOA lets stand."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from streamgauge.apps.app import Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.supernova.voevent import VOEventAuthor, VOEventsToKafka, voevent
from streamgauge.operators.rules.alert import Alert

from ..command import Ran
from .made import JD, as_json, passing

AUTHOR = VOEventAuthor("ivo://org.example/candidates", role="test")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMESPACE = "{http://www.ivoa.net/xml/VOEvent/v2.0}"
DETAILS = {
    "ra": 185.72885, "dec": 15.82362, "band": "g", "mag": 14.92, "error": 0.03, "limit": 20.1, "rb": 0.86,
    "match": "SN 2020oi", "match_distance": 0.09, "match_in": "tns.csv", "host": "M 100", "host_z": 0.00524,
}  # fmt: skip


def candidate(**more: Any) -> Alert:
    figures = 14.92, 14.92, 14.92, 19.8
    words = "g 14.92 at 185.72885 +15.82362, passed bts: below 19.8"
    at = 1_578_745_925_001_000
    made = Alert("candidate", "candidate", "fired", ("ZTF20aaelulu",), at, at, *figures, words, "supernova")
    return replace(made, **{"details": DETAILS, **more})


def parsed(alert: Alert) -> ElementTree.Element:
    return ElementTree.fromstring(voevent(alert, AUTHOR, NOW))


def test_a_candidate_is_an_event_with_its_place_time_figures_and_reason() -> None:
    event = parsed(candidate())
    number = candidate().id
    assert (
        event.tag == f"{NAMESPACE}VOEvent" and event.get("version") == "2.0" and event.get("role") == "test"
    )
    assert event.get("ivorn") == f"ivo://org.example/candidates#ZTF20aaelulu/{number}"
    assert event.findtext("Who/AuthorIVORN") == "ivo://org.example/candidates"
    assert event.findtext("Who/Date") == "2026-01-02T03:04:05"
    place = "WhereWhen/ObsDataLocation/ObservationLocation/AstroCoords"
    assert event.find(place).get("coord_system_id") == "UTC-ICRS-TOPO"  # type: ignore[union-attr]
    assert event.findtext(f"{place}/Time/TimeInstant/ISOTime") == "2020-01-11T12:32:05.001000"
    texts = [event.findtext(f"{place}/Position2D/{name}") for name in ("Value2/C1", "Value2/C2", "Name1")]
    assert texts == ["185.72885", "15.82362", "RA"]
    params = {one.get("name"): one for one in event.iter("Param")}
    assert {params[name].get("value") for name in ("object", "mag", "host")} == {
        "ZTF20aaelulu",
        "14.92",
        "M 100",
    }
    assert params["mag"].attrib == {
        "name": "mag", "value": "14.92", "dataType": "float", "unit": "mag", "ucd": "phot.mag",
    }  # fmt: skip
    assert "age" not in params  # nothing is known of it
    assert event.findtext("Why/Description") == candidate().why


def test_an_alert_that_was_withdrawn_is_a_retraction_of_the_first() -> None:
    event = parsed(candidate(state="withdrawn"))
    cited = event.find("Citations/EventIVORN")
    assert cited is not None and cited.get("cite") == "retraction"
    assert cited.text == parsed(candidate()).get("ivorn") != event.get("ivorn")


HOSTILE = "<b>&\"'\x00\x1b]\ud800</b>#?"


def test_texts_of_packets_stay_texts() -> None:
    event = parsed(candidate(key=(HOSTILE,), why=HOSTILE, details={**DETAILS, "host": HOSTILE}))
    clean = "<b>&\"'\ufffd\ufffd]\ufffd</b>#?"
    params = {one.get("name"): one.get("value") for one in event.iter("Param")}
    assert params["object"] == params["host"] == event.findtext("Why/Description") == clean
    identity = event.get("ivorn") or ""
    assert identity.count("#") == 1 and not set("<>\"'& ") & set(identity)


def test_what_has_no_place_is_no_event() -> None:
    for lacking in ({}, {"ra": 1.0}, {"ra": None, "dec": 2.0}):
        with pytest.raises(ValueError, match="has no position"):
            voevent(candidate(details=lacking), AUTHOR, NOW)
        assert not list(VOEventsToKafka("events", AUTHOR).messages(candidate(details=lacking)))


@pytest.mark.parametrize(
    "author", ["", "org.example", "https://org.example", "ivo://", "ivo://a b/c", "ivo://a/c#1"]
)
def test_an_author_is_an_identifier_of_the_ivoa(author: str) -> None:
    with pytest.raises(ValueError, match=r"ivo://org.example/candidates"):
        VOEventAuthor(author)


def test_a_role_is_one_of_four() -> None:
    with pytest.raises(ValueError, match="observation, prediction, utility, test, got 'drill'"):
        VOEventAuthor("ivo://org.example/candidates", role="drill")


CHILDREN = {
    f"{NAMESPACE}VOEvent": "Who What WhereWhen How Why Citations Description Reference",
    "Who": "AuthorIVORN Date Description Reference Author",
    "What": "Param Group Table Description Reference",
    "Group": "Param Description Reference",
    "Param": "Description Reference Value",
    "WhereWhen": "ObsDataLocation Description Reference",
    "ObsDataLocation": "ObservatoryLocation ObservationLocation",
    "ObservatoryLocation": "AstroCoordSystem AstroCoords",
    "ObservationLocation": "AstroCoordSystem AstroCoords",
    "AstroCoords": "Time Position2D Position3D",
    "Time": "TimeInstant Error",
    "TimeInstant": "ISOTime TimeOffset TimeScale",
    "Position2D": "Name1 Name2 Value2 Error2Radius",
    "Value2": "C1 C2",
    "How": "Description Reference",
    "Why": "Name Concept Inference Description Reference",
    "Citations": "EventIVORN Description",
}
"""What may stand in what, by the schema of VOEvent 2.0; in everything else there is text alone."""
ATTRIBUTES = {
    f"{NAMESPACE}VOEvent": "version ivorn role",
    "Group": "name type",
    "Param": "name ucd value unit dataType utype",
    "AstroCoordSystem": "id",
    "AstroCoords": "coord_system_id",
    "Time": "unit",
    "Position2D": "unit",
    "Why": "importance expires",
    "EventIVORN": "cite",
    "Reference": "uri type mimetype meaning",
}
REPEATED = {"Param", "Group", "Description", "Reference", "EventIVORN"}
NEEDED = {"ObsDataLocation": 2, "ObservationLocation": 2, "Value2": 2, "Citations": 1, "What": 1, "How": 1}
"""How many elements there must be at least in these."""
FEW = {"ra": 1.0, "dec": -2.0}
PAGE = {"page": "http://h/apps/supernova/objects/a%20b.html"}


@pytest.mark.parametrize("state", ["fired", "withdrawn"])
@pytest.mark.parametrize("details", [DETAILS, FEW, {**DETAILS, "host": HOSTILE, **PAGE}])
def test_each_element_stands_where_the_schema_has_it(state: Any, details: dict[str, Any]) -> None:
    for element in parsed(candidate(state=state, details=details)).iter():
        names = [child.tag for child in element]
        assert set(names) <= set(CHILDREN.get(element.tag, "").split()), element.tag
        once = [name for name in names if name not in REPEATED]
        assert len(once) == len(set(once)) and len(names) >= NEEDED.get(element.tag, 0), element.tag
        plain = {name for name in element.attrib if "XMLSchema-instance" not in name}
        assert plain <= set(ATTRIBUTES.get(element.tag, "").split()), element.tag
        assert not names or not (element.text or "").strip()
        if element.tag in ("C1", "C2", "Error2Radius"):
            float(element.text or "")
        assert element.get("dataType", "string") in ("string", "float", "int")


@pytest.mark.parametrize("state", ["fired", "withdrawn"])
def test_the_schema_of_the_ivoa_accepts_it(state: Any) -> None:
    """The schema is in voevent-parse, which needs Astropy: this is for those who have them."""
    etree = pytest.importorskip("lxml.etree", reason="lxml checks schemas")
    definitions = pytest.importorskip("voeventparse.definitions", reason="voevent-parse has the schema")
    schema = etree.XMLSchema(etree.fromstring(definitions.v2_0_schema_str))
    for details in (DETAILS, FEW, {**DETAILS, "host": HOSTILE, **PAGE}):
        document = etree.fromstring(voevent(candidate(state=state, details=details), AUTHOR, NOW))
        assert schema.validate(document), schema.error_log


def test_a_run_sends_them_to_the_topic_of_its_setting() -> None:
    given = {"voevent": "events", "voevent_author": "ivo://org.example/candidates"}
    job = Job.of(app_of("supernova"), "ztf", given)
    (outlet,) = job.app.outlets(job.settings)
    assert isinstance(outlet, VOEventsToKafka) and outlet.topic().name == "events"
    (message,) = outlet.messages(candidate())
    assert message.topic == "events" and message.key == b"ZTF20aaelulu"
    assert ElementTree.fromstring(message.value or b"").get("role") == "observation"
    assert not Job.of(app_of("supernova"), "ztf").app.outlets(Job.of(app_of("supernova"), "ztf").settings)
    with pytest.raises(ValueError, match="--set voevent_author"):
        job.app.outlets({**job.settings, "voevent_author": ""})


def test_alerts_of_a_run_have_what_an_event_needs(tmp_path: Path, ran: Ran) -> None:
    from .test_app import run

    given = {"page": "http://desk:8055/"}
    job = Job.of(app_of("supernova"), "ztf", given)
    _, fed = run(job, [Message(as_json(passing("ZTF26a", JD, 18.0)), b"k", 1_756_800_000_000)])
    (alert,) = fed
    details = alert["details"]
    assert (details["ra"], details["dec"], details["band"], details["mag"]) == (150.0, 20.0, "g", 18.0)
    assert details["page"] == "http://desk:8055/apps/supernova/objects/ZTF26a.html"
    assert alert["why"].endswith("; http://desk:8055/apps/supernova/objects/ZTF26a.html")
    # What a run appends to a file becomes files for other programs.
    lines, folder = tmp_path / "alerts.jsonl", tmp_path / "events"
    lines.write_text(json.dumps({**alert, "state": "fired"}) + "\n" + json.dumps({"rule": "?"}) + "\n")
    said = ran("alerts", "voevent", lines, "--author", "ivo://org.example/x", "--output", folder)
    (file,) = folder.iterdir()
    assert file.suffix == ".xml" and "1 event" in said and "1 line" in said
    event = ElementTree.fromstring(file.read_bytes())
    assert (
        event.findtext("How/Reference") is None and event.find("Why/Reference").get("uri") == details["page"]
    )  # type: ignore[union-attr]
