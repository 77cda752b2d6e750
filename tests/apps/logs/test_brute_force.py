"""Which refusals of a web server are guesses, and which are how it asks who is there."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from .reading import alerts_of

EIGHT = datetime(2026, 6, 1, 8)


def line(second: float, address: str, user: str, request: str, status: int) -> str:
    at = f"{EIGHT + timedelta(seconds=second):%d/%b/%Y:%H:%M:%S} +0000"
    return f'{address} - {user} [{at}] "{request} HTTP/1.1" {status} 17 "-" "client/1"'


def challenged(address: str, every: float, granted: int = 207, times: int = 1, later: float = 0) -> list[str]:
    """A client that names itself only when it is asked to, each time anew."""
    lines = []
    for number in range(12):
        second, request = number * every, f"PROPFIND /shared/{number % 3}"
        lines += [line(second, address, "-", request, 401)] * times
        lines += [line(second + later, address, "eve", request, granted)]
    return lines


def guessing(address: str, user: str = "-", request: str = "POST /login") -> list[str]:
    return [line(9 * number, address, user, request, 401) for number in range(6)]


CLIENTS = {
    "each request": challenged("192.0.2.1", 20),
    "in a second": challenged("192.0.2.2", 0.05),
    "asked twice, as NTLM does": challenged("192.0.2.3", 10, times=2),
    "a second later": challenged("192.0.2.4", 15, later=3),
    "nothing there for it": challenged("192.0.2.5", 15, granted=404),
}
ATTACKERS = {
    "no name": guessing("198.51.100.1"),
    "a name each time": guessing("198.51.100.2", "root", "GET /"),
    "another path is granted": [
        *guessing("198.51.100.3", request="GET /admin"),
        *(line(9 * number, "198.51.100.3", "eve", "GET /mine", 200) for number in range(6)),
    ],
    "somebody else is granted": [
        *guessing("198.51.100.4", request="GET /wiki"),
        *(line(9 * number, "192.0.2.9", "eve", "GET /wiki", 200) for number in range(6)),
    ],
    "named and forbidden": [
        text
        for number in range(6)
        for text in (
            line(9 * number, "198.51.100.5", "-", "GET /files", 401),
            line(9 * number, "198.51.100.5", "eve", "GET /files", 403),
        )
    ],
}


def fired(path: Path, lines: list[str], given: dict[str, str] | None = None) -> set[str]:
    path.write_text("\n".join(sorted(lines, key=lambda text: text.split("[")[1][:20])) + "\n")
    _, alerts, _ = alerts_of(path, "logins", given)
    return {str(alert.plain_key) for alert in alerts if alert.state == "fired"}


def test_a_challenge_that_is_answered_is_no_guess(tmp_path: Path) -> None:
    path, wrong = tmp_path / "access.log", []
    for name, lines in CLIENTS.items():
        if fired(path, lines):
            wrong.append(name)
        if not fired(path, lines, {"challenges": "no"}):
            wrong.append(f"{name}, all counted")
    for name, lines in ATTACKERS.items():
        if fired(path, lines) != {lines[0].split(" ")[0]}:
            wrong.append(name)
    assert not wrong
