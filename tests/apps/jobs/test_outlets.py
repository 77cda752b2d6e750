"""Outlets of a run, from its files: a live run continues without them, and its next run sends what waited."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from rich.console import Console

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job, Live
from streamgauge.apps.jobs.outlets import alerts_topic_of, closing, end, outlet_accounts, outlets
from streamgauge.apps.registry import app_of
from streamgauge.apps.running import replaying
from streamgauge.apps.running.replaying import AppReplay, replayed
from streamgauge.apps.running.watching import ENGINES
from streamgauge.operators.kafka.topics import admin, ensure_topic
from streamgauge.operators.rules.outlets.outlet import NotifyingOutlet
from streamgauge.rules import AlertsToFile, AlertsToKafka, AlertsToNtfy

from ...operators.rules.outlets.servers import WebServer
from ...waiting import until
from ..running.test_replaying import SET, lines, readings
from ..running.test_watching import alerts_in, alerts_of, sent


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    yield server
    server.close()


def test_files_of_rules_and_of_outlets_are_read_once_each(web: WebServer, tmp_path: Path) -> None:
    path, other = tmp_path / "all.toml", tmp_path / "other.toml"
    path.write_text(f'[[outlet]]\nkind = "slack"\nurl = "{web.url}"\n')
    other.write_text(f'[[outlet]]\nkind = "ntfy"\nurl = "{web.url}/ops"\n')
    to = outlets("topic", tmp_path / "file", None, (path, tmp_path / "." / "all.toml", other, None))
    assert [type(one) for one in to[:2]] == [AlertsToKafka, AlertsToFile]
    assert [one.kind for one in to[2:] if isinstance(one, NotifyingOutlet)] == ["slack", "ntfy"]


def test_an_outlet_of_an_option_is_that_of_a_file(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", web.url)
    text = 'kind = "ntfy", url = "${WHERE}/ops", match = [\'rule="hot"\'], priority = 5'
    path = tmp_path / "outlets.toml"
    path.write_text("[[outlet]]\n" + text.replace(", match", "\nmatch").replace(", ", "\n"))
    (given,), (read,) = outlets(None, None, None, texts=[text]), outlets(None, None, None, [path])
    assert isinstance(given, AlertsToNtfy) and isinstance(read, AlertsToNtfy)
    assert (given.url, given.match, given.priority) == (read.url, read.match, read.priority)
    assert given.url == f"{web.url}/ops" and given.priority == 5
    with pytest.raises(ValueError, match="two outlets are called 'ntfy "):
        outlets(None, None, None, [path], [text])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ntfy=https://ntfy.sh/s3cret", "an outlet must be TOML fields"),
        ('url = "https://ntfy.sh/s3cret" }\n[[more]]\n# {', "an outlet must be TOML fields"),
        ('url = "https://ntfy.sh/s3cret"', "--outlet: kind must be one of alertmanager, slack"),
        ('kind = "ntfy", adress = "s3cret"', "--outlet: 'adress' is not a field of ntfy"),
        ('kind = "ntfy", url = "ftp://s3cret"', "--outlet: ntfy: url must begin with"),
    ],
)
def test_a_wrong_option_is_refused_and_shows_no_secret(text: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        outlets(None, None, None, texts=[text])
    assert said in str(refused.value) and "s3cret" not in str(refused.value)


@pytest.mark.kafka
def test_the_result_says_what_became_of_alerts_at_outlets(
    kafka, web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "readings.jsonl"
    recording.write_bytes(b"\n".join(lines(readings())) + b"\n")
    fields = f'kind = "slack", url = "{web.url}", name = "ops", group_wait = "1h", group_by = []'
    to = outlets(
        None, None, None, texts=[fields, f'kind = "webhook", url = "{web.url}", match = ["rule=no"]']
    )
    monkeypatch.setattr(replaying, "broker", lambda *_: kafka.bootstrap_servers)
    monkeypatch.setattr(replaying, "end", partial(end, seconds=120.0))
    job = Job.of(app_of("iot"), None, SET, recording=recording)
    replaying.replay(AppReplay(job, [recording], to=to), as_json=True)
    result = json.loads(capsys.readouterr().out)
    given = result["outlets"]["ops"]["given"]
    nothing = dict.fromkeys(("sent", "failed", "silenced", "unmatched", "pending"), 0)
    assert result["outlets"] == {
        "ops": {"given": given, **nothing, "sent": given},
        list(outlet_accounts(to))[1]: {"given": given, **nothing, "unmatched": given},
    }
    assert len(web.requests) == 1 and given >= len(result["alerts"]) > 3
    assert {tuple(alert["key_names"]) for alert in result["alerts"]} == {("sensor",)}


@pytest.mark.kafka
def test_a_replay_sends_one_message_for_a_rule_and_says_what_became_of_it(
    kafka, web: WebServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, path = tmp_path / "readings.jsonl", tmp_path / "outlets.toml"
    recording.write_bytes(b"\n".join(lines(readings())) + b"\n")
    path.write_text(
        f"""
        [[outlet]]
        kind = "slack"
        name = "ops"
        url = "{web.url}/s3cret"
        group_wait = "1h"
        [[silence]]
        match = ['rule=~"(dead|stuck) sensor"']
        until = 2100-01-01T00:00:00Z
        """
    )
    job = Job.of(app_of("iot"), None, SET, recording=recording)
    to = outlets(None, None, None, [path])
    with closing(to, 60.0):
        result = replayed(
            AppReplay(job, [recording], to=to), kafka.bootstrap_servers, Console(file=io.StringIO())
        )
    account = outlet_accounts(to)["ops"]
    by_rule = [alert["rule"] for alert in result["alerts"]]
    assert account.sent and account.silenced >= 3 and account.given == account.sent + account.silenced
    (request,) = web.requests
    fired = by_rule.count("limit")
    assert f"{account.sent} alerts ({fired} fired" in request.body["text"]
    said = capsys.readouterr().err
    assert f"alerts to ops: {account}" in said and "s3cret" not in said


@pytest.mark.slow
@pytest.mark.kafka
def test_what_an_outlet_that_is_away_did_not_take_comes_with_the_next_run(
    kafka, web: WebServer, tmp_path: Path
) -> None:
    job = Job.of(app_of("iot"), "json", SET)
    topic, group = f"away-{uuid4().hex[:8]}", f"group-{uuid4().hex[:8]}"
    ensure_topic(admin({"bootstrap.servers": kafka.bootstrap_servers}), topic, 1)
    recording, path = tmp_path / "readings.jsonl", tmp_path / "outlets.toml"
    recording.write_bytes(b"\n".join(lines(readings())[:600]) + b"\n")
    path.write_text(f'[[outlet]]\nkind = "webhook"\nurl = "{web.url}"\n')
    messages = list(job.form.messages(recording, job.settings))
    wanted, alerts = alerts_of(messages, job), alerts_topic_of(group)
    later = max(message.sent_ms or 0 for message in messages) + 86_400_000
    value = b'{"device": {"id": "z"}, "ts": %d, "payload": {"t": 20}}' % later
    messages.append(messages[0]._replace(value=value, sent_ms=later))
    sent(kafka, topic, messages)

    def run() -> tuple[Live, set[str]]:
        live = Live(job, Feed(topic, kafka.bootstrap_servers), group, to=outlets(alerts, None, None, [path]))
        return live, {one["id"] for one in alerts_in(kafka, alerts)}

    web.always = 503
    live, _ = run()
    going = ENGINES["local"](live)
    try:
        # The topic gets all of them, whatever the web address says.
        until(lambda: len(alerts_in(kafka, alerts)) >= len(wanted) > 3)
        until(lambda: web.requests)
    finally:
        going.stop()
    assert outlet_accounts(live.to)["webhook 127.0.0.1"].sent == 0
    web.always = None
    before = len(web.requests)
    live, ids = run()
    going = ENGINES["local"](live)
    try:
        until(lambda: {one.body["id"] for one in web.requests[before:]} >= ids)
    finally:
        going.stop()
