"""Each of the user's settings reaches the client that reads raw batches, or that client is not used."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.operators.kafka.client_config import reader_config
from streamgauge.operators.kafka.raw_settings import raw_settings
from streamgauge.operators.kafka.source import ReadError

from ...cases import each

LOGIN = {"sasl.username": "ann", "sasl.password": "tr0ut"}


@each(
    ("given", "result"),
    [
        ({"bootstrap.servers": "one:9092, two:9092"}, {"bootstrap_servers": ["one:9092", "two:9092"]}),
        ({"metadata.broker.list": "one:9092"}, {"bootstrap_servers": ["one:9092"]}),
        ({"isolation.level": "read_uncommitted"}, {"isolation_level": "read_uncommitted"}),
        ({"auto.offset.reset": "error"}, {"auto_offset_reset": "none"}),
        ({"auto.offset.reset": "smallest"}, {"auto_offset_reset": "earliest"}),
        ({"auto.offset.reset": "largest"}, {"auto_offset_reset": "latest"}),
        ({"fetch.message.max.bytes": "1000"}, {"max_partition_fetch_bytes": 1000}),
        ({"client.rack": "a", "client.id": "me"}, {"client_rack": "a", "client_id": "me"}),
        ({"socket.timeout.ms": 5000}, {"request_timeout_ms": 5000}),
        ({"connections.max.idle.ms": 5000}, {"connections_max_idle_ms": 5000}),
        (
            {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "SCRAM-SHA-256", **LOGIN},
            {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_plain_username": "ann",
                "sasl_plain_password": "tr0ut",
            },
        ),
        # What members, producers and librdkafka's own queues take says nothing about reading.
        ({"session.timeout.ms": 6000, "linger.ms": 5, "queued.min.messages": 9, "log_level": 0}, {}),
    ],
)
def test_a_setting_is_translated(given: dict[str, Any], result: dict[str, Any]) -> None:
    assert raw_settings(given) == result


def test_what_a_reader_is_given_by_default_is_translated_whole() -> None:
    result = raw_settings(reader_config({"bootstrap.servers": "box:9092"}))
    assert result == {
        "bootstrap_servers": ["box:9092"],
        "fetch_max_wait_ms": 50,
        "reconnect_backoff_ms": 20,
        "reconnect_backoff_max_ms": 1000,
        "isolation_level": "read_committed",
        "auto_offset_reset": "none",
    }


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"ssl.engine.location": "x"}, "ssl.engine.location"),
        ({"ssl.keystore.location": "x", "security.protocol": "SSL"}, "ssl.keystore.location"),
        ({"sasl.oauthbearer.method": "oidc"}, "sasl.oauthbearer.method"),
        ({"plugin.library.paths": "x"}, "plugin.library.paths"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "GSSAPI"),
        ({"security.protocol": "SASL_SSL"}, "GSSAPI"),  # librdkafka's own default
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
    ],
)
def test_a_setting_that_has_no_counterpart_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ReadError, match=rf"only librdkafka itself .*{named}"):
        raw_settings(given)


def test_files_that_are_not_there_are_named() -> None:
    with pytest.raises(ReadError, match=r"TLS can't be set up: .*nowhere.*settings that begin with ssl"):
        raw_settings({"security.protocol": "SSL", "ssl.certificate.location": "nowhere.pem"})


def test_tokens_come_from_the_callback_with_what_goes_with_them() -> None:
    collected: list[str] = []

    def callback(config: str) -> tuple[Any, ...]:
        collected.append(config)
        return f"token {len(collected)}", 1e9, "ann", {"cluster": "box"}

    sasl = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    given = {**sasl, "oauth_cb": callback, "sasl.oauthbearer.config": "who=me"}
    tokens = raw_settings(given)["sasl_oauth_token_provider"]
    assert (tokens.token(), tokens.extensions()) == ("token 1", {"cluster": "box"})
    assert tokens.token() == "token 2" and collected == ["who=me", "who=me"]
    short = raw_settings({**sasl, "oauth_cb": lambda _: ("token", 1e9)})["sasl_oauth_token_provider"]
    assert (short.token(), short.extensions()) == ("token", {})
