"""Guessing that five refusals in ten minutes don't show: slow, spread over users or addresses, of paths."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from .reading import alerts_of, job_of

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
ME = "198.51.100.7"
Line = tuple[float, str]


def refused(at: float, user: str, address: str, pid: int, unknown: bool = False) -> list[Line]:
    """The lines that sshd writes about one attempt."""
    invalid, kind = "invalid user " * unknown, "invalid" if unknown else "authenticating"
    first = [(at, f"sshd[{pid}]: Invalid user {user} from {address} port 22")] * unknown
    return [
        *first,
        (at, f"sshd[{pid}]: Failed password for {invalid}{user} from {address} port 22 ssh2"),
        (at + 1, f"sshd[{pid}]: Connection closed by {kind} user {user} {address} port 22 [preauth]"),
    ]


def fired(
    path: Path, part: str, lines: list[Line], given: dict[str, str] | None = None
) -> list[tuple[str, str]]:
    """The rules that fired in a part over a day of lines, and about whom."""
    usual = [
        (600.0 * n, f"sshd[{n}]: Accepted publickey for eve from 192.0.2.1 port 22 ssh2") for n in range(156)
    ]
    text = "".join(
        f"{MIDNIGHT + timedelta(seconds=at):%Y-%m-%dT%H:%M:%SZ} web {line}\n"
        for at, line in sorted(usual + lines)
    )
    path.write_text(text)
    _, alerts, _ = alerts_of(path, part, given)
    return [(alert.rule, str(alert.plain_key)) for alert in alerts if alert.state == "fired"]


@pytest.mark.slow
def test_an_attempt_each_quarter_of_an_hour_is_slow_brute_force(tmp_path: Path) -> None:
    lines = [one for n in range(40) for one in refused(900.0 * n, "root", ME, 9000 + n)]
    path = tmp_path / "auth.log"
    assert fired(path, "client-days", lines) == [("slow brute force", ME)]
    assert fired(path, "logins", lines) == []
    off = job_of(path, {"slow_logins": ""})
    assert "client-days" not in [part.name for part in off.parts]
    forgetful = [one for n in range(8) for one in refused(900.0 * n, "eve", ME, 9000 + n)]
    assert fired(path, "client-days", forgetful) == []


@pytest.mark.slow
def test_a_password_for_each_of_many_users_is_spraying(tmp_path: Path) -> None:
    lines = [one for n in range(12) for one in refused(200.0 * n, f"user{n}", ME, 9000 + n)]
    path = tmp_path / "auth.log"
    assert fired(path, "clients", lines) == [("password spraying", ME)]
    assert fired(path, "logins", lines) == []
    one_user = [one for n in range(12) for one in refused(200.0 * n, "eve", ME, 9000 + n)]
    assert fired(path, "clients", one_user) == []


def test_names_that_nobody_has_are_enumeration(tmp_path: Path) -> None:
    lines = [one for n in range(12) for one in refused(200.0 * n, f"user{n}", ME, 9000 + n, unknown=True)]
    rules = fired(tmp_path / "auth.log", "clients", lines)
    assert set(rules) == {("password spraying", ME), ("user enumeration", ME)}


def test_many_addresses_that_try_one_user_are_stuffing(tmp_path: Path) -> None:
    lines = [one for n in range(30) for one in refused(60.0 * n, "eve", f"198.51.100.{n}", 9000 + n)]
    assert fired(tmp_path / "auth.log", "accounts", lines) == [("credential stuffing", "eve")]


def request(at: float, address: str, request: str, status: int) -> str:
    clock = f"{MIDNIGHT + timedelta(seconds=at):%d/%b/%Y:%H:%M:%S} +0000"
    return f'{address} - - [{clock}] "{request} HTTP/1.1" {status} 17 "-" "client/1"\n'


def test_paths_that_never_were_are_scanning_and_no_logins(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    usual = [request(600.0 * n, "192.0.2.1", "GET /old", 404) for n in range(24)]
    scan = [request(3600 + n, ME, f"GET /x{n}.php", 403 if n % 2 else 404) for n in range(40)]
    path.write_text("".join(sorted(usual + scan, key=lambda line: line.split("[")[1])))
    _, alerts, _ = alerts_of(path, "clients")
    assert {(alert.rule, alert.plain_key) for alert in alerts if alert.state == "fired"} == {
        ("path scanning", ME)
    }
    _, alerts, _ = alerts_of(path, "logins")
    assert not alerts


def test_challenges_all_day_are_no_slow_brute_force(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    for what, rules in (("GET /dav", set()), ("POST /login", {("slow brute force", ME)})):
        path.write_text("".join(request(1200.0 * n, ME, what, 401) for n in range(72)))
        _, alerts, _ = alerts_of(path, "client-days")
        assert {(one.rule, one.plain_key) for one in alerts if one.state == "fired"} == rules, what


def test_answers_of_login_forms_are_refusals(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    for what, status in (
        ("POST /api", 403),
        ("GET /login", 403),
        ("POST /wp-login.php", 200),
        ("GET /a", 401),
    ):
        path.write_text("".join(request(10.0 * n, ME, what, status) for n in range(6)))
        _, alerts, _ = alerts_of(path, "logins")
        assert [(alert.state, alert.plain_key) for alert in alerts][:1] == [("fired", ME)], what
