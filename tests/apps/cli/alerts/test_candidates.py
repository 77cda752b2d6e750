"""`streamgauge alerts candidate | voevent`: a candidate's page as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ...command import Ran
from ...supernova.made import JD, as_json, passing


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """Two candidates and a faint object, as lines of JSON."""
    one = passing("ZTF26page", JD, 18.0)
    flux = {"fid": 1, "forcediffimflux": 1000.0, "forcediffimfluxunc": 10.0, "magzpsci": 26.0}
    one["fp_hists"] = [{**flux, "jd": JD - 2}]
    lines = [one, passing("ZTF26other", JD + 1, 18.5), passing("ZTF26faint", JD + 2, 20.5)]
    path = tmp_path / "night.jsonl"
    path.write_bytes(b"".join(as_json(line) + b"\n" for line in lines))
    return path


def test_a_candidate_s_page_is_made_from_recorded_packets(ran: Ran, night: Path, tmp_path: Path) -> None:
    extract = tmp_path / "tns.csv"
    extract.write_text("ra,dec,name,type\n150.0,20.0001,SN 2026abc,SN Ia\n")
    page = tmp_path / "page.html"
    ran("alerts", "candidate", "ZTF26page", "--input", night, "--output", page, "--set", f"catalog={extract}")
    html = page.read_text()
    assert "<title>ZTF26page</title>" in html and "passed bts" in html and "SN 2026abc" in html
    assert html.count('class="seen"') == 2 and html.count('class="forced"') == 1
    assert html.count('class="limit"') == 1 and "ZTF26other" not in html


def test_what_there_is_no_page_of_is_said(ran: Ran, night: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    said = ran("alerts", "candidate", "ZTF26faint", "--input", night, "--output", page, code=1)
    assert "no alert of 'ZTF26faint' passed the cuts bts" in said and "ZTF26other, ZTF26page" in said
    assert "--input FILE, or a server" in ran("alerts", "candidate", "ZTF26page", code=1)
    said = ran("alerts", "candidate", "a", "--server", "http://127.0.0.1:1", "--output", page, code=1)
    assert "can't be reached" in said and not page.exists()


def test_lines_without_an_event_leave_nothing_behind(ran: Ran, tmp_path: Path) -> None:
    lines, folder = tmp_path / "alerts.jsonl", tmp_path / "events"
    lines.write_text("\n".join(["{", "[]", "7", json.dumps({"rule": "x"})]))
    said = ran("alerts", "voevent", lines, "--author", "ivo://org.example/x", "--output", folder)
    assert "0 events; 4 lines left out" in said and not list(folder.iterdir())
    said = ran("alerts", "voevent", lines, "--author", "me", "--output", tmp_path / "none", code=1)
    assert "ivo://org.example/candidates" in said and not (tmp_path / "none").exists()
