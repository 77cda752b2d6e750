"""Commands that follow from rules: what is sent, to whom not; a key never becomes more than a value."""

from __future__ import annotations

import json
import logging
import re
import threading
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from streamgauge import StreamTester
from streamgauge.operators.rules.alerting import SendingOutlet
from streamgauge.operators.rules.command import UnsafeKeyError
from streamgauge.operators.rules.outlets.to_command import (
    CommandProgram,
    command_outlets,
    listed_commands,
)
from streamgauge.operators.rules.toml_rules import rules_of
from streamgauge.rules import Alert, Alerting, Command, Threshold

from ...cases import each
from .plain import NOON, WINDOWS, Kept, row

FIRED = Alert(
    "hot", "threshold", "fired", ("192.0.2.1",), 60_000_000, 0, 31.0, 31.0, 31.0, 30.0, "31: above 30"
)
AC = {"fired": {"ac": "on", "t": "$value"}, "cleared": {"ac": "off"}}


def rule(*commands: Command) -> Threshold:
    return Threshold("hot", value="value", above=30, clear=28, hold="5m", command=commands)


def test_what_an_alert_says_stands_in_for_names() -> None:
    command = Command(
        topic="t", fired={"$rule": ["$key at $at", "$value", "$$5", 7, None]}, cleared="x $state"
    )
    assert command.content(FIRED) == {"hot": ["192.0.2.1 at 1970-01-01T00:01:00+00:00", 31.0, "$5", 7, None]}
    assert command.content(replace(FIRED, state="withdrawn")) == "x cleared"
    again = replace(FIRED, state="withdrawn", details={"withdrawn": "cleared"})
    assert command.content(again) == command.content(FIRED)
    assert command.content(replace(FIRED, state="unknown")) is None
    assert Command(topic="t").content(FIRED) == {"rule": "hot", "state": "fired"}
    assert Command(topic="t", fired={"a": 1}).content(replace(FIRED, state="cleared")) is None


@pytest.mark.parametrize(
    ("accepts", "ignore", "keys"),
    [
        ("any", [], ["192.0.2.1", "10.1.2.3", "::1", "web"]),
        ("address", ["10.0.0.0/8"], ["192.0.2.1", "::1"]),
        ("ipv4", ["192.0.2.1"], ["10.1.2.3"]),
        ("ipv6", [], ["::1"]),
        ("any", ["web", "::/0"], ["192.0.2.1", "10.1.2.3"]),
    ],
)
def test_keys_that_a_command_is_for(accepts: Any, ignore: list[str], keys: list[str]) -> None:
    command = Command(topic="t", fired="$key", accepts=accepts, ignore=ignore)
    contents = [
        command.content(replace(FIRED, key=(key,))) for key in ("192.0.2.1", "10.1.2.3", "::1", "web")
    ]
    assert [one for one in contents if one is not None] == keys


@pytest.mark.parametrize(
    "key", ["-rf", "@/etc/passwd", "a b", "1 }; flush ruleset", "a\nb", "$(id)", "`id`", "", "ä"]
)
def test_a_program_gets_no_key_that_is_more_than_a_value(key: str) -> None:
    command = Command(run="nft", fired=["add", "{ $key }"])
    with pytest.raises(UnsafeKeyError):
        command.content(replace(FIRED, key=(key,)))
    listed = list(listed_commands([rule(command)], replace(FIRED, key=(key,))))
    assert listed[0]["content"] is None and "characters that are not allowed" in listed[0]["refused"]
    # As JSON it may be anything.
    assert Command(topic="t", fired="$key").content(replace(FIRED, key=(key,))) == key


@each(
    ("given", "said"),
    [
        ({}, "a command goes to one of topic, webhook, mqtt, run, got none"),
        ({"topic": "a", "run": "b"}, r"got \['topic', 'run'\]"),
        ({"webhook": "ftp://x"}, "webhook must begin with http"),
        ({"mqtt": "host/topic"}, "mqtt must be mqtt://HOST:PORT/TOPIC"),
        ({"run": "nft"}, "a program needs its arguments"),
        ({"run": "nft", "fired": "add"}, "must be a list of strings, a program's arguments"),
        ({"topic": "a", "fired": "$nope"}, r"\$nope is not known; there are \$key, \$rule"),
        ({"topic": "a", "fired": "5 $"}, r"write \$\$ for a dollar"),
        ({"topic": "a", "accepts": "host"}, "accepts must be one of any, address"),
        ({"topic": "a", "ignore": "::1"}, "must be a list of keys"),
        ({"topic": "a", "when": 1}, "'when' is not known; it has topic"),
    ],
)
def test_commands_that_cannot_be_sent_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"the rule 'hot': command: .*{said}"):
        Threshold("hot", value="value", above=30, command=given)


def test_the_air_conditioning_is_switched_once(tmp_path: Path) -> None:
    out = tmp_path / "done"
    text = f"""
        [[rule]]
        name = "hot"
        kind = "threshold"
        value = "value"
        above = 30
        clear = 28
        hold = "5m"
        [[rule.command]]
        run = "tee"
        fired = ["-a", "{out}-$key"]
        cleared = ["-a", "{out}-$key"]
        [[rule.command]]
        topic = "commands"
        fired = {{ ac = "on", t = "$value" }}
        cleared = {{ ac = "off" }}
    """
    kept, alerting = Kept(), Alerting(rules_of(text))
    alerting = replace(alerting, to=[kept])
    tester = StreamTester(WINDOWS, sinks=[alerting], start=NOON + timedelta(days=1))
    tester.feed([row(minute, "kitchen", 33.0 if 5 <= minute < 20 else 25.0) for minute in range(40)])
    tester.restart()
    tester.finish()
    assert [alert.state for alert in kept.alerts] == ["fired", "cleared"]
    ids = re.findall('"id": "([0-9a-f]{16})"', Path(f"{out}-kitchen").read_text())
    assert ids == [alert.id for alert in kept.alerts]
    topics = [outlet for outlet in alerting.outlets if isinstance(outlet, SendingOutlet)]
    sent = [json.loads(one.value) for alert in kept.alerts for to in topics for one in to.messages(alert)]
    assert [one["command"] for one in sent] == [{"ac": "on", "t": 33.0}, {"ac": "off"}]
    assert {one["key"] for one in sent} == {"kitchen"}


def test_programs_that_fail_are_logged_and_hold_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    class Quick(CommandProgram):
        patience = 0.5

    commands = [Command(run="x", fired=["/nowhere/at/all"])]
    with caplog.at_level(logging.WARNING, "streamgauge.rules"):
        CommandProgram("ls", {"hot": commands}).write(FIRED)
        CommandProgram("/nowhere/at/all", {"hot": commands}).write(FIRED)
        Quick("sleep", {"hot": [Command(run="x", fired=["60"])]}).write(FIRED)
        CommandProgram("ls", {"hot": [Command(run="x", fired=["$key"])]}).write(replace(FIRED, key=("a b",)))
    said = [record.getMessage() for record in caplog.records]
    assert "ended with" in said[0] and "/nowhere/at/all" in said[0] and "No such file" in said[1]
    assert "longer than 0.5 s" in said[2] and "not carried out" in said[3]


def test_commands_are_posted_with_the_alert_s_id() -> None:
    got: list[tuple[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers["Idempotency-Key"], json.loads(body)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/ac"
        (outlet,) = command_outlets([rule(Command(webhook=url, **AC))])
        outlet.write(FIRED)
        outlet.write(replace(FIRED, rule="other"))
        outlet.close(60)
    finally:
        server.shutdown()
    assert [(key, body["command"]) for key, body in got] == [(FIRED.id, {"ac": "on", "t": 31.0})]


def test_a_changed_command_leaves_the_rule_s_memory_alone() -> None:
    assert repr(rule()) == repr(rule(Command(topic="t", **AC)))
