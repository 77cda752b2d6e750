"""Recordings of syslog: years, refused logins counted once each, lines that are not syslog."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from .reading import alerts_of, job_of, read

SSH = [
    "Dec 31 23:59:58 web sshd[1]: Invalid user ann from 192.0.2.9",
    "Dec 31 23:59:59 web sshd[1]: pam_unix(sshd:auth): authentication failure; uid=0 rhost=192.0.2.9",
    "Jan  1 00:00:00 web sshd[1]: Failed password for invalid user ann from 192.0.2.9 port 38926 ssh2",
    "Jan  1 00:00:07 web sshd[1]: message repeated 3 times: [ Failed password for root from 192.0.2.9]",
    "Jan  1 00:00:08 web sshd[1]: Disconnecting: Too many authentication failures for root",
    "Jan  1 00:00:08 web sshd[1]: PAM 2 more authentication failures; logname= rhost=192.0.2.9  user=root",
    "-- garbage --",
    "Jan  1 00:01:00 web sshd(pam_unix)[19939]: authentication failure; ruser= rhost=host.example ",
    "<11>Jan  1 00:02:00 web app: the disk is full",
    "<14>1 2026-01-01T00:03:00Z db postgres 77 - - connection from 2001:db8::7 port 5",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "auth.log"
    file.write_text("\n".join(SSH) + "\n")
    written = datetime(2026, 1, 3, tzinfo=UTC).timestamp()
    os.utime(file, (written, written))
    return file


def test_lines_become_the_columns_of_all_formats(path: Path) -> None:
    name, rows, reasons = read(path)
    assert name == "syslog" and reasons == ["not a message of syslog: '-- garbage --'"]
    assert rows["refused"].to_list() == [1, 0, 1, 3, 1, 0, 1, 0, 0]
    assert rows["failed"].to_list() == [0, 1, 1, 1, 1, 1, 1, 1, 0]
    addresses = ["192.0.2.9"] * 6 + ["host.example", None, "2001:db8::7"]
    assert rows["address"].to_list() == addresses
    assert rows["user"].to_list() == ["ann", None, "ann", "root", "root", "root", None, None, None]
    assert rows["status"].to_list() == [None] * 7 + ["err", "info"]
    assert set(rows["host"]) == {"web", "db"} and rows["operation"][-1] == "postgres"
    assert rows["term"][2] == "sshd: Failed password for <user> from <address> port <n> <n>"
    assert rows["term"][-1] == "postgres: connection from <address> port <n>"


def test_a_file_without_years_ends_in_the_year_of_its_own_time(path: Path) -> None:
    account, _, windows = alerts_of(path, "days")
    assert (account.counted, account.late, account.dead_lettered) == (9, 0, 1)
    days = [f"{start:%Y-%m-%d}" for start in windows["window_start"]]
    assert days == ["2025-12-31", "2026-01-01"] and windows["records"].to_list() == [2, 7]
    old = alerts_of(path, "days", {"year": "2003"})[2]
    assert [f"{start:%Y}" for start in old["window_start"]] == ["2003", "2004", "2026"]
    with pytest.raises(ValueError, match="--set year must be a year, such as 2024, got now"):
        alerts_of(path, "days", {"year": "now"})


def test_an_address_that_fails_to_log_in_is_reported_once(path: Path) -> None:
    quiet = [f"Jan  1 0{hour}:00:00 web cron[1]: nothing" for hour in range(1, 4)]
    path.write_text("\n".join([*SSH[:4], *SSH[2:4], *quiet]) + "\n")
    _, alerts, _ = alerts_of(path, "logins", {"year": "2025"})
    assert [(a.rule, a.state, a.plain_key) for a in alerts] == [
        ("brute force", "fired", "192.0.2.9"),
        ("brute force", "cleared", "192.0.2.9"),
    ]
    assert alerts[0].value == 8 and alerts[0].why == "refused adds up to 8 in 10m: at least 5"
    assert alerts_of(path, "logins", {"year": "2025", "logins": "9"})[1] == []


def test_the_zone_is_that_of_times_that_name_none(path: Path) -> None:
    job = job_of(path, {"zone": "Europe/Berlin", "year": "2025"})
    sent = [message.sent_ms for message in job.form.messages(path, job.settings)]
    assert sent[0] == datetime(2025, 12, 31, 22, 59, 58, tzinfo=UTC).timestamp() * 1000
    assert sent[6] is None and sent[9] == datetime(2026, 1, 1, 0, 3, tzinfo=UTC).timestamp() * 1000


def test_the_hour_that_comes_twice_is_known_by_the_order_of_lines(path: Path) -> None:
    begin = datetime(2026, 10, 24, 23, tzinfo=UTC)
    times = [begin + timedelta(minutes=minute) for minute in range(0, 300, 2)]
    clocks = [at.astimezone(ZoneInfo("Europe/Rome")) for at in times]
    lines = [f"{at:%b %d %H:%M:%S} mail cron[1]: tick" for at in clocks]
    guesses = [at for at in times if (at.hour, at.minute) in [(1, minute) for minute in range(10, 24, 2)]]
    lines[times.index(guesses[-1])] += "\n" + "\n".join(
        f"{at.astimezone(ZoneInfo('Europe/Rome')):%b %d %H:%M:%S} mail sshd[{at.minute}]: "
        f"Failed password for root from 192.0.2.77 port {at.minute} ssh2"
        for at in [guesses[-1]] * 6
    )
    path.write_text("\n".join(lines) + "\n")
    given = {"zone": "Europe/Rome", "year": "2026"}
    job = job_of(path, given)
    sent = {message.sent_ms for message in job.form.messages(path, job.settings)}
    assert sent == {int(at.timestamp() * 1000) for at in times}
    for part, wanted in (("traffic", []), ("logins", ["brute force"])):
        account, alerts, _ = alerts_of(path, part, given)
        assert account.late == 0
        assert [alert.rule for alert in alerts if alert.state == "fired"] == wanted


def test_every_host_has_the_clock_of_its_zone_in_the_night_of_the_change(path: Path) -> None:
    zones = {"mail": "Europe/Rome", "ny-1": "America/New_York", "ny-2": "America/New_York", "api": "UTC"}
    begin = datetime(2026, 10, 24, 23, tzinfo=UTC)
    # A week apart, Rome's clocks and New York's are put back.
    times = [begin + timedelta(minutes=10 * step) for step in range(24 * 9 * 6)]
    clocks = [(at, host, at.astimezone(ZoneInfo(zone))) for at in times for host, zone in zones.items()]
    path.write_text("".join(f"{clock:%b %d %H:%M:%S} {host} cron[1]: tick\n" for _, host, clock in clocks))
    job = job_of(path, {"zone": "UTC, mail=Europe/Rome, ny-*=America/New_York", "year": "2026"})
    sent = [message.sent_ms for message in job.form.messages(path, job.settings)]
    assert sent == [int(at.timestamp() * 1000) for at, _, _ in clocks]


def test_new_year_comes_to_each_zone_at_its_own_hour(path: Path) -> None:
    zones = {"akl": "Pacific/Auckland", "mail": "Europe/Rome", "api": "UTC", "ny-1": "America/New_York"}
    times = [datetime(2024, 12, 30, 8, tzinfo=UTC) + timedelta(minutes=20 * step) for step in range(3 * 100)]
    for leader in zones:  # whose line is the first and the last
        order = sorted(zones, key=lambda host: host != leader)
        clocks = [(host, at.astimezone(ZoneInfo(zones[host]))) for at in times for host in order]
        clocks += [(leader, times[-1].astimezone(ZoneInfo(zones[leader])))]
        path.write_text("".join(f"{clock:%b %d %H:%M:%S} {host} cron[1]: tick\n" for host, clock in clocks))
        os.utime(path, (written := times[-1].timestamp(), written))
        job = job_of(path, {"zone": "UTC, akl=Pacific/Auckland, mail=Europe/Rome, ny-*=America/New_York"})
        sent = [message.sent_ms for message in job.form.messages(path, job.settings)]
        assert sent == [int(at.timestamp() * 1000) for _, at in clocks]


@pytest.mark.parametrize(
    ("zone", "begin", "hours", "written"),
    [
        ("Pacific/Auckland", datetime(2025, 12, 31, 9), 4, datetime(2025, 12, 31, 13)),
        ("America/New_York", datetime(2025, 12, 31, 22), 4, datetime(2026, 1, 1, 2)),
        ("UTC", datetime(2024, 2, 28, 20), 30, datetime(2026, 7, 1)),
        ("UTC", datetime(2023, 12, 20), 2_400, datetime(2025, 7, 1)),
    ],
    ids=["begins abroad", "is not over abroad", "29 February, copied", "before a leap year, copied"],
)
def test_the_year_of_a_file_is_one_that_has_its_days(
    path: Path, zone: str, begin: datetime, hours: int, written: datetime
) -> None:
    times = [begin.replace(tzinfo=UTC) + timedelta(hours=step) for step in range(hours)]
    clocks = [at.astimezone(ZoneInfo(zone)) for at in times]
    path.write_text("".join(f"{clock:%b %d %H:%M:%S} a cron[1]: tick\n" for clock in clocks))
    os.utime(path, (stamp := written.replace(tzinfo=UTC).timestamp(), stamp))
    job = job_of(path, {"zone": zone})
    sent = [message.sent_ms for message in job.form.messages(path, job.settings)]
    assert sent == [int(at.timestamp() * 1000) for at in times]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Australia/Lord_Howe", "America/Santiago", "Europe/Rome"])
def test_a_year_of_local_lines_is_read_in_order(path: Path, zone: str) -> None:
    times = [datetime(2026, 1, 2, tzinfo=UTC) + timedelta(minutes=15 * step) for step in range(4 * 24 * 400)]
    clocks = [at.astimezone(ZoneInfo(zone)) for at in times]
    path.write_text("".join(f"{clock:%b %d %H:%M:%S} a cron[1]: tick\n" for clock in clocks))
    job = job_of(path, {"zone": zone, "year": "2026"})
    sent = [message.sent_ms for message in job.form.messages(path, job.settings)]
    assert sent == [int(at.timestamp() * 1000) for at in times]


def test_guesses_on_a_host_whose_clock_is_behind_are_seen(path: Path) -> None:
    begin = datetime(2026, 6, 1, 8, tzinfo=UTC)
    lines = []
    for minute in range(120):
        at = begin + timedelta(minutes=minute)
        lines.append(f"{at:%b %d %H:%M:%S} web cron[1]: tick")
        slow = at - timedelta(minutes=30)
        guess = f"sshd[{minute}]: Failed password for root from 192.0.2.77 port {minute} ssh2"
        lines.append(f"{slow:%b %d %H:%M:%S} db {guess if 60 <= minute < 68 else 'cron[1]: tick'}")
    path.write_text("\n".join(lines) + "\n")
    account, alerts, _ = alerts_of(path, "logins", {"year": "2026"})
    assert account.late == 0
    assert [(a.rule, a.state, a.plain_key) for a in alerts] == [
        ("brute force", "fired", "192.0.2.77"),
        ("brute force", "cleared", "192.0.2.77"),
    ]
    assert alerts[0].at_us == (begin + timedelta(minutes=34)).timestamp() * 1e6
    assert alerts[0].details["detected_late"] > 1500


def test_a_line_in_latin_1_leaves_the_format_known(tmp_path: Path) -> None:
    path = tmp_path / "auth.log"
    path.write_bytes("\n".join([*SSH, "Jan  1 00:04:00 web app: caf\xe9 opened"]).encode("latin-1"))
    assert job_of(path).form.name == "syslog"
