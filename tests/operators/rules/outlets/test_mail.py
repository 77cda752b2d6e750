"""E-mail over a real SMTP connection: TLS, logins, refusals; no text becomes a header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.errors import OutletError
from streamgauge.operators.rules.outlets.outlet import trial_notification
from streamgauge.rules import AlertsToEmail

from .alerts import ALERT, EVIL, one
from .servers import SmtpServer, certificate

SENDER = "The gauge <gauge@example.org>"


@pytest.fixture
def smtp() -> Iterator[SmtpServer]:
    server = SmtpServer()
    yield server
    server.close()


def plain(server: SmtpServer, **options) -> AlertsToEmail:
    given = {"sender": SENDER, "to": ["ops@example.org"], "security": "none", **options}
    return AlertsToEmail("127.0.0.1", port=server.port, **given)


def test_an_alert_is_a_message(smtp: SmtpServer) -> None:
    outlet = plain(smtp, to=["ops@example.org", "Ann <ann@example.org>"])
    outlet.send(one())
    outlet.send(one())
    outlet.send(trial_notification())
    first, again, trial = (mail.message for mail in smtp.mails)
    assert first["Subject"] == "iot: hot hall fired" and first["From"] == SENDER
    assert smtp.mails[0].to == ["ops@example.org", "ann@example.org"]
    assert first.get_content().rstrip() == "2026-06-01T12:00:00+00:00 hot hall fired: 31 > 30"
    assert first["Message-ID"] == again["Message-ID"] != trial["Message-ID"]
    assert first["Auto-Submitted"] == "auto-generated" and first["Date"]
    assert trial["Subject"].startswith("[TEST] ") and "nothing has happened" in trial.get_content()


def test_no_text_becomes_a_header_or_ends_the_message(smtp: SmtpServer) -> None:
    from dataclasses import replace

    plain(smtp).send(
        one(replace(EVIL, rule="r\r\nBcc: all@evil.test\r\n\r\nbody", why="a\r\n.\r\nMAIL FROM:<x>"))
    )
    (mail,) = smtp.mails
    assert mail.to == ["ops@example.org"] and mail.message["Bcc"] is None
    assert set(mail.message.keys()) == {
        *("Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted"),
        *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
    }
    assert "\\r\\nBcc" in mail.message["Subject"] and len(mail.message.get_content().splitlines()) == 1


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_passwords_go_by_tls_alone(tmp_path: Path, security: str) -> None:
    ca_file, context = certificate(tmp_path)
    server = SmtpServer(security, context, logins={"gauge": "tr0ut"})
    options = {"security": security, "user": "gauge", "ca_file": ca_file}
    try:
        plain(server, **options, password="tr0ut").send(one())
        assert [(mail.secure, mail.user) for mail in server.mails] == [(True, "gauge")]
        with pytest.raises(OutletError, match="it answered 535") as raised:
            plain(server, **options, password="p1ke-p1ke").send(one())
        assert not raised.value.may_pass and "p1ke" not in f"{raised.value}"
        with pytest.raises(OutletError, match="certificate is not trusted") as raised:
            plain(server, security=security).send(one())
        assert not raised.value.may_pass
    finally:
        server.close()


def test_a_server_without_tls_gets_nothing(smtp: SmtpServer) -> None:
    with pytest.raises(OutletError, match="STARTTLS") as raised:
        plain(smtp, security="starttls").send(one())
    assert not raised.value.may_pass and not smtp.mails


def test_what_a_server_refuses_is_named(caplog: pytest.LogCaptureFixture) -> None:
    server = SmtpServer(refused={"gone@example.org": 550, "late@example.org": 451}, answers=[451, 554])
    for to, may_pass in (("gone@example.org", False), ("late@example.org", True)):
        with pytest.raises(OutletError, match="no address was accepted: it answered") as raised:
            plain(server, to=[to]).send(one())
        assert raised.value.may_pass == may_pass
    for may_pass in (True, False):
        with pytest.raises(OutletError) as raised:
            plain(server).send(one())
        assert raised.value.may_pass == may_pass
    plain(server, to=["ops@example.org", "gone@example.org"]).send(one(ALERT))
    assert server.mails[0].to == ["ops@example.org"] and "refused gone@example.org" in caplog.text
    server.close()
    with pytest.raises(OutletError) as raised:
        plain(server).send(one())
    assert raised.value.may_pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sender": "nobody"}, "email: 'nobody' is not an address"),
        ({"sender": "a@b\r\nBcc: c@d"}, "is not an address"),
        ({"to": "ops@example.org"}, "to must be a list"),
        ({"to": []}, "to must be a list"),
        ({"security": "ssl"}, "security must be one of starttls, tls, none, got 'ssl'"),
        ({"security": "none", "user": "me", "password": "x"}, "not sent without TLS"),
        ({"port": 70_000}, "port must be a number below 65536"),
    ],
)
def test_options_that_can_not_be_are_named(options, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AlertsToEmail("mx", **{"sender": SENDER, "to": ["ops@example.org"], **options})
