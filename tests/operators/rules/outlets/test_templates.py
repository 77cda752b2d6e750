"""Messages by templates: what comes from outside stays text, in every outlet."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import streamgauge as sg
from streamgauge.operators.rules.outlets.grouping import Notification

HOSTILE = "{{ 7 * 7 }} {% for %} `x` <https://evil.example|click> <!channel> & \x1b[2J\r\nBcc: a@b \u202e"
TEMPLATE = "*{{ rule }}* of {{ keys.room }}: {{ why }} at {{ at }} <{{ link }}|chart>"


def alert(why: str = HOSTILE, value: float | None = 31.0) -> sg.rules.Alert:
    figures = value, value, value, 30.0
    return sg.rules.Alert(
        "hot", "threshold", "fired", ("hall",), 0, 0, *figures, why, "iot", key_names=("room",)
    )


def slack(template: str, **options: Any) -> sg.rules.AlertsToSlack:
    return sg.rules.AlertsToSlack("https://hooks.example.org/x", template=template, **options)


def test_a_template_writes_the_line() -> None:
    text = (
        "{{ app }} {{ rule }} {{ kind }} {{ key }} {{ state }} {{ '%.1f' % value }} > {{ limit }}, {{ at }}"
    )
    mail = sg.rules.AlertsToEmail(
        "localhost", sender="a@example.org", to=["b@example.org"], zone="Asia/Tokyo", template=text
    )
    (text,) = mail.lines(Notification([alert("hot")]))
    assert text == "iot hot threshold hall fired 31.0 > 30.0, 1970-01-01T09:00:00+09:00"


def test_hostile_text_stays_text() -> None:
    body = slack(TEMPLATE, page="https://gauge.example.org").body(Notification([alert()]))
    text = body["attachments"][0]["text"]
    assert text.startswith("*`hot`* of `hall`: `{{ 7 * 7 }} {% for %} ˋxˋ &lt;https://evil.example|")
    assert text.endswith("|chart>") and "<https://gauge.example.org/app/iot?" in text
    assert text.count("<") == 1 and not set(text) & set("\x1b\r\n\u202e")
    ntfy = sg.rules.AlertsToNtfy("https://ntfy.example.org/ops", template="{{ why | upper }}")
    assert not set(ntfy.body(Notification([alert()]))["message"]) & set("\x1b\r\n\u202e")


def test_what_an_expression_does_to_text_doesnt_free_it() -> None:
    for expression in ("why | safe", "why ~ ''", "(why, 1)", "[why][0]", "why | replace('x', '`')"):
        text = slack("{{ " + expression + " }}").lines(Notification([alert()]))[0]
        assert text.count("`") == 2 and "<" not in text, expression


def test_an_alert_that_the_template_cant_write_is_sent_as_usual(caplog: pytest.LogCaptureFixture) -> None:
    outlet = slack("{{ '%.1f' % value }}")
    with caplog.at_level(logging.WARNING):
        (text,) = outlet.lines(Notification([alert("over", None)]))
    assert text == "`1970-01-01T00:00:00+00:00 hot hall fired: over`"
    assert "the usual line is sent" in caplog.text


def test_the_sandbox_holds() -> None:
    outlet = slack("{{ why.__class__.__mro__ }}{{ ''.__init__.__globals__ }}")
    (text,) = outlet.lines(Notification([alert("over")]))
    assert "class" not in text and "globals" not in text


def test_wrong_templates_are_refused() -> None:
    for template, message in (
        ("{{ who }}", "slack: template: 'who' is not known; there are app, rule"),
        ("{{ why", "slack: template: unexpected end of template"),
    ):
        with pytest.raises(ValueError, match=message):
            slack(template)
    with pytest.raises(ValueError, match="webhook: it sends alerts whole, without text; leave template out"):
        sg.rules.AlertsToWebhook("https://example.org/", template="{{ why }}")
