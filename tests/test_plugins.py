"""Apps and kinds of rules of another package, which is on the path with the metadata that pip would write."""

from __future__ import annotations

import importlib
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_names, app_of
from streamgauge.operators.plugins import PluginError
from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.toml_rules import read_rules, rules_of
from streamgauge.rules import Alerting, AlertsToFile

HARBOUR = '''
"""Tides of a harbour."""

from dataclasses import dataclass

import polars as pl

from streamgauge import count, json
from streamgauge.apps.app import App, AppFormat, AppPart, Message
from streamgauge.operators.rules.rule import LimitRule, Measured
from streamgauge.operators.rules.kinds.threshold import Threshold


@dataclass(frozen=True)
class Tide(LimitRule):
    """The level above that of the key's window before."""

    def measure(self, memory, row, figure):
        before, memory["value"] = memory.get("value"), figure.value
        return None if before is None else Measured(figure.map(lambda value: value - before), "rose")


def source(feed, settings):
    levels = json({"gauge": pl.String, "level": pl.Float64, "at": pl.String})
    return feed.stream(levels, time="at")


def messages(path, settings):
    return (Message(line.encode()) for line in path.read_text().splitlines())


APP = App(
    name="harbour",
    title="Tides",
    formats=[AppFormat("json", "a reading", source, lambda path, head: head[:1] == b"{", messages)],
    parts=[
        AppPart(
            "levels",
            lambda rows: rows.group_by("gauge").tumbling("10m").agg(readings=count()),
            lambda settings: [Threshold("busy", value="readings", at_least=3)],
        )
    ],
)
'''

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package and its metadata on the path: its source, and its entry points by their group."""

    def put(name: str, source: str, **groups: str) -> None:
        (tmp_path / f"{name}.py").write_text(source)
        about = tmp_path / f"{name}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        lines = [f"[streamgauge.{group}]\n{text}\n" for group, text in groups.items()]
        (about / "entry_points.txt").write_text("\n".join(lines))
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path)
    return put


def test_an_app_of_another_package_runs_by_its_name(install: Install, tmp_path: Path) -> None:
    install("harbour_gauge", HARBOUR, apps="harbour = harbour_gauge:APP")
    assert app_names() == [*APPS, "harbour"]
    app = app_of("harbour")
    recording = tmp_path / "levels.jsonl"
    recording.write_text('{"gauge": "north", "level": 3.5, "at": "2026-01-01T00:00:00Z"}\n' * 3)
    job = Job.of(app, None, {}, None, recording)
    alerts = tmp_path / "alerts.jsonl"
    alerting = Alerting(job.rules["levels"], to=[AlertsToFile(alerts)])
    tester = StreamTester(job.streams(Feed("levels", "localhost:1"))["levels"], sinks=[alerting])
    tester.feed_messages([message.value for message in job.form.messages(recording, {})])
    assert tester.finish().windows()["readings"].to_list() == [3]
    (alert,) = map(json.loads, alerts.read_text().splitlines())
    assert (alert["rule"], alert["key"], alert["state"]) == ("busy", "north", "fired")


def test_a_kind_of_rule_of_another_package_is_read_from_a_file(install: Install, tmp_path: Path) -> None:
    install("harbour_gauge", HARBOUR, rules="tide = harbour_gauge:Tide")
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nname = "flood"\nkind = "tide"\nvalue = "level"\nabove = 2\n')
    (rule,) = read_rules(path)
    state = rule.begin()
    rows = [Row({}, minute, minute + 1, {"level": level}) for minute, level in enumerate([1, 2, 5])]
    alerts = [alert for row in rows for alert in rule.window(state, [row], row.start_us, row.at_us, 1)]
    assert [(alert.rule, alert.state, alert.value) for alert in alerts] == [("flood", "fired", 3.0)]


def test_the_help_names_the_apps_and_imports_none(install: Install, tmp_path: Path) -> None:
    install("harbour_gauge", "raise RuntimeError('no tide today')", apps="harbour = harbour_gauge:APP")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
        "from streamgauge.apps.cli.commands import main; main()"
    )
    for arguments in (["--help"], ["run", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert "harbour" in done.stdout


def test_one_that_cannot_be_imported_is_refused_by_its_package(install: Install) -> None:
    install(
        "harbour_gauge", "import no_such_module", apps="a = harbour_gauge:APP", rules="b = harbour_gauge:B"
    )
    with pytest.raises(
        PluginError, match=r"'a' of harbour_gauge 1.2 \(harbour_gauge:APP\) can't be loaded.*no_such"
    ):
        app_of("a")
    with pytest.raises(
        PluginError, match=r"rules, line 1: the rule 'r': 'b' of harbour_gauge 1.2 .* can't be"
    ):
        rules_of('[[rule]]\nname = "r"\nkind = "b"\n')
    assert app_of("logs").name == "logs"


def test_what_is_not_an_app_or_a_rule_is_refused(install: Install) -> None:
    more = "\n\nNOTHING = 5\n"
    apps = "nothing = harbour_gauge:NOTHING\nport = harbour_gauge:APP"
    install("harbour_gauge", HARBOUR + more, apps=apps, rules="nothing = harbour_gauge:NOTHING")
    with pytest.raises(PluginError, match="must be an App, got 5"):
        app_of("nothing")
    with pytest.raises(PluginError, match="must be an app of the same name, got 'harbour'"):
        app_of("port")
    with pytest.raises(PluginError, match="must be a dataclass below Rule, got 5"):
        rules_of('[[rule]]\nname = "r"\nkind = "nothing"\n')


def test_a_built_in_name_stays_the_packages_own(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    install("harbour_gauge", HARBOUR, apps="iot = harbour_gauge:APP", rules="threshold = harbour_gauge:Tide")
    assert app_names() == list(APPS)
    with caplog.at_level(logging.WARNING, "streamgauge"):
        assert app_of("iot").title != "Tides"
        (rule,) = rules_of('[[rule]]\nname = "r"\nkind = "threshold"\nvalue = "v"\nabove = 1\n')
    assert type(rule).__module__.startswith("streamgauge.")
    for name in ("iot", "threshold"):
        assert f"harbour_gauge 1.2 offers {name!r}" in caplog.text


def test_a_name_of_two_packages_is_of_neither(install: Install) -> None:
    for package in ("harbour_gauge", "other_harbour"):
        install(package, HARBOUR, apps=f"harbour = {package}:APP")
    with pytest.raises(PluginError, match=r"of one package, got harbour_gauge 1.2, other_harbour 1.2"):
        app_of("harbour")


def test_names_that_nobody_offers_are_listed_with_those_that_are(install: Install) -> None:
    install("harbour_gauge", HARBOUR, apps="harbour = harbour_gauge:APP", rules="tide = harbour_gauge:Tide")
    with pytest.raises(ValueError, match=r"'port' is not an app; there are trending, .*, harbour"):
        app_of("port")
    with pytest.raises(ValueError, match=r"kind must be one of threshold, .*, tide, got 'tides'"):
        rules_of('[[rule]]\nname = "r"\nkind = "tides"\n')
