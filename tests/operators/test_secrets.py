"""No secret in anything that is shown: a marked password is looked for wherever something is written."""

from __future__ import annotations

import logging
import pickle
from functools import partial
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.sources import KafkaSource
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.client_config import LIBRARY_LOG
from streamgauge.operators.kafka.faults import Refused
from streamgauge.operators.kafka.reader import EARLIEST, Reader, ReadError
from streamgauge.operators.kafka.topics import TopicError, admin, partitions_of
from streamgauge.operators.secrets import Settings, without_secrets
from streamgauge.spark_udafs.kafka.options import KafkaOptions

from ..cases import each

MARK = "m4rked-tr0ut"
NOWHERE = "127.0.0.1:1"

SECRETS: dict[str, Any] = {
    "sasl.password": MARK,
    "ssl.key.password": MARK,
    "ssl.keystore.password": MARK,
    "ssl.key.pem": MARK,
    "sasl.oauthbearer.client.secret": MARK,
    "sasl.oauthbearer.config": f"principal={MARK}",
    "sasl.oauthbearer.token.endpoint.url": f"https://me:{MARK}@login.example/token",
    "sasl.jaas.config": f'password="{MARK}";',
    "basic.auth.user.info": f"me:{MARK}",
    "schema.registry.url": f"http://me:p@{MARK}@registry:8081",
    "oauth_cb": partial(print, MARK),
}

OIDC = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": MARK,
    "sasl.oauthbearer.token.endpoint.url": f"http://me:{MARK}@{NOWHERE}/token",
}
UNPARSED = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanisms": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": True,
    "sasl.oauthbearer.config": f"{MARK}=1",
}
PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "me",
    "sasl.password": MARK,
}
KEY = {"security.protocol": "SSL", "ssl.key.password": MARK, "ssl.key.pem": MARK}


def stream(servers: str, config: dict[str, Any]) -> Stream:
    # Put together by hand: settings that only other clients have are refused where a stream is defined.
    source = KafkaSource(("posts",), json({"a": pl.Int64}), servers, config)
    return Stream(source).tumbling("1m").agg(posts=count())


@each("name", SECRETS)
def test_what_shows_settings_shows_their_names_and_no_secret(name: str) -> None:
    config = {name: SECRETS[name], "client.id": "gauge"}
    requested = stream("box:9092", config)
    for shown in (
        requested,
        requested.source,
        KafkaSource(("posts",), json({"a": pl.Int64}), config=config),
        Plan(requested, "group", "table", {"posts": 1}),
        Plan(requested, "group", "table", {"posts": 1}).config,
        KafkaOptions(Settings(config), topics=("posts",)),
    ):
        for text in (repr(shown), str(shown), f"{shown}"):
            assert MARK not in text and name in text
    assert "gauge" in repr(requested)
    assert requested.source.config == config


def test_settings_travel_whole() -> None:
    config = Settings({"sasl.password": MARK})
    assert pickle.loads(pickle.dumps(config)) == {"sasl.password": MARK}


def test_values_are_hidden_in_words() -> None:
    assert without_secrets(f"bad {MARK}", {"sasl.password": MARK, "client.id": "bad"}) == "bad …"


@pytest.mark.parametrize("source", ["raw", "plain"])
@pytest.mark.parametrize("config", [OIDC, UNPARSED, PLAIN, KEY])
def test_no_error_and_no_log_line_shows_one(
    config: dict[str, Any], source: Any, caplog: pytest.LogCaptureFixture, capfd: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("streamgauge.operators.kafka.reader._ANSWER_SECONDS", 0.3)
    whole = {"bootstrap.servers": NOWHERE, "debug": "all", **config}
    reported = ""
    with (
        caplog.at_level(logging.DEBUG, "streamgauge.kafka"),
        caplog.at_level(logging.DEBUG, LIBRARY_LOG.name),
    ):
        with pytest.raises(ReadError) as refused:
            Reader(whole, {("posts", 0): EARLIEST}, source=source)
        reported += repr(refused.value)
        if config is not KEY:
            with pytest.raises((TopicError, Refused)) as missing:
                partitions_of(admin(whole), "posts", 0.3)
            reported += repr(missing.value)
    printed = capfd.readouterr()
    assert reported and (caplog.text or config is KEY)
    assert MARK not in reported + caplog.text + printed.out + printed.err


@pytest.mark.kafka
def test_a_run_shows_none(kafka: Any, posts: Any, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    topic = posts(1, **{"sasl.password": MARK, "ssl.key.password": MARK, "debug": "conf,security"})
    topic.send(600)
    with (
        caplog.at_level(logging.DEBUG, "streamgauge.kafka"),
        caplog.at_level(logging.DEBUG, LIBRARY_LOG.name),
    ):
        summary = run(topic.stream, RunOptions(until="latest"))
    printed = capfd.readouterr()
    assert summary.account.read == 600 and caplog.text
    assert MARK not in caplog.text + printed.out + printed.err + repr(summary) + str(summary.table.schema)
