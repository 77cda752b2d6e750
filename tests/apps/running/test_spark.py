"""A live run on Spark goes on from the state of its own version only."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job, Live
from streamgauge.apps.registry import app_of
from streamgauge.apps.running import spark
from streamgauge.errors import DefinitionChanged

JOB = Job.of(app_of("iot"), "json")


class Begun(Exception):
    """The session would start now."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def begin(_: object) -> None:
        raise Begun

    monkeypatch.setattr(spark, "SESSION", type("Session", (), {"joined": staticmethod(begin)}))
    return tmp_path / "state"


def run(state: Path) -> None:
    spark.live(Live(JOB, Feed("sensors", "localhost:1", {}), "iot-sensors", "spark", state=state))


def checkpoint(folder: Path) -> None:
    """What Spark leaves of a query."""
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"a"}')


def test_a_checkpoint_for_each_part_is_refused_and_left_as_it_is(state: Path) -> None:
    for part in ("values", "gaps"):
        checkpoint(state / "checkpoint" / part)
    before = sorted(state.rglob("*"))
    with pytest.raises(DefinitionChanged) as raised:
        run(state)
    said = str(raised.value)
    assert str(state / "checkpoint") in said and "gaps, values" in said and "--state" in said
    assert sorted(state.rglob("*")) == before


@pytest.mark.parametrize("kept", ["nothing", "no checkpoint", "one of the whole app"])
def test_others_are_gone_on_with(state: Path, kept: str) -> None:
    if kept == "no checkpoint":
        (state / "checkpoint").mkdir(parents=True)
    elif kept == "one of the whole app":
        checkpoint(state / "checkpoint")
    with pytest.raises(Begun):
        run(state)
