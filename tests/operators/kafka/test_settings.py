"""Settings are judged where the stream is defined, by the library that will take them."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.settings import check_settings

from ...cases import each


def posts(**more) -> Stream:
    return Stream.from_kafka("posts", value=json({"user": pl.String}), **more)


@each(
    ("config", "message"),
    [
        ({"sasl.usernmae": "me"}, '"sasl.usernmae"; did you mean "sasl.username"?'),
        ({"bootstrap_servers": "box:9092"}, 'did you mean "bootstrap.servers"?'),
        ({"securityprotocol": "SSL"}, 'did you mean "security.protocol"?'),
        ({"key.deserializer": "Bytes"}, 'no Kafka setting "key.deserializer"'),
        ({"security.protocol": "TLS"}, 'the Kafka setting "security.protocol": Invalid value "TLS"'),
        ({"session.timeout.ms": "soon"}, 'the Kafka setting "session.timeout.ms"'),
        ({"acks": 1}, 'the Kafka setting "acks" must be all here, got 1'),
        ({"request.required.acks": "0"}, '"request.required.acks" must be all here, got 0'),
        ({"enable.idempotence": False}, '"enable.idempotence" must be true here, got false'),
        ({5: "x"}, "names of Kafka settings must be strings"),
    ],
)
def test_a_setting_that_does_not_exist_is_named_where_it_is_written(config, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        posts(config=config)
    assert message in str(raised.value)


def test_the_settings_that_clients_take_pass() -> None:
    check_settings(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "PLAIN",
            "sasl.password": "tr0ut",
            "log_level": 0,
            "enable.auto.commit": False,
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": 1000,  # a topic's setting
            "error_cb": print,
        }
    )


def test_several_brokers_come_as_text_or_as_a_list() -> None:
    for given in ("one:9092, two:9092", ["one:9092", "two:9092"], ("one:9092", " two:9092")):
        assert posts(bootstrap_servers=given).source.bootstrap_servers == "one:9092,two:9092"


@pytest.mark.parametrize("wrong", [None, 9092, ["one:9092", 5], {"host": "one"}])
def test_what_is_no_address_is_a_type_error(wrong) -> None:
    with pytest.raises(TypeError, match='must be "host:port" or a list'):
        posts(bootstrap_servers=wrong)


@pytest.mark.parametrize("wrong", ["", [], "one:9092,,two:9092", [""]])
def test_an_empty_address_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="must name at least one broker"):
        posts(bootstrap_servers=wrong)


def test_settings_come_as_a_mapping() -> None:
    with pytest.raises(
        TypeError, match=r"config must be a dict of Kafka settings, such as .*, got 'security"
    ):
        posts(config="security.protocol=SSL")
