"""Where Rubin's schemas come from, and what is said of a run that could have none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job, Live
from streamgauge.apps.registry import app_of
from streamgauge.apps.supernova.packets.schemas import NoSchemas

from ...command import Ran

SCHEMA = {"type": "record", "namespace": "lsst.v9_0", "name": "alert", "fields": []}


@pytest.fixture
def _no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lsst.alert", None)


def live(format: str, given: dict[str, str]) -> Live:
    return Live(Job.of(app_of("supernova"), format, given), Feed("alerts", "localhost:1"), "g")


@pytest.mark.usefixtures("_no_package")
def test_a_live_run_that_could_read_no_packet_is_refused_before_it_begins(ran: Ran) -> None:
    with pytest.raises(NoSchemas) as refused:
        live("rubin", {})
    for way in ("--set registry=URL", "--set schema=FILE", "extra 'rubin'", "--set schema=within"):
        assert way in str(refused.value)
    # The command line says it in a line, without reaching for the broker.
    topic = ("--bootstrap-servers", "localhost:1", "--topic", "alerts", "--format", "rubin")
    said = ran("run", "supernova", *topic, code=1)
    assert said.startswith("error: ") and "--set registry=URL" in said and "Traceback" not in said


@pytest.mark.usefixtures("_no_package")
def test_one_that_has_schemas_or_needs_none_is_not(tmp_path: Path) -> None:
    file = tmp_path / "lsst.v9_0.alert.avsc"
    file.write_text(json.dumps(SCHEMA))
    for given in ({"registry": "http://localhost:1"}, {"schema": str(file)}, {"schema": "within"}):
        assert live("rubin", given).job.streams(Feed("alerts", "localhost:1"))
    assert live("ztf", {}) and live("fink", {})


@pytest.mark.usefixtures("_no_package")
def test_a_recording_without_its_schema_is_refused_in_a_line(ran: Ran, tmp_path: Path) -> None:
    path = tmp_path / "packet.avro"
    path.write_bytes(b"\0" + (900).to_bytes(4, "big") + b"body")
    job = Job.of(app_of("supernova"), recording=path)
    with pytest.raises(NoSchemas, match="--set schema=FILE"):
        list(job.form.messages(path, job.settings))
