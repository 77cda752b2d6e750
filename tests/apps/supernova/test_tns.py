"""Candidates as reports in the form of the Transient Name Server's."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from streamgauge.apps.app import Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.supernova.tns import TnsReportsToKafka

from .made import JD, as_json, passing
from .test_app import run
from .test_voevent import candidate

OUTLET = TnsReportsToKafka("reports", "A. Observer", "42")


def test_a_candidate_is_a_report_with_its_place_time_and_photometry() -> None:
    (sent,) = OUTLET.messages(candidate())
    assert sent.topic == "reports"
    report = json.loads(sent.value or b"")["at_report"]["0"]
    assert report["ra"] == {"value": "185.72885", "units": "deg"} and report["dec"]["value"] == "15.82362"
    assert report["discovery_datetime"] == "2020-01-11 12:32:05.001"
    assert (report["internal_name"], report["reporter"]) == ("ZTF20aaelulu", "A. Observer")
    assert report["reporting_group_id"] == report["discovery_data_source_id"] == "42"
    assert (report["host_name"], report["host_redshift"], report["at_type"]) == ("M 100", "0.00524", "1")
    photometry = report["photometry"]["photometry_group"]["0"]
    assert (photometry["flux"], photometry["flux_error"], photometry["limiting_flux"]) == (
        "14.92",
        "0.03",
        "20.1",
    )
    assert (photometry["filter_value"], photometry["flux_units"]) == ("110", "1")


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "retracted"},
        {"kind": "watch"},
        {"details": {"mag": 18.0}},
        {"details": {"ra": 1.0, "dec": 2.0}},
    ],
)
def test_what_is_no_new_object_with_a_place_and_a_magnitude_is_no_report(changed: dict[str, object]) -> None:
    assert not list(OUTLET.messages(replace(candidate(), **changed)))  # type: ignore[arg-type]


def test_a_run_sends_them_to_the_topic_of_its_settings() -> None:
    job = Job.of(app_of("supernova"), "fink", {"tns": "reports", "tns_reporter": "A. Observer"})
    message = Message(as_json(passing("ZTF26a", JD, 18.0)), b"k", int((JD - 2_440_587.5) * 86_400_000))
    testers, _ = run(job, [message, message])
    sent = [one for one in testers["curves"].sent() if one.topic == "reports"]
    assert [json.loads(one.value or b"")["at_report"]["0"]["internal_name"] for one in sent] == ["ZTF26a"]
