"""Alerts beside extracts: what reasons and columns say, and which alerts fall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.recording import RecordedMessages
from streamgauge.apps.supernova.catalogs.cross_match import Crossing, with_matches
from streamgauge.operators.definition.functions import WrongRows

from ..test_app import fates, run

GALAXIES = "ra,dec,name,type,z\n185.72846,15.82181,M 100,Galaxy,0.00524\n185.74,15.83,faint,G,0.4\n"
SUPERNOVAE = "ra,dec,name,type\n185.72887,15.82363,SN 2020oi,SN Ic\n"


def written(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def reported(recordings: Path, **given: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    paths = sorted((recordings / "astronomy" / "ztf").glob("*.avro"))
    job = Job.of(app_of("supernova"), given=given, recording=paths[0])
    return run(job, list(RecordedMessages(job, paths).messages()))


def test_a_candidate_s_reason_and_columns_say_what_is_there(recordings: Path, tmp_path: Path) -> None:
    extracts = [written(tmp_path, "ned.csv", GALAXIES), written(tmp_path, "tns.csv", SUPERNOVAE)]
    testers, alerts = reported(recordings, catalog=",".join(extracts))
    why = next(one["why"] for one in alerts if one["key"] == "ZTF20aaelulu")
    assert "; matches SN 2020oi (SN Ic) 0.09″ in tns; host M 100 6.64″ away, z 0.00524" in why
    row = testers["objects"].windows().row(by_predicate=pl.col("object") == "ZTF20aaelulu", named=True)
    assert (row["match"], row["match_type"], row["match_in"]) == ("SN 2020oi", "SN Ic", "tns")
    assert (row["host"], round(row["host_distance"], 2), row["host_z"]) == (
        "M 100",
        6.64,
        pytest.approx(0.00524),
    )
    others = [one["why"] for one in alerts if one["key"] != "ZTF20aaelulu"]
    assert others and not any("match" in why or "host" in why for why in others)


def test_alerts_fall_by_what_is_catalogued_and_for_want_of_a_host(recordings: Path, tmp_path: Path) -> None:
    star = "ra,dec,name,type\n185.72885,15.8237,V1,RRAB\n"
    extracts = ",".join([written(tmp_path, "ned.csv", GALAXIES), written(tmp_path, "vsx.csv", star)])
    candidates = {
        name: {one["key"] for one in reported(recordings, catalog=extracts, **given)[1]}
        for name, given in {
            "all": {},
            "variable": {"exclude": "agn,variable"},
            "star": {"exclude": "star"},
            "type": {"exclude": "type:rrab"},
            "agn": {"exclude": "agn"},
            "near": {"exclude": "variable", "catalog_radius": "0.1"},
            "host": {"host": "10"},
            "nearer host": {"host": "6"},
        }.items()
    }
    everything = candidates["all"]
    assert "ZTF20aaelulu" in everything and len(everything) > 1
    for fell in ("variable", "star", "type"):
        assert candidates[fell] == everything - {"ZTF20aaelulu"}
    assert candidates["agn"] == candidates["near"] == everything
    assert candidates["host"] == {"ZTF20aaelulu"} and candidates["nearer host"] == set()
    testers, _ = reported(recordings, catalog=extracts, exclude="variable", host="10")
    funnel = fates(testers["funnel"])
    passed = fates(reported(recordings)[0]["funnel"])["bts", "passed"]
    assert funnel["bts", "not catalogued"] == 1 and funnel["bts", "host"] == passed - 1 > 0


def test_the_nearest_is_named_whatever_the_order_of_files_and_rows(tmp_path: Path) -> None:
    near, far = "10.0001,20,near,G", "10.0002,20,far,G"
    one = written(tmp_path, "one.csv", f"ra,dec,name,type\n{far}\n{near}\n")
    other = written(tmp_path, "other.csv", "ra,dec,name,type\n10.00005,20,nearest,AGN\n")
    rows = pl.DataFrame({"ra": [10.0, None, 200.0], "dec": [20.0, 20.0, -80.0]})
    for paths in ((one, other), (other, one)):
        result = with_matches(rows, Crossing(paths, exclude=("galaxy",)))
        assert result["match"].to_list() == ["nearest", None, None] == result["host"].to_list()
        assert result["excluded"][0] == "near (G) 0.34″ in one"
        assert result["matches"][0].count("″") == 2
    assert result["match_distance"][0] == pytest.approx(0.169, abs=1e-3)


def test_a_file_that_breaks_while_a_run_goes_on_ends_it(tmp_path: Path) -> None:
    path = written(tmp_path, "one.csv", "ra,dec,name\n1,2,a\n")
    crossing = Crossing((path,))
    Path(path).write_text("ra,dec,name\n1,100,a\n")
    with pytest.raises(WrongRows, match=r"one\.csv: row 1: ra and dec must be degrees"):
        with_matches(pl.DataFrame({"ra": [1.0], "dec": [2.0]}), crossing)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"exclude": "varable"},
            "--set exclude=varable: the classes are star, variable, agn, galaxy, supernova",
        ),
        ({"catalog_radius": "wide"}, "--set catalog_radius must be a number"),
        ({"catalog_radius": "5000"}, "--set catalog_radius must be arcseconds, at most 3600, got 5000"),
        ({"host": "-1"}, "--set host must be a number from 0 on"),
        ({"catalog": "", "host": "3"}, "--set host=3 goes by a catalogue; name one by --set catalog=FILE"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, str], said: str, tmp_path: Path) -> None:
    given = {"catalog": written(tmp_path, "one.csv", "ra,dec,name\n1,2,a\n"), **given}
    with pytest.raises(ValueError) as refused:
        Job.of(app_of("supernova"), "ztf", given).streams(Feed("t", "localhost:1"))
    assert said in str(refused.value)


def test_a_file_that_is_none_is_refused_before_a_run_begins(tmp_path: Path) -> None:
    for path, error in (
        (str(tmp_path / "none.csv"), OSError),
        (written(tmp_path, "x.csv", "a\n1\n"), ValueError),
    ):
        with pytest.raises(error):
            Job.of(app_of("supernova"), "ztf", {"catalog": path}).streams(Feed("t", "localhost:1"))
