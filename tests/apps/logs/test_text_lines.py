# ruff: noqa: E501  lines are as programs write them
"""Lines of many layouts, each found out by itself; stack traces; layouts of one's own."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.logs.app import APP
from streamgauge.apps.logs.layouts import GROUPS, LAYOUTS, LineLayout, read_layouts
from streamgauge.apps.logs.text_lines import TextLines
from streamgauge.operators.formats.messages import Messages

from .reading import alerts_of, read

LINES = [
    (
        "[Mon Jan 05 04:47:44 2026] [error] [client 192.0.2.9] File does not exist: /x",
        "apache",
        "error",
        "192.0.2.9",
    ),
    (
        "[Mon Jan 05 04:47:44.902022 2026] [core:error] [pid 35708:tid 432] [client 192.0.2.9:8080] AH0: no",
        "apache",
        "error",
        "192.0.2.9",
    ),
    ("[Mon Jan 05 04:47:44 2026] [notice] workerEnv.init() ok", "apache", "notice", None),
    (
        '2026/01/05 04:47:44 [error] 9#0: *1 open() "/x" failed, client: 192.0.2.9, server: a',
        "nginx",
        "error",
        None,
    ),
    ("01-05 04:47:44.811  1702  2395 W WindowManager: slow", "WindowManager", "warning", None),
    (
        "- 1767588464 2026.01.05 R02-M1 2026-01-05-04.47.44.675872 R02-M1 RAS KERNEL FATAL data TLB error",
        "KERNEL",
        "fatal",
        None,
    ),
    (
        "- 1767588464 2026.01.05 dn228 Jan 5 04:47:44 dn228/dn228 crond(pam_unix)[29]: session closed",
        "crond(pam_unix)",
        None,
        None,
    ),
    (
        "134681 node-246 unix.hw state_change.unavailable 1767588464 1 Component State Change",
        "unix.hw",
        None,
        None,
    ),
    (
        "260105 044744 148 INFO dfs.DataNode$PacketResponder: terminating",
        "dfs.DataNode$PacketResponder",
        "info",
        None,
    ),
    (
        "26/01/05 04:47:44 INFO spark.SecurityManager: Changing view acls",
        "spark.SecurityManager",
        "info",
        None,
    ),
    ("20260105-4:47:44:606|Step_LSC|30002312|onStandStepChanged 3579", "Step_LSC", None, None),
    ("[01.05 04:47:44] chrome.exe *64 - a.example:443 open", "chrome.exe", None, None),
    ("I0105 04:47:44.000001   12345 kubelet.go:12] started", "kubelet.go:12", "info", None),
    (
        "nova-api.log.1.2026-01-05_04:47:08 2026-01-05 04:47:44.008 25746 INFO nova.wsgi [req-3 - -] 192.0.2.9 up",
        "nova.wsgi",
        "info",
        None,
    ),
    ("2026-01-05 04:47:44,123 - app.db - WARNING - slow", "app.db", "warning", None),
    (
        "2026-01-05 04:47:44,747 - INFO  [QuorumPeer[myid=1]/0:0:0:0:2181:FastLeaderElection@774] - time out: 3200",
        "FastLeaderElection",
        "info",
        None,
    ),
    (
        "2026-01-05 04:47:44,978 INFO [main] org.apache.hadoop.MRAppMaster: Created",
        "org.apache.hadoop.MRAppMaster",
        "info",
        None,
    ),
    ("2026-01-05 04:47:44.978 [http-1] ERROR c.e.App - no disk", "c.e.App", "error", None),
    ("2026-01-05T04:47:44.978Z  WARN 1 --- [app] [main] o.s.boot.App   : slow", "o.s.boot.App", "warn", None),
    ("2026-01-05 04:47:44, Info                  CBS    Loaded Servicing Stack", "CBS", "info", None),
    (
        '2026-01-05 04:47:44.978 UTC [77] ann@shop ERROR:  relation "x" does not exist',
        "postgres",
        "error",
        None,
    ),
    (
        "2026-01-05T04:47:44.123456Z 0 [Warning] [MY-010068] [Server] CA certificate is self signed",
        "mysqld",
        "warning",
        None,
    ),
    ("[2026-01-05 04:47:44,978: ERROR/MainProcess] Task failed", "MainProcess", "error", None),
    ("[2026-01-05 04:47:44 +0000] [7] [INFO] Booting worker", "gunicorn", "info", None),
    ("2026-01-05 04:47:44 ERROR something is wrong", None, "error", None),
    (
        "2026-01-05 04:47:44 login authenticator failed for (x) [192.0.2.9]: 535 Incorrect authentication data",
        None,
        None,
        "192.0.2.9",
    ),
    ('Mon Jan  5 04:47:44 2026 [pid 7] [ann] FAIL LOGIN: Client "192.0.2.9"', "vsftpd", None, "192.0.2.9"),
]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    written = datetime(2026, 1, 6, tzinfo=UTC).timestamp()
    os.utime(path, (written, written))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("line", "program", "level", "address"), LINES)
def test_a_layout_is_found_out_from_its_line(
    tmp_path: Path, line: str, program: str | None, level: str | None, address: str | None
) -> None:
    name, rows, reasons = read(write(tmp_path / "some.log", [line] * 3))
    assert (name, reasons, rows.height) == ("text", [], 3)
    row = rows.row(0, named=True)
    assert (row["operation"], row["status"], row["address"]) == (program, level, address)
    assert row["at"].replace(microsecond=0) == datetime(2026, 1, 5, 4, 47, 44, tzinfo=UTC)


def test_lines_of_several_layouts_may_stand_in_one_file(tmp_path: Path) -> None:
    name, rows, reasons = read(write(tmp_path / "all.log", [*(line for line, *_ in LINES), "garbage"]))
    assert name == "text" and rows.height == len(LINES)
    assert reasons == ["a line of no layout: 'garbage'"]
    assert rows["operation"].to_list() == [program for _, program, _, _ in LINES]


def test_a_stack_trace_is_one_record(tmp_path: Path) -> None:
    trace = [
        "2026-01-05 04:47:44,978 ERROR [main] a.App: no disk",
        "java.io.IOException: no space left",
        "\tat a.App.main(App.java:3)",
        "Caused by: java.lang.RuntimeException",
        "\t... 3 more",
        "2026-01-05 04:47:45,978 INFO [main] a.App: on",
    ]
    _, rows, _ = read(write(tmp_path / "app.log", trace))
    assert rows.height == 2 and rows["message"][0].startswith("no disk\njava.io.IOException")


def test_a_layout_of_one_s_own(tmp_path: Path) -> None:
    path = write(
        tmp_path / "own.log", ["05.01.2026 05:47;pump 3;WARN;pressure", "05.01.2026 05:48;pump 4;OK;"]
    )
    with pytest.raises(ValueError, match="matches no format of logs"):
        Job.of(APP, None, {}, recording=path)
    pattern = r"^(?<time>[^;]+);(?<program>[^;]+);(?<level>[^;]+);(?<message>.*)$"
    layouts = tmp_path / "layouts.toml"
    layouts.write_text(f"[[layout]]\nname = 'pumps'\ntime = '%d.%m.%Y %H:%M'\npattern = '{pattern}'\n")
    for given in ({"layouts": str(layouts)}, {"pattern": pattern, "time": "%d.%m.%Y %H:%M"}):
        job = Job.of(APP, "text", {**given, "zone": "Europe/Berlin"}, recording=path)
        messages = list(job.form.messages(path, job.settings))
        at = datetime(2026, 1, 5, 4, 47, tzinfo=UTC).timestamp() * 1000
        assert [one.sent_ms for one in messages] == [at, at + 60_000]


def test_an_epoch_is_in_the_unit_that_its_size_says() -> None:
    at = 1_767_225_600
    lines = [f"{at * unit} up" for unit in (1, 1_000, 1_000_000, 1_000_000_000)] + [f"{at}.25 up", "7 up"]
    decoder = TextLines("UTC", (LineLayout("own", r"^(?<epoch>[\d.]+) (?<message>.*)$"),))
    times = decoder.decode(Messages.of([line.encode() for line in lines])).frame["time"]
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    assert times.to_list()[:5] == [begin] * 4 + [begin + timedelta(milliseconds=250)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[layout]\npattern = 'x'", r"write each layout as \[\[layout\]\]"),
        ("[[layout]]\ntime = '%Y'", "layout 1: it needs a pattern"),
        ("[[layout]]\npattern = '(?<time>.*'", "is not a regular expression of Rust"),
        ("[[layout]]\npattern = '(?<host>.*)'", r"needs a group \(\?<time>…\)"),
        ("[[layout]]\npattern = '(?<time>.*)(?<x>.)'", "the group 'x' is not known"),
        ("[[layout]]\npattern = '(?<time>.*)'\nyear = 3", "'year' is not known"),
        ("pattern", "not TOML"),
    ],
)
def test_a_wrong_layout_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "layouts.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_layouts(path)


def test_every_layout_s_groups_mean_something() -> None:
    for layout in LAYOUTS:
        named = pl.Series([""]).str.extract_groups(layout.expression).dtype
        assert {field.name for field in named.fields} <= set(GROUPS), layout.name


def test_refusals_of_web_servers_are_of_the_client_that_they_name(tmp_path: Path) -> None:
    lines = [
        f"[Mon Jan 05 04:47:{n:02} 2026] [error] [client 192.0.2.9] user a{n} from 192.0.2.66 not found: /"
        for n in range(9)
    ]
    _, alerts, _ = alerts_of(
        write(tmp_path / "error.log", [*lines, "[Mon Jan 05 05:47:44 2026] [notice] up"]), "logins"
    )
    assert alerts[0].plain_key == "192.0.2.9"
