"""Candidates and places that are watched, reported once; and by a file of rules."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.supernova.rules import Candidate, Watch
from streamgauge.operators.rules.row import Row

DAY = 86_400_000_000


def row(name: str, day: float, mag: float | None, ra: float | None = 10.0, dec: float | None = 20.0) -> Row:
    at = int(day * DAY)
    return Row({"object": name, "band": "r"}, at, at, {"candidate": mag, "ra": ra, "dec": dec})


def alerts_of(rule: Any, rows: list[Row], restarts: int = 0) -> list[tuple[Any, ...]]:
    """What a rule reports of rows, one window each, its state written down and read so often on the way."""
    dice, state, collected = random.Random(restarts), rule.begin(), []
    for one in rows:
        collected += [
            (alert.key, alert.at_us / DAY) for alert in rule.window(state, [one], one.at_us, one.at_us, 0)
        ]
        collected += list(rule.advance(state, one.at_us, 0))
        if restarts and dice.random() < 0.5:
            state = json.loads(json.dumps(state))
    return collected


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_candidate_is_reported_once_until_it_is_forgotten(restarts: int) -> None:
    rule = Candidate("c", value="candidate", below=19.8, forget="30d")
    rows = [row("a", 1, None), row("a", 2, 19.0), row("b", 2, 18.0), row("a", 3, 18.0), row("c", 3, 19.8)]
    rows += [
        row("a", 31, 18.0),
        row("b", 32, 18.0),
        row("b", 62.5, 18.0),
        row("a", 99, None),
        row("a", 200, 18.0),
    ]
    wanted = [(("a",), 2), (("b",), 2), (("b",), 62.5), (("a",), 200)]
    assert alerts_of(rule, rows, restarts) == wanted


def test_what_was_reported_long_ago_takes_no_place() -> None:
    rule = Candidate("c", value="candidate", forget="30d")
    state = rule.begin()
    for name in range(1000):
        one = row(str(name), name, 18.0)
        list(rule.window(state, [one], one.at_us, one.at_us, 0))
        list(rule.advance(state, one.at_us, 0))
    assert len(state["keys"]) == 61


def test_known_objects_are_none_by_name_or_place(tmp_path: Path) -> None:
    known = tmp_path / "known.csv"
    known.write_text("name,ra,dec\nb,,\nstar,10,20\n")
    rule = Candidate("c", value="candidate", known=str(known), radius=3)
    off = 2.9 / 3600
    rows = [row("a", 1, 18.0, 10, 20 + off), row("b", 1, 18.0, 50, 50), row("c", 1, 18.0, 10, 20 + 2 * off)]
    rows += [row("d", 2, 18.0, None, None)]
    assert [key for key, _ in alerts_of(rule, rows)] == [("c",), ("d",)]


def test_an_object_is_reported_once_for_each_place_that_is_watched(tmp_path: Path) -> None:
    watched = tmp_path / "watch.csv"
    watched.write_text("name,ra,dec,radius\nwide,10,20,60\nnarrow,10,20,\n")
    rule = Watch("w", value="candidate", places=str(watched), radius=2)
    rows = [
        row("a", 1, 18.0, 10, 20 + 30 / 3600),
        row("a", 2, 18.0, 10, 20),
        row("a", 3, 18.0),
        row("b", 3, None),
    ]
    rows += [row("c", 4, 18.0, None, None), row("b", 5, 18.0, 11, 20)]
    assert alerts_of(rule, rows) == [(("a", "wide"), 1), (("a", "narrow"), 2)]
    (alert, _) = rule.window(rule.begin(), [row("a", 2, 18.0, 10, 20 + 1 / 3600)], 0, 0, 0)
    assert (round(alert.value or 0, 6), alert.limit) == (1, 60)
    assert alert.why == "r 18.00 at 10.00000 +20.00028, 1.00″ from wide: within 60″"


def test_a_file_of_rules_can_name_them(tmp_path: Path) -> None:
    file, watched = tmp_path / "rules.toml", tmp_path / "watch.csv"
    watched.write_text("name,ra,dec\na,1,2\n")
    file.write_text(
        '[[rule]]\nname = "bright"\nkind = "candidate"\npart = "curves"\nvalue = "candidate"\nbelow = 17\n'
        f'[[rule]]\nname = "mine"\nkind = "watch"\npart = "curves"\nvalue = "seen"\nplaces = "{watched}"\n'
    )
    job = Job.of(app_of("supernova"), "ztf", rules=file)
    bright, mine = job.rules["curves"]
    assert isinstance(bright, Candidate) and bright.below == 17 and isinstance(mine, Watch)


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        (Candidate, {}, "the rule 'x': value must name an answer"),
        (Candidate, {"value": "m", "forget": "0s"}, "forget must be a duration such as '365d', got '0s'"),
        (Watch, {"value": "m"}, "places is not given"),
    ],
)
def test_wrong_fields_are_refused(kind: Any, fields: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        kind("x", **fields)
    with pytest.raises(OSError):
        Candidate("x", value="m", known="/nowhere/known.csv")
