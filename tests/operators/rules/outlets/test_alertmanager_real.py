"""Alerts through a real Alertmanager to a receiver: what it takes, holds back, resolves, and survives."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamgauge.rules import Alert, AlertsToAlertmanager

from .alerts import EVIL
from .alerts import alert as alert_of_a_key
from .servers import WebServer

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        PROGRAM is None,
        reason="Alertmanager is missing; on Debian: apt-get install prometheus-alertmanager; elsewhere put"
        " its program alertmanager on the PATH",
    ),
]
PAGE = "https://gauge.example.org"
# Of the password "tr0ut & salmon".
BCRYPT = "$2b$04$b.0i/GwIF5EpKX51mPsILu3R1hwT1u28yy3HOtBOv5FmKwZv7dhtK"


@dataclass
class Manager:
    """A real Alertmanager on a port of loopback, which sends each alert by itself to a webhook."""

    folder: Path
    receiver: str
    interval: str = "200ms"
    users: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        route = {
            "receiver": "hook",
            "group_by": ["..."],
            "group_wait": "100ms",
            "group_interval": self.interval,
            "repeat_interval": "1h",
        }
        receivers = [{"name": "hook", "webhook_configs": [{"url": self.receiver}]}]
        # JSON is YAML.
        config = {"global": {"resolve_timeout": "1s"}, "route": route, "receivers": receivers}
        (self.folder / "config.yml").write_text(json.dumps(config))
        (self.folder / "web.yml").write_text(json.dumps({"basic_auth_users": self.users}))
        options = {
            "config.file": self.folder / "config.yml",
            "web.config.file": self.folder / "web.yml",
            "storage.path": self.folder / "data",
            "web.listen-address": f"127.0.0.1:{self.port}",
            "cluster.listen-address": "",
        }
        assert PROGRAM is not None
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, *(f"--{name}={value}" for name, value in options.items())], stderr=log, stdout=log
            )
        wait_for(self._is_ready, lambda: (self.folder / "log").read_text())

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            return httpx.get(f"{self.url}/-/ready").status_code in (200, 401)
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def alerts(self) -> dict[str, dict[str, Any]]:
        """The alerts that are active, by their key."""
        entries = httpx.get(f"{self.url}/api/v2/alerts").raise_for_status().json()
        return {entry["labels"]["key"]: entry for entry in entries}


@pytest.fixture
def hook() -> Iterator[WebServer]:
    server = WebServer()
    yield server
    server.close()


@pytest.fixture
def manager(tmp_path: Path, hook: WebServer) -> Iterator[Manager]:
    running = Manager(tmp_path, hook.url)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def outlets() -> Iterator[list[AlertsToAlertmanager]]:
    """Outlets that are closed after the test."""
    opened: list[AlertsToAlertmanager] = []
    yield opened
    for outlet in opened:
        outlet.close(0.1)


def wait_for(condition: Callable[[], object], shown: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.05)


def received(hook: WebServer) -> list[tuple[str, str]]:
    """The keys and states that have arrived, in order."""
    return [
        (entry["labels"]["key"], entry["status"]) for post in hook.requests for entry in post.body["alerts"]
    ]


def arrives(hook: WebServer, *events: tuple[str, str]) -> None:
    wait_for(lambda: set(events) <= set(received(hook)), lambda: (events, received(hook)))


def alert(key: str, state: str = "fired", minutes_ago: float = 5) -> Alert:
    at_us = int((datetime.now(UTC) - timedelta(minutes=minutes_ago)).timestamp() * 1e6)
    return replace(alert_of_a_key(key, state), at_us=at_us, since_us=at_us - 60_000_000, key_names=("room",))


def test_an_event_arrives_and_lasts_until_it_is_over(
    hook: WebServer, manager: Manager, outlets: list[AlertsToAlertmanager]
) -> None:
    outlet = AlertsToAlertmanager(manager.url, labels={"severity": "page"}, page=PAGE, lasts="4s")
    outlets.append(outlet)
    fired = [alert(key) for key in ("hall", "attic", "cellar")]
    for one in fired:
        outlet.write(one)
    arrives(hook, ("hall", "firing"), ("attic", "firing"), ("cellar", "firing"))
    (entry,) = (
        entry for post in hook.requests for entry in post.body["alerts"] if entry["labels"]["key"] == "hall"
    )
    expected = outlet.entry(fired[0], datetime.now(UTC))
    assert entry["labels"] == expected["labels"] and entry["labels"]["room"] == "hall"
    assert entry["annotations"] == expected["annotations"] and entry["annotations"]["id"] == fired[0].id
    assert entry["generatorURL"] == outlet.link(fired[0]) != ""
    assert datetime.fromisoformat(entry["startsAt"]) == datetime.fromisoformat(expected["startsAt"])

    # Several times as long as it would last by itself, or by Alertmanager's `resolve_timeout`.
    first_end = datetime.fromisoformat(manager.alerts()["hall"]["endsAt"])
    late = first_end + timedelta(seconds=6)
    wait_for(lambda: datetime.fromisoformat(manager.alerts()["hall"]["updatedAt"]) > late, manager.alerts)
    assert sorted(received(hook)) == [("attic", "firing"), ("cellar", "firing"), ("hall", "firing")]

    outlet.write(alert("hall", "cleared", minutes_ago=1))
    outlet.write(replace(fired[1], state="withdrawn"))
    arrives(hook, ("hall", "resolved"), ("attic", "resolved"))
    assert ("cellar", "resolved") not in received(hook) and list(manager.alerts()) == ["cellar"]

    outlet.write(alert("hall", minutes_ago=0))
    wait_for(lambda: received(hook).count(("hall", "firing")) == 2, lambda: received(hook))
    outlet.close()
    # Of a run that has ended nothing more is known.
    arrives(hook, ("cellar", "resolved"))


def test_text_of_strangers_is_accepted(
    hook: WebServer, manager: Manager, outlets: list[AlertsToAlertmanager]
) -> None:
    outlet = AlertsToAlertmanager(manager.url, page=PAGE)
    outlets.append(outlet)
    texts = (
        EVIL.key[0],
        "\"quoted\" 'and' \\ {{ .Labels }} ${HOME} $(id)",
        "a\nb\r\n\tc\0d",
        "温度 🌡️ e\u0301 \u202eabc \ud800 \ufffe",
        "x" * 100_000,
        "é" * 5_000,
        "",
        "  ",
        "__name__",
    )
    names = ("ro om", "__name__", "straße", "7th", "\n")
    sent = [
        replace(alert("x"), rule=text, key=(text, number), key_names=(names[number % 5], "number"), why=text)
        for number, text in enumerate(texts)
    ]
    for one in sent:
        outlet.write(one)
    wait_for(lambda: len(received(hook)) == len(sent), lambda: (outlet.account, received(hook)))
    entries = {entry["labels"]["number"]: entry for post in hook.requests for entry in post.body["alerts"]}
    for number, one in enumerate(sent):
        expected, entry = outlet.entry(one, datetime.now(UTC)), entries[str(number)]
        assert entry["labels"] == expected["labels"] and entry["annotations"] == expected["annotations"]
        assert entry["generatorURL"] == expected["generatorURL"]
    for one in sent:
        outlet.write(replace(one, state="cleared", at_us=one.at_us + 1))
    wait_for(lambda: len(received(hook)) == 2 * len(sent), lambda: (outlet.account, received(hook)))
    assert (outlet.account.sent, outlet.account.failed) == (2 * len(sent), 0)


def test_a_silence_of_alertmanager_holds_an_event_back(
    hook: WebServer, manager: Manager, outlets: list[AlertsToAlertmanager]
) -> None:
    now = datetime.now(UTC)
    silence = {
        "matchers": [{"name": "room", "value": 'the "hall"', "isRegex": False, "isEqual": True}],
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(hours=1)).isoformat(),
        "createdBy": "test",
        "comment": "painters",
    }
    answer = httpx.post(f"{manager.url}/api/v2/silences", json=silence).raise_for_status()
    outlet = AlertsToAlertmanager(manager.url)
    outlets.append(outlet)
    outlet.write(alert('the "hall"'))
    wait_for(lambda: outlet.account.sent == 1, lambda: outlet.account)
    outlet.write(alert("attic"))
    arrives(hook, ("attic", "firing"))
    assert received(hook) == [("attic", "firing")]
    assert manager.alerts()['the "hall"']["status"]["state"] == "suppressed"
    httpx.delete(f"{manager.url}/api/v2/silence/{answer.json()['silenceID']}").raise_for_status()
    arrives(hook, ('the "hall"', "firing"))


def test_nothing_is_lost_while_alertmanager_is_away(
    hook: WebServer, tmp_path: Path, outlets: list[AlertsToAlertmanager], caplog: pytest.LogCaptureFixture
) -> None:
    manager = Manager(tmp_path, hook.url, interval="10s")
    manager.start()
    try:
        outlet = AlertsToAlertmanager(manager.url, lasts="20s", name="ops")
        impatient = AlertsToAlertmanager(manager.url, patience="1s", name="impatient")
        outlets += [outlet, impatient]
        for key in ("lasting", "over before", "over meanwhile"):
            outlet.write(alert(key))
        arrives(hook, *((key, "firing") for key in ("lasting", "over before", "over meanwhile")))
        # Alertmanager has accepted it, and goes before its group is due.
        outlet.write(alert("over before", "cleared", minutes_ago=1))
        wait_for(lambda: outlet.account.sent == 4, lambda: outlet.account)
        manager.stop()
        assert ("over before", "resolved") not in received(hook)
        outlet.write(alert("over meanwhile", "cleared", minutes_ago=1))
        outlet.write(alert("begun meanwhile"))
        impatient.write(alert("given up"))
        wait_for(lambda: impatient.account.failed == 1, lambda: impatient.account)
        assert (outlet.account.sent, outlet.account.failed) == (4, 0)
        manager.start()
        arrives(hook, ("begun meanwhile", "firing"), ("over meanwhile", "resolved"))
        # Alertmanager stores no alerts: it knows these by the next time that they are sent.
        arrives(hook, ("over before", "resolved"))
        wait_for(lambda: set(manager.alerts()) == {"lasting", "begun meanwhile"}, manager.alerts)
        resolved = {key for key, state in received(hook) if state == "resolved"}
        assert resolved == {"over before", "over meanwhile"}
        assert (outlet.account.sent, outlet.account.failed) == (6, 0)
    finally:
        manager.stop()
    messages = [record.getMessage() for record in caplog.records]
    assert sum("ops is unreachable" in message for message in messages) == 1
    assert sum("impatient did not accept 1 alert" in message for message in messages) == 1


def test_a_wrong_password_is_one_clear_error(
    hook: WebServer, tmp_path: Path, outlets: list[AlertsToAlertmanager], caplog: pytest.LogCaptureFixture
) -> None:
    manager = Manager(tmp_path, hook.url, users={"gauge": BCRYPT})
    manager.start()
    try:
        right, wrong = (
            AlertsToAlertmanager(manager.url, user="gauge", password=password, name=name)
            for name, password in (("right", "tr0ut & salmon"), ("wrong", "tr0ut"))
        )
        outlets += [right, wrong]
        wrong.write(alert("attic"))
        wait_for(lambda: wrong.account.failed == 1, lambda: wrong.account)
        right.write(alert("hall"))
        arrives(hook, ("hall", "firing"))
    finally:
        manager.stop()
    assert received(hook) == [("hall", "firing")]
    (message,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert message.startswith("wrong did not accept 1 alert")
    assert message.endswith("it answered 401: Unauthorized; check its user and password, or its token")
