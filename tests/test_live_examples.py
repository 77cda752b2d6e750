"""Every example in a docstring that needs a broker at "localhost:9092", or a session called `spark`, runs.

The broker has the topics "posts", with four posts of the first two minutes of 2026 as JSON with user, lang
and at, and "windows", which is empty.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .examples import examples, modules_with, needs_broker, needs_spark, run

POSTS = [
    {"user": "ann", "lang": "en", "at": "2026-01-01T00:00:10Z"},
    {"user": "bob", "lang": "en", "at": "2026-01-01T00:00:20Z"},
    {"user": "ann", "lang": "en", "at": "2026-01-01T00:00:50Z"},
    {"user": "eve", "lang": "de", "at": "2026-01-01T00:01:05Z"},
]


@pytest.fixture(scope="module")
def broker(kafka: Any) -> str:
    from confluent_kafka import Producer

    kafka.create_topic("posts", 1)
    kafka.create_topic("windows", 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for post in POSTS:
        producer.produce("posts", json.dumps(post))
    producer.flush()
    return kafka.bootstrap_servers


@pytest.mark.kafka
@pytest.mark.parametrize("module", modules_with("localhost:9092"))
def test_examples_run_on_kafka(
    module: str, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for docstring in examples(module):
        if needs_broker(docstring) and not needs_spark(docstring):
            run(docstring, broker=broker)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("module", modules_with("spark"))
def test_examples_run_on_spark(
    module: str, spark: Any, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for docstring in examples(module):
        if needs_spark(docstring):
            run(docstring, {"spark": spark}, broker)
