"""Alerts by Apprise reach their service, raise and resolve there, and are retried until they are accepted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamgauge.errors import OutletError
from streamgauge.operators.rules.outlets.outlet import trial_notification
from streamgauge.operators.rules.outlets.toml_outlets import outlet_of
from streamgauge.rules import AlertsToApprise

from .alerts import EVIL, alert, one
from .servers import WebServer

pytest.importorskip("apprise")


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    yield server
    server.close()


def address(web: WebServer) -> str:
    return web.url.replace("http://", "json://user:secret@")


def test_an_event_is_a_failure_and_its_end_a_success(web: WebServer) -> None:
    outlet = AlertsToApprise(address(web))
    outlet.send(one())
    outlet.send(one(alert("hall", "cleared", minute=5)))
    outlet.send(one(alert(EVIL)))
    outlet.send(trial_notification())
    fired, cleared, evil, trial = (request.body for request in web.requests)
    assert fired["title"] == "iot: hot hall fired" and "31 > 30" in fired["message"]
    assert [body["type"] for body in (fired, cleared, trial)] == ["failure", "success", "failure"]
    assert trial["title"].startswith("[TEST]")
    # What a key holds is one line of text.
    assert "\n" not in evil["message"].strip()


def test_what_is_not_accepted_may_pass_and_no_secret_is_shown(web: WebServer) -> None:
    outlet = AlertsToApprise(address(web))
    web.always = 500
    with pytest.raises(OutletError, match="JSON didn't accept it") as refused:
        outlet.send(one())
    assert refused.value.may_pass and "secret" not in str(refused.value) + repr(outlet) + outlet.title


def test_a_file_names_it_and_an_unknown_address_is_refused_without_being_shown() -> None:
    outlet = outlet_of('kind = "apprise", url = "tgram://123456789:abcdefg_hijklmnop/12315544"')
    assert outlet.title == "apprise Telegram"
    with pytest.raises(ValueError, match="url must be an address that Apprise knows") as refused:
        outlet_of('kind = "apprise", url = "nowhere://secret"')
    assert "secret" not in str(refused.value)
