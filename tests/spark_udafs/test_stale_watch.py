"""That no message comes to the topic of a query is told once, and so is that messages come again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.alerting import Alerting
from streamgauge.operators.rules.threshold import Threshold
from streamgauge.operators.rules.to_output import AlertFile
from streamgauge.operators.rules.to_topic import AlertTopic
from streamgauge.spark_udafs.alerts import AlertSink

from ..waiting import until
from .kafka.planned import letters_of

pytestmark = pytest.mark.kafka


def test_silence_is_told_once_over_a_restart_and_so_is_its_end(
    kafka: Any,
    topic: Callable[..., str],
    send: Callable[..., None],
    everything_from: Callable[[str], Stream],
    tmp_path: Path,
) -> None:
    name, file = topic(2), tmp_path / "alerts.jsonl"
    alerts = f"{name}.alerts"

    def told() -> list[str]:
        whole = file.read_text().rpartition("\n")[0] if file.exists() else ""  # a line may be half written
        return [json.loads(line)["state"] for line in whole.splitlines()]

    def begun() -> Any:
        to = [AlertFile(file), AlertTopic(alerts)]
        alerting = Alerting([Threshold("busy", value="rows", above=9)], to, stale="1s", app="posts")
        query = SimpleNamespace(isActive=True, id="7f3a")
        AlertSink(everything_from(name), alerting, tmp_path / "rules").beside(query)
        return query

    query = begun()
    until(lambda: told() == ["fired"] and (tmp_path / "rules" / "alerts-7f3a-stale.json").exists())
    query.isActive = False
    again = begun()
    send(name, [b"anything"], partition=1)
    until(lambda: len(told()) >= 2 or (send(name, [b"more"]) is not None))
    until(lambda: len(told()) >= 3)
    again.isActive = False
    # Of a machine that stands still in between, more silences and their ends may be told.
    assert told()[:3] == ["fired", "cleared", "fired"]
    found = [json.loads(message.value()) for message in letters_of(kafka, alerts, 3)]
    assert [(one["rule"], one["state"], one["app"]) for one in found] == [
        ("stale feed", state, "posts") for state in ("fired", "cleared", "fired")
    ]
    assert found[0]["why"] == "no message for longer than 1s" and found[0]["value"] == 1.0
