"""`streamgauge alerts`: tests that say of each outlet whether it took them; silences written to a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from streamgauge.operators.rules.outlets.matchers import labels_of
from streamgauge.operators.rules.outlets.toml_outlets import read_silences

from ....agents.ingest.sources.mqtt_broker import MqttBroker
from ....operators.rules.outlets.alerts import alert
from ....operators.rules.outlets.servers import SmtpServer, WebServer
from ...command import Ran


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    yield server
    server.close()


def test_every_kind_of_outlet_gets_a_marked_test(
    ran: Ran, web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smtp, broker = SmtpServer(), MqttBroker()
    monkeypatch.setenv("SLACK_WEBHOOK", f"{web.url}/services/s3cret")
    path = tmp_path / "outlets.toml"
    path.write_text(
        f"""
        [[outlet]]
        kind = "alertmanager"
        url = "{web.url}/am"
        [[outlet]]
        kind = "slack"
        url = "${{SLACK_WEBHOOK}}"
        [[outlet]]
        kind = "mattermost"
        url = "{web.url}/hooks/x"
        [[outlet]]
        kind = "ntfy"
        url = "{web.url}/ops"
        [[outlet]]
        kind = "webhook"
        url = "{web.url}/hook"
        match = ['rule="hot"']
        [[outlet]]
        kind = "mqtt"
        name = "broker"
        url = "mqtt://127.0.0.1:{broker.port}/alerts"
        [[outlet]]
        kind = "email"
        host = "127.0.0.1"
        port = {smtp.port}
        security = "none"
        sender = "gauge@example.org"
        to = ["ops@example.org"]
        [[silence]]
        match = ['rule=~".*"']
        until = 2100-01-01T00:00:00Z
        """
    )
    try:
        said = ran("alerts", "test", path)
    finally:
        smtp.close()
        broker.close()
    assert said.splitlines() == [
        *(f"{kind} 127.0.0.1: it was accepted" for kind in ("alertmanager", "slack", "mattermost", "ntfy")),
        *(
            "webhook 127.0.0.1: it was accepted",
            "broker: it was accepted",
            "email 127.0.0.1: it was accepted",
        ),
    ]
    bodies = [json.dumps(request.body) for request in web.requests]
    assert len(bodies) == 5 and all("nothing has happened" in body for body in bodies)
    assert "[TEST]" in smtp.mails[0].message["Subject"]
    assert json.loads(broker.published[0][1])["test"] is True


def test_the_one_that_fails_is_named_without_its_secret(
    ran: Ran, web: WebServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "outlets.toml"
    path.write_text(
        f'[[outlet]]\nkind = "slack"\nname = "ops"\nurl = "{web.url}/services/s3cret"\n'
        f'[[outlet]]\nkind = "ntfy"\nurl = "{web.url}/ops"\n'
    )
    web.answers = [404]
    said = ran("alerts", "test", path, "--json", code=1)
    printed = said + capsys.readouterr().err
    assert "1 of 2 did not accept the test: ops" in printed and "s3cret" not in printed
    assert [request.path for request in web.requests] == ["/services/s3cret", "/"]
    assert "it was accepted" in ran("alerts", "test", path, "ops")
    assert "has no outlet 'x'; its outlets are ops, ntfy 127.0.0.1" in ran(
        "alerts", "test", path, "x", code=1
    )
    path.write_text("")
    assert "has no [[outlet]] to test" in ran("alerts", "test", path, code=1)


@pytest.mark.parametrize("before", ["", "# mine", '[[rule]]\nname = "hot"\nkind = "threshold"\n'])
def test_a_silence_is_written_behind_what_is_there(ran: Ran, tmp_path: Path, before: str) -> None:
    path = tmp_path / "outlets.toml"
    path.write_text(before)
    now = datetime.now(UTC)
    ran(
        "alerts",
        "silence",
        path,
        'key=~"hall\\\\d"',
        "rule=hot",
        "--for",
        "2h",
        "--why",
        'the "painters"\n[[x]]',
    )
    ran("alerts", "silence", path, 'rule="cold"', "--for", "1h")
    first, second = read_silences(path)
    assert path.read_text().startswith(before) and first.why == 'the "painters"\n[[x]]' and not second.why
    assert timedelta(hours=1.9) < first.until - now < timedelta(hours=2.1)
    assert first.holds(labels_of(alert("hall7")), now) and not first.holds(labels_of(alert("hall")), now)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["host=a", "--for", "2h"], "the label must be one of"),
        (["rule=hot", "--for", "soon"], "'soon' is not a duration"),
    ],
)
def test_a_silence_that_can_not_be_leaves_the_file(ran: Ran, tmp_path: Path, arguments, said: str) -> None:
    path = tmp_path / "outlets.toml"
    path.write_text("# mine\n")
    assert said in ran("alerts", "silence", path, *arguments, code=1)
    assert path.read_text() == "# mine\n"
    path.write_text("[[outlet]]\nkind = 'fax'\n")
    assert "kind must be one of" in ran("alerts", "silence", path, "rule=hot", "--for", "2h", code=1)
