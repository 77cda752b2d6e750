"""A run of an app: formats, settings, rules, the options of each engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job, Live
from streamgauge.apps.registry import app_of


@pytest.mark.parametrize(
    ("format", "given", "said"),
    [
        ("avro", {}, "'avro' is not a format of iot; it has json, csv"),
        ("csv", {"limt": "3"}, "--set limt: iot has no such setting; with the format csv it has limit, "),
        ("csv", {"limit": "warm"}, "--set limit must be a number, got warm"),
    ],
)
def test_what_an_app_can_not_be_asked_is_said(format: str, given: dict, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        Job.of(app_of("iot"), format, given)
    assert said in str(refused.value)


def test_a_rules_file_takes_the_place_of_the_app_s_own(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    rule = '[[rule]]\nname = "{}"\nkind = "threshold"\nabove = 5\n'
    file.write_text(
        rule.format("high") + 'value = "high"\npart = "days"\n' + rule.format("v") + 'value = "value"\n'
    )
    job = Job.of(app_of("iot"), "csv", {}, file)
    assert {part: [one.name for one in rules] for part, rules in job.rules.items() if rules} == {
        "readings": ["v"],
        "days": ["high"],
    }
    file.write_text(rule.format("high") + 'value = "high"\npart = "weeks"\n')
    with pytest.raises(ValueError, match=r"line 1: part must be one of readings, days, clocks, got .weeks.$"):
        Job.of(app_of("iot"), "csv", {}, file)


def test_options_of_the_other_engine_are_refused(tmp_path: Path) -> None:
    job, feed = Job.of(app_of("iot"), "json", {}), Feed("t", "localhost:9092")
    with pytest.raises(ValueError, match="--state is Spark's"):
        Live(job, feed, "g", state=tmp_path)
    with pytest.raises(ValueError, match="name --state FOLDER"):
        Live(job, feed, "g", "spark")
    with pytest.raises(ValueError, match="are the consumer's"):
        Live(job, feed, "g", "spark", workers=2, state=tmp_path)
    with pytest.raises(ValueError, match="on Spark tables are in the --state folder"):
        Live(job, feed, "g", "spark", state=tmp_path, table=str(tmp_path))
    with pytest.raises(ValueError, match="name their folder by --table FOLDER"):
        Live(job, feed, "g", keep="30d")


@pytest.mark.parametrize(("given", "wanted"), [({}, "1m"), ({"lateness": "3h"}, "3h")])
def test_late_readings_are_kept_and_waited_for_as_long_as_it_is_set(given: dict, wanted: str) -> None:
    job = Job.of(app_of("iot"), "json", given)
    streams = job.streams(Feed("t", "localhost:9092"))
    (readings,) = (part for part in job.parts if part.name == "readings")
    alerting = job.alerting(readings, [])
    assert streams["readings"].keep_late and not streams["days"].keep_late
    assert alerting is not None
    assert alerting.lateness == wanted
    for app, part, usual in (("logs", "logins", "1m"), ("stocks", "tape", "10s")):
        other = Job.of(app_of(app), None, given)
        ordered = other.alerting(next(one for one in other.parts if one.name == part), [])
        assert ordered is not None
        assert ordered.lateness == given.get("lateness", usual)
    with pytest.raises(ValueError, match=r"--set lateness: "):
        Job.of(app_of("iot"), "json", {"lateness": "soon"})
    with pytest.raises(
        ValueError,
        match=r"--set lateness: trending has no such setting, as its rules .* delay= waits",
    ):
        Job.of(app_of("trending"), None, {"lateness": "1h"})
