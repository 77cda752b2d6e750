"""The app on recordings and on drawn packets: what cuts fell, what is reported, against plain Python."""

from __future__ import annotations

import io
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from streamgauge.apps.app import Feed, Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.jobs.outcome import AlertList, events
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.recording import RecordedMessages
from streamgauge.apps.running.replaying import AppReplay, replayed
from streamgauge.apps.running.report import AppReport
from streamgauge.operators.testing import StreamTester

from .made import JD, as_json, container, fink_rows, packet, passing, rubin
from .plain_cuts import SETS, Alert, rubin_rising


def run(job: Job, messages: list[Message]) -> tuple[dict[str, StreamTester], list[dict[str, Any]]]:
    """Each part in a tester, and the alerts."""
    fed, testers = AlertList(), {}
    streams = job.streams(Feed("t", "localhost:1"))
    times = [datetime.fromtimestamp((one.sent_ms or 0) / 1000, UTC) for one in messages]
    for part in job.parts:
        alerting = job.alerting(part, [fed])
        tester = StreamTester(
            streams[part.name], start=datetime.now(UTC), sinks=[] if alerting is None else [alerting]
        )
        tester.feed_messages([m.value for m in messages], [m.key for m in messages], timestamps=times)
        testers[part.name] = tester.finish()
    return testers, events(fed.alerts)


def fates(tester: StreamTester) -> Counter[tuple[str, str]]:
    result: Counter[tuple[str, str]] = Counter()
    for row in tester.windows().iter_rows(named=True):
        result[row["set"], row["cut"]] += row["alerts"]
    return result


def plain_fates(packets: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((name, cut(Alert(one))) for one in packets for name, cut in SETS.items())


@pytest.mark.slow
def test_drawn_packets_fall_where_plain_python_says_and_objects_are_reported_once() -> None:
    dice = random.Random(11)
    packets = [packet(dice, f"ZTF26{at % 40:07}", JD + at / 200) for at in range(800)]
    values = [(container(one) if at % 2 else as_json(one)) for at, one in enumerate(packets)]
    messages = [Message(value, b"k", 1_756_800_000_000 + at) for at, value in enumerate(values)]
    messages += [Message(b"Obj\x01broken", b"k"), Message(b'{"objectId": "ZTF"}', b"k"), Message(b"?", b"k")]
    testers, fed = run(Job.of(app_of("supernova"), "ztf"), messages)
    assert testers["nights"].account.to_dict() == {
        "read": 803,
        "counted": 800,
        "filtered": 0,
        "late": 0,
        "dead_lettered": 3,
    }
    result = fates(testers["funnel"])
    assert result == plain_fates(packets)
    # The draw reaches every cut, so that the comparison is of each of them.
    assert {cut for name, cut in result if name == "bts"} >= {
        "passed",
        "lasting",
        "real",
        "no star underneath",
    }
    assert len({cut for name, cut in result if name == "bts"}) == 10
    passing = {one["objectId"] for one in packets if SETS["bts"](Alert(one)) == "passed"}
    candidates = [one for one in fed if one["rule"] == "candidate"]
    assert sorted(one["key"] for one in candidates) == sorted(passing) and 3 < len(passing) < 40
    first = {}
    for one in packets:
        if SETS["bts"](Alert(one)) == "passed":
            first.setdefault(one["objectId"], one["candidate"]["magpsf"])
    assert {one["key"]: one["value"] for one in candidates} == first


def test_the_recorded_alerts_that_pass_are_29_of_7_objects(recordings: Path) -> None:
    path = recordings / "astronomy" / "ztf_few_slsn_alerts.parquet"
    job = Job.of(app_of("supernova"), recording=path)
    assert job.form.name == "fink"
    testers, messages = run(job, list(RecordedMessages(job, [path]).messages()))
    rows = fink_rows(recordings)
    passing = {one["objectId"] for one in rows if SETS["bts"](Alert(one)) == "passed"}
    fed = fates(testers["funnel"])
    assert fed["bts", "passed"] == 29 and fed == plain_fates(rows)
    assert {one["key"] for one in messages if one["kind"] == "candidate"} == passing
    # Of 15 superluminous supernovae, most of them months old.
    assert (len(passing), len({one["objectId"] for one in rows})) == (7, 15)
    assert testers["nights"].account.counted == len(rows) == 55
    nights = testers["nights"].windows().sort("night")
    assert nights["night"].to_list() == [f"2025-09-0{day}" for day in range(1, 6)]
    days = {(one["objectId"], one["candidate"]["nid"]) for one in rows}
    objects = testers["objects"].windows()
    assert objects.height == len(days) and objects["passed"].sum() == 29
    curves = testers["curves"].windows()
    assert curves["mag"].null_count() > 0 and curves["limit"].null_count() < curves.height
    shown = curves.drop_nulls("science")
    assert shown.height == 29 and shown["science"].bin.starts_with(b"\x89PNG").all()


def test_sn_2020oi_is_a_candidate_among_raw_packets(recordings: Path) -> None:
    paths = sorted((recordings / "astronomy" / "ztf").glob("*.avro"))
    job = Job.of(app_of("supernova"), recording=paths[0])
    assert job.form.name == "ztf"
    testers, messages = run(job, list(RecordedMessages(job, paths).messages()))
    assert testers["nights"].account.counted == 12
    first = next(one for one in messages if one["key"] == "ZTF20aaelulu")
    assert first["kind"] == "candidate" and first["at"].startswith("2020-01-11T12:32:05")
    assert "g 14.92 at 185.72885 +15.82362, passed bts" in first["why"]
    assert "SN" not in first["why"]


def test_what_is_known_is_not_reported_and_places_are_watched(recordings: Path, tmp_path: Path) -> None:
    paths = sorted((recordings / "astronomy" / "ztf").glob("*.avro"))
    known, watch = tmp_path / "known.csv", tmp_path / "watch.csv"
    known.write_text("name,ra,dec\nSN 2020oi,12:22:54.93,+15:49:25.1\nZTF20aajcdad,,\n")
    watch.write_text("name,ra,dec,radius\nM 100,185.72846,15.82181,30\nnowhere,10,10,60\n")
    given = {"known": str(known), "watch": str(watch)}
    job = Job.of(app_of("supernova"), given=given, recording=paths[0])
    _, messages = run(job, list(RecordedMessages(job, paths).messages()))
    by_rule = {
        rule: [one["key"] for one in messages if one["rule"] == rule] for rule in ("candidate", "watch")
    }
    assert by_rule["candidate"] == ["ZTF20aafsnpp"]
    assert by_rule["watch"] == [["ZTF20aaelulu", "M 100"]]
    seen = next(one for one in messages if one["rule"] == "watch")
    assert 6 < seen["value"] < 7 and seen["limit"] == 30 and "from M 100: within 30″" in seen["why"]


def test_rubin_s_packet_is_counted_and_falls_as_it_is_a_negative_one(recordings: Path) -> None:
    pytest.importorskip("lsst.alert.packet")
    path = recordings / "astronomy" / "rubin_kafka_packet_schema_900.avro"
    job = Job.of(app_of("supernova"), recording=path)
    assert job.form.name == "rubin" and job.settings["cuts"] == "rising"
    testers, messages = run(job, list(RecordedMessages(job, [path]).messages()))
    assert fates(testers["funnel"]) == Counter({("rising", "positive"): 1}) and not messages


def test_what_is_new_and_rising_in_rubin_s_packets_is_as_in_plain_python() -> None:
    dice = random.Random(21)
    packets = [rubin(dice, name) for name in range(1, 1001)]
    messages = [Message(as_json(one), b"k", 1_763_600_000_000 + at) for at, one in enumerate(packets)]
    job = Job.of(app_of("supernova"), "rubin", {"registry": "http://localhost:1"})
    testers, fed = run(job, messages)
    result = fates(testers["funnel"])
    assert result == Counter(("rising", rubin_rising(one)) for one in packets) and len(result) == 7
    wanted = {str(one["diaSource"]["diaObjectId"]) for one in packets if rubin_rising(one) == "passed"}
    assert {one["key"] for one in fed if one["rule"] == "candidate"} == wanted and len(wanted) > 9


def test_a_flash_is_far_above_the_object_s_own_past_in_its_band() -> None:
    days = [(day, 18.0 + 0.02 * (day % 3), 1) for day in range(8)]
    # Another band has a past of its own, and a second flash is reported too; a mere 0.8 mag is none.
    days += [(8, 16.5, 2), (9, 17.2, 1), (10, 16.9, 1), (11, 18.0, 1), (12, 16.0, 1)]
    packets = [passing("ZTF26flash", JD + day, mag, fid) for day, mag, fid in days]
    dim = [passing("ZTF26dim", JD + day, 19.0, 1) for day in range(12)]
    messages = [
        Message(as_json(one), b"k", int((one["candidate"]["jd"] - 2_440_587.5) * 86_400_000))
        for one in sorted([*packets, *dim], key=lambda one: one["candidate"]["jd"])
    ]
    testers, fed = run(Job.of(app_of("supernova"), "ztf"), messages)
    flashes = [one for one in fed if one["kind"] == "flash"]
    assert [one["at"][:10] for one in flashes] == ["2025-09-12", "2025-09-14"]
    assert all("ZTF26flash" in str(one["key"]) and one["value"] > 2.5 for one in flashes)
    assert sorted(one["key"] for one in fed if one["kind"] == "candidate") == ["ZTF26dim", "ZTF26flash"]
    curve = testers["curves"].windows().filter(pl.col("object") == "ZTF26flash")
    assert curve.filter(pl.col("mag").is_null() & (pl.col("limit") == 20.6))["at"].n_unique() == 13


def test_forced_photometry_is_in_light_curves_and_gives_way_to_detections() -> None:
    one = passing("ZTF26forced", JD, 18.0)
    flux = {"fid": 1, "forcediffimflux": 1000.0, "forcediffimfluxunc": 10.0, "magzpsci": 26.0}
    # One is in an exposure of its own, the other in that of the alert.
    one["fp_hists"] = [{**flux, "jd": JD - 2}, {**flux, "jd": JD}]
    testers, fed = run(Job.of(app_of("supernova"), "ztf"), [Message(as_json(one), b"k", 1_756_800_000_000)])
    assert [alert["key"] for alert in fed] == ["ZTF26forced"]
    curve = testers["curves"].windows().sort("at", "band")
    assert curve["mag"].to_list() == [None, 18.5, 18.5, 18.0] and curve["forced"].to_list() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("format", "given", "said"),
    [
        ("ztf", {"cuts": "best"}, "--set cuts=best: the cuts for ztf are purity, quality, bts, rising"),
        ("ztf", {"flash": "much"}, "--set flash must be a number"),
        ("ztf", {"registry": "x"}, "--set registry: supernova has no such setting"),
        ("rubin", {"registry": "http://localhost:1", "cuts": "bts"}, "the cuts for rubin are rising"),
    ],
)
def test_wrong_settings_are_said(format: str, given: dict, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        Job.of(app_of("supernova"), format, given).streams(Feed("t", "localhost:1"))
    assert said in str(refused.value)


def result_of(kafka: Any, recordings: Path, engine: str, given: dict[str, str]) -> dict[str, Any]:
    path = recordings / "astronomy" / "ztf_few_slsn_alerts.parquet"
    job = Job.of(app_of("supernova"), given=given, recording=path)
    return replayed(AppReplay(job, [path], engine), kafka.bootstrap_servers, Console(file=io.StringIO()))


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.soak
def test_both_engines_report_the_same(kafka, spark, recordings: Path, tmp_path: Path) -> None:
    places = {one["objectId"]: one["candidate"] for one in fink_rows(recordings)}
    extract = tmp_path / "mine.csv"
    lines = [
        f"{one['ra']},{one['dec']},{name},{'AGN' if at % 3 else 'G'}"
        for at, (name, one) in enumerate(places.items())
    ]
    extract.write_text("\n".join(["ra,dec,name,type", *lines]) + "\n")
    given = {"catalog": str(extract), "exclude": "agn", "host": "20"}
    local, other = (result_of(kafka, recordings, engine, given) for engine in ("local", "spark"))
    assert {**other, "engine": "local"} == local
    assert all("; matches " in one["why"] for one in local["alerts"] if one["kind"] == "candidate")
    assert {row["cut"] for row in local["answers"]["funnel"]} > {"not catalogued"}


@pytest.mark.kafka
def test_the_recorded_alerts_through_a_broker(kafka, recordings: Path) -> None:
    local = result_of(kafka, recordings, "local", {})
    assert local["account"]["counted"] == 55 and local["all_inside_bounds"]
    funnel = local["answers"]["funnel"]
    assert sum(row["alerts"] for row in funnel if (row["set"], row["cut"]) == ("bts", "passed")) == 29
    shown = io.StringIO()
    Console(file=shown, width=160).print(AppReport(app_of("supernova"), local))
    assert "7 × candidate" in shown.getvalue() and "funnel" in shown.getvalue()
