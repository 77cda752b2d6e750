"""The page on sensors names all that there is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from streamgauge.apps.iot.app import APP
from streamgauge.apps.iot.routes import routes_in
from streamgauge.apps.iot.sparkplug.births import Births, birth_of
from streamgauge.apps.iot.sparkplug.payload import payload_of, speaker_of
from streamgauge.apps.jobs.job import Job

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "iot.md").read_text()


def test_the_tables_name_all_that_there_is() -> None:
    reported = set(re.findall(r"`([\w -]+)`", PAGE))
    settings = {**APP.settings, "fences": "a.geojson", "below": "2"}
    rules = [one.name for part in APP.parts for one in part.rules(settings)]
    assert {*rules, *APP.settings, *(part.name for part in APP.parts)} <= reported
    assert {form.name for form in APP.formats} <= reported
    assert {name for form in APP.formats for name in form.settings} <= reported


def block(language: str) -> str:
    (result,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(result)


def test_the_rules_file_does_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(block("toml"))
    (rule,) = Job.of(APP, "json", {}, tmp_path / "rules.toml").rules["readings"]
    (command,) = rule.commands
    assert (command.topic, command.fired["ac"], command.cleared["ac"]) == ("commands", "off", "on")


def test_the_recording_says_what_the_page_says(tmp_path: Path) -> None:
    path = tmp_path / "plant.txt"
    path.write_text(block("text"))
    job = Job.of(APP, None, {}, recording=path)
    birth, data = job.form.messages(path, job.settings)
    births = Births()
    births.add(speaker_of(birth.key), birth_of(payload_of(birth.value), birth.sent_ms or 0))
    (metric,) = payload_of(data.value).metrics
    known = births.of(speaker_of(data.key), payload_of(data.value).timestamp, data.sent_ms or 0).metrics
    assert (known[metric.alias][0], metric.alias, metric.double_value) == ("Temperature", 7, 81.25)


def test_the_route_is_one(tmp_path: Path) -> None:
    (tmp_path / "routes.csv").write_text(block("csv"))
    metres = routes_in(f"{tmp_path}/routes.csv").metres(np.array([8.1]), np.array([49.05]), ["7"])
    assert metres.round(6).tolist() == [0.0]
