"""Outlets in TOML: every kind, secrets from the environment, and what is wrong by its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.operators.rules.outlets.toml_outlets import KINDS, read_silences
from streamgauge.rules import (
    AlertsToAlertmanager,
    AlertsToEmail,
    AlertsToSlack,
    read_outlets,
    read_rules,
)

ALL = """
[[outlet]]
kind = "alertmanager"
url = "http://alertmanager:9093"
labels = { severity = "page" }

[[outlet]]
kind = "slack"
name = "ops"
url = "https://hooks.slack.com/services/${SLACK}"
match = ['rule!="new term"']
group_by = ["rule", "key"]
group_wait = "10s"
group_interval = "1m"

[[outlet]]
kind = "mattermost"
url = "https://chat.example.org/hooks/x"
group_by = []

[[outlet]]
kind = "email"
host = "mx.example.org"
sender = "gauge@example.org"
to = ["ops@example.org"]
user = "gauge"
password = "${SMTP_PASSWORD}"

[[outlet]]
kind = "ntfy"
url = "https://ntfy.example.org/ops"

[[outlet]]
kind = "mqtt"
url = "mqtt://localhost/alerts"

[[outlet]]
kind = "webhook"
url = "https://example.org/hook"
headers = { X-Key = "${SLACK}" }

[[outlet]]
kind = "apprise"
url = "tgram://123456789:abcdefg_hijklmnop/12315544"

[[silence]]
match = ['key="hall"']
until = 2026-06-01T18:00:00Z

[[rule]]
name = "hot"
kind = "threshold"
value = "value"
above = 30
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLACK", "T0/s3cret")
    monkeypatch.setenv("SMTP_PASSWORD", "tr0ut")
    return tmp_path / "outlets.toml"


def test_a_file_has_all_kinds_beside_rules(path: Path) -> None:
    path.write_text(ALL)
    outlets = read_outlets(path)
    assert {outlet.kind for outlet in outlets} == set(KINDS)
    manager, slack, _, mail, *_ = outlets
    assert isinstance(manager, AlertsToAlertmanager) and manager.labels == {"severity": "page"}
    assert isinstance(slack, AlertsToSlack) and slack.url.endswith("T0/s3cret") and slack.title == "ops"
    assert isinstance(mail, AlertsToEmail) and mail.password == "tr0ut"
    assert [len(outlet.current_silences()) for outlet in outlets] == [1] * len(KINDS)
    assert "s3cret" not in repr(outlets) and "tr0ut" not in repr(outlets)
    assert [rule.name for rule in read_rules(path)] == ["hot"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[outlet]", "outlets.toml: not TOML"),
        ("[outlets]", "'outlets' is not known; write"),
        ("[outlet]\nkind = 'slack'", "'outlet' is not a list; write each as"),
        ("[[outlet]]\nkind = 'fax'", "outlet 1: kind must be one of alertmanager, slack, .*, got 'fax'"),
        ("[[outlet]]\nkind = 'slack'", "outlet 1: slack needs url"),
        ("[[outlet]]\nkind = 'email'\nhost = 'mx'", "outlet 1: email needs sender, to"),
        ("[[outlet]]\nkind = 'slack'\nurl = 'http://h/'\nchannel = 'a'", "'channel' is not a field of slack"),
        (
            "[[outlet]]\nkind = 'slack'\nurl = '${NOPE}'",
            "outlet 1: url: the environment has no variable 'NOPE'",
        ),
        ("[[outlet]]\nkind = 'slack'\nurl = 'ftp://s3cret'", "outlet 1: slack: url must begin with http"),
        (
            "[[outlet]]\nkind = 'slack'\nurl = 'http://h/a'\n[[outlet]]\nkind = 'slack'\nurl = 'http://h/b'",
            "outlet 2: there is another outlet 'slack h'; give it another name",
        ),
        (
            "[[silence]]\nmatch = ['rule=hot']\nfor = '2h'",
            "silence 1: 'for' is not known; it has match, until",
        ),
        ("[[silence]]\nmatch = ['rule=hot']", "silence 1: .*until"),
        (
            "[[silence]]\nmatch = ['rule=hot']\nuntil = 2026-06-01",
            "silence 1: until must be a time with its zone",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(path: Path, text: str, said: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=said) as raised:
        read_outlets(path)
        read_silences(path)
    assert "s3cret" not in str(raised.value)
