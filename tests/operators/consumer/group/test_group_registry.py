"""A group's streams follow from its topics alone, and put into words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamgauge.operators.consumer.group import group_registry
from streamgauge.operators.consumer.group.group_registry import (
    committed_by,
    other_streams,
    tables_together,
)

FINGERPRINT = "0123456789abcdef"


def test_a_topic_belongs_to_the_group_that_is_written_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    together = {"g.a": ("a", "b"), "g.b": ("a", "b"), "g.alone": (), "g.x.a": ("a",), "g.empty": None}

    def recorded(config: Any, topic: str) -> Any:
        names = together[topic.rpartition(".table.")[0]]
        return None if names is None else SimpleNamespace(together=names)

    monkeypatch.setattr(group_registry, "recorded_in", recorded)
    topics = [f"{group}.table.{FINGERPRINT}" for group in together]
    topics += [f"g.table.{FINGERPRINT}", "g.a.table.short", f"h.a.table.{FINGERPRINT}", "g"]

    def of(group: str, but: tuple[str, ...] = ()) -> list[str]:
        return [topic.split(".table")[0] for topic, _ in tables_together({}, group, topics, but)]

    assert of("g") == ["g.a", "g.b"] and of("g", ("a",)) == ["g.b"] and of("g.x") == ["g.x.a"]


@pytest.mark.parametrize(("config", "lasting"), [({}, 60.0), ({"transaction.timeout.ms": "90000"}, 90.0)])
def test_a_transaction_that_a_dead_worker_left_open_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], lasting: float
) -> None:
    clock = SimpleNamespace(now=0.0)

    class SlowConsumer:
        """Brokers look for transactions that have timed out every ten seconds."""

        open_until = 0.0

        def __init__(self, *given: Any, **more: Any) -> None:
            pass

        def committed(self, requested: list[Any], timeout: float) -> list[Any]:
            if clock.now < self.open_until:
                clock.now += timeout
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            return requested

        def poll(self, timeout: float) -> None:
            pass

        def close(self) -> None:
            pass

    monkeypatch.setattr(group_registry, "Consumer", SlowConsumer)
    monkeypatch.setattr(group_registry.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(group_registry.time, "sleep", lambda seconds: None)
    SlowConsumer.open_until = lasting + 10.0
    assert committed_by({"bootstrap.servers": "box", **config}, "g", ["place"]) == ["place"]
    clock.now, SlowConsumer.open_until = 0.0, 1e9
    with pytest.raises(KafkaException, match="TIMED_OUT"):
        committed_by({"bootstrap.servers": "box", **config}, "g", ["place"])


@pytest.mark.parametrize(
    ("known", "now", "lines"),
    [
        (["a", "b"], ["a"], "the streams 'a' and 'b' together, and can't continue with others ('b'"),
        (
            ["b"],
            ["c", "a", "b"],
            "the streams 'b' together, and can't continue with others ('a' and 'c' added):",
        ),
        ([""], ["a"], "a stream that runs by itself, and can't continue with others ('a' added):"),
        (["a"], [""], "the streams 'a' together, and can't continue with others ('a' missing):"),
    ],
)
def test_what_is_added_and_missing_is_named(known: list[str], now: list[str], lines: str) -> None:
    assert f"the group 'g' belongs to {lines}" in str(other_streams("g", known, now))
