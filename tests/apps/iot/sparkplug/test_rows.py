"""The app on Sparkplug B through the tester: alerts of readings by their names, and of nodes."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.iot.app import APP
from streamgauge.apps.iot.sparkplug.sequence import SequenceGap
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.running.replaying import AppReplay, replayed
from streamgauge.rules import Alert

from .conftest import Log
from .made import DOUBLE, NOON, Plant, at, lively, payload

FEED = Feed("t", "h:1")


class Kept(list[Alert]):
    """An outlet that keeps its alerts."""

    def begin(self) -> None:
        pass

    def write(self, alert: Alert) -> None:
        self.append(alert)


def job_of(plant: Plant, tmp_path: Path, given: dict[str, str] | None = None) -> Job:
    path = tmp_path / "recording.txt"
    path.write_text(plant.recording())
    job = Job.of(APP, None, given or {}, recording=path)
    assert job.form.name == "sparkplug"
    messages = list(job.form.messages(path, job.settings))
    wanted = [(one.value, one.key, one.arrived) for one in plant.sent]
    assert [(one.value, one.key, one.sent_ms) for one in messages] == wanted
    return job


def run(job: Job, part: str, plant: Plant) -> tuple[StreamTester, list[Alert]]:
    alerts = Kept()
    (requested,) = (one for one in job.parts if one.name == part)
    alerting = job.alerting(requested, [alerts])
    tester = StreamTester(job.streams(FEED)[part], sinks=[alerting] if alerting else [], start=at(NOON))
    for one in plant.sent:
        tester.feed_messages([one.value], [one.key], timestamps=[at(one.arrived)])
    return tester.finish(), alerts


def test_limits_are_held_against_metrics_by_their_names(log: Log, tmp_path: Path) -> None:
    plant = lively(3)
    log.holds(plant.sent)
    job = job_of(plant, tmp_path, {"limit": "40", "hysteresis": "10", "metric": "heat"})
    _, alerts = run(job, "readings", plant)
    wanted, on = [], set[str]()
    for unit, metric, ms, value in plant.readings:
        if metric == "heat" and ((value >= 40 and unit not in on) or (value <= 30 and unit in on)):
            wanted.append(("cleared" if unit in on else "fired", f"{unit}/heat", ms * 1000))
            on ^= {unit}
    assert len(wanted) > 10
    assert sorted((one.state, one.plain_key, one.at_us) for one in alerts) == sorted(wanted)


def test_days_and_fleets_count_every_reading_and_no_other_message(log: Log, tmp_path: Path) -> None:
    plant = lively(4, 120)
    plant.dies("n1")
    log.holds(plant.sent)
    job = job_of(plant, tmp_path)
    tester, _ = run(job, "days", plant)
    days = tester.windows()
    counts: dict[str, int] = {}
    for unit, metric, *_ in plant.readings:
        counts[f"{unit}/{metric}"] = counts.get(f"{unit}/{metric}", 0) + 1
    assert dict(days.select("sensor", "readings").rows()) == counts
    assert (tester.account.read, tester.account.filtered) == (len(plant.sent), 1)
    fleets = run(job, "fleets", plant)[0].windows()
    assert set(fleets["group"]) == set(plant.METRICS) and fleets["readings"].sum() == len(plant.readings)


def test_dead_nodes_and_lost_messages_are_reported(log: Log, tmp_path: Path) -> None:
    plant = Plant(random.Random(2))
    plant.born("n1")
    plant.born("n2")
    for _ in range(5):
        plant.data("n1", "press", "heat", 1.0)
    plant.seq["n1"] += 3
    plant.data("n1", None, "load", 2.0)
    said = plant.now
    plant.dies("n1")
    died = plant.now - 1_000 + 3
    plant.now += 60_000
    plant.born("n1")
    born = plant.now - 3 + 3
    plant.dies("n1", session=0)  # of the session before: the node is well
    gone = plant.now
    plant.say("DDEATH", "n2", "oven", payload(gone, plant.next_seq("n2")))
    plant.data("n2", "press", "heat", 1.0)
    log.holds(plant.sent)
    tester, alerts = run(job_of(plant, tmp_path), "nodes", plant)
    reported = [(one.rule, one.state, one.plain_key, one.at_us) for one in alerts if one.rule == "dead node"]
    assert reported == [
        ("dead node", "fired", "plant/n1", died * 1000),
        ("dead node", "cleared", "plant/n1", born * 1000),
        ("dead node", "fired", "plant/n2/oven", (gone + 3) * 1000),
    ]
    (lost,) = (one for one in alerts if one.rule == "sequence")
    assert (lost.plain_key, lost.at_us) == ("plant/n1", (said + 3) * 1000)
    assert lost.why == "number 11 came where 8 was due: 3 missing before it"
    assert tester.account.filtered == 1  # the death of a session that was over


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.soak
def test_both_engines_give_the_same(kafka: Any, spark: Any, tmp_path: Path) -> None:
    plant = lively(7, 150)
    plant.dies("n2")
    plant.born("n2")
    plant.seq["n1"] += 2
    plant.data("n1", None, "heat", 45.0)
    job = job_of(plant, tmp_path, {"limit": "40", "hysteresis": "10", "metric": "heat"})
    console = Console(file=io.StringIO())
    local, other = (
        replayed(AppReplay(job, [tmp_path / "recording.txt"], engine), kafka.bootstrap_servers, console)
        for engine in ("local", "spark")
    )
    assert {**other, "engine": "local"} == local
    assert {alert["rule"] for alert in local["alerts"]} == {"limit", "dead node", "sequence"}
    assert local["all_inside_bounds"] and not local["dead_letters"]


def test_data_before_any_birth_are_dead_letters(log: Log, tmp_path: Path) -> None:
    plant = Plant(random.Random(2))
    plant.aliases["plant/n1"] = {"heat": 4}
    plant.seq["n1"] = 40
    plant.data("n1", None, "heat", 31.0)
    plant.say(
        "NDATA", "n1", None, payload(plant.now, 42, {"name": "x", "datatype": DOUBLE, "double_value": 1.0})
    )
    tester, _ = run(job_of(plant, tmp_path, {"limit": "30"}), "readings", plant)
    assert (tester.account.dead_lettered, tester.account.counted) == (1, 1)
    (letter,) = tester.refused
    assert letter.reason == (
        "no earlier birth of plant/n1, which would define its metrics, is known; ask for a rebirth: "
        "true for 'Node Control/Rebirth' at spBv1.0/plant/NCMD/n1"
    )


def test_lost_messages_are_a_rule_that_a_file_may_name(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "lost"\nkind = "sequence"\npart = "nodes"\n')
    job = Job.of(APP, "sparkplug", {}, rules)
    (part,) = (one for one in job.parts if one.name == "nodes")
    alerting = job.alerting(part, [])
    assert alerting is not None and [type(rule) for rule in alerting.rules] == [SequenceGap]
    with pytest.raises(ValueError, match="part must be one of readings, days, clocks, got 'nodes'"):
        Job.of(APP, "json", {}, rules)


def test_a_line_that_is_no_message_and_a_group_that_there_is_not_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "recording.txt"
    path.write_text("1.5 spBv1.0/plant/NDATA/n1 0a\n\n1.5 spBv1.0/plant/NDATA/n1 0\n")
    job = Job.of(APP, "sparkplug", {"group": "colour"})
    with pytest.raises(ValueError, match="line 3: it is not a time, a topic of Sparkplug B and hex"):
        list(job.form.messages(path, job.settings))
    with pytest.raises(ValueError, match="--set group=colour: a reading's group is its metric"):
        job.streams(FEED)


def test_a_packed_recording_is_read_as_a_plain_one(tmp_path: Path) -> None:
    line, path = b"1.5 spBv1.0/plant/NDATA/n1 0a\r\n", tmp_path / "recording.txt.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + line))
    job = Job.of(APP, recording=path)
    assert list(job.form.messages(path, job.settings)) == [(b"\n", b"spBv1.0/plant/NDATA/n1", 1_500)]
