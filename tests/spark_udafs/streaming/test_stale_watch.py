"""That no message comes to the topic of a query is reported once, and so is that messages come again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.alerting import Alerting
from streamgauge.operators.rules.kinds.threshold import Threshold
from streamgauge.operators.rules.outlets.to_output import AlertsToFile
from streamgauge.operators.rules.outlets.to_topic import AlertsToKafka
from streamgauge.spark_udafs.streaming.alerts import AlertingSink

from ...waiting import until
from ..kafka.planned import letters_of

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_silence_is_reported_once_over_a_restart_and_so_is_its_end(
    kafka: Any,
    topic: Callable[..., str],
    send: Callable[..., None],
    everything_from: Callable[[str], Stream],
    tmp_path: Path,
) -> None:
    name, file = topic(2), tmp_path / "alerts.jsonl"
    alerts = f"{name}.alerts"

    def alerts_now() -> list[str]:
        whole = file.read_text().rpartition("\n")[0] if file.exists() else ""  # a line may be half written
        return [json.loads(line)["state"] for line in whole.splitlines()]

    def begun() -> Any:
        to = [AlertsToFile(file), AlertsToKafka(alerts)]
        alerting = Alerting([Threshold("busy", value="rows", above=9)], to, stale="1s", app="posts")
        query = SimpleNamespace(isActive=True, id="7f3a", at_end=lambda call: None)
        AlertingSink(everything_from(name), alerting, tmp_path / "rules").beside(query)
        return query

    query = begun()
    until(lambda: alerts_now() == ["fired"] and (tmp_path / "rules" / "alerts-7f3a-stale.json").exists())
    query.isActive = False
    again = begun()
    send(name, [b"anything"], partition=1)
    until(lambda: len(alerts_now()) >= 2 or (send(name, [b"more"]) is not None))
    until(lambda: len(alerts_now()) >= 3)
    again.isActive = False
    # Of a machine that stands still in between, more silences and their ends may be reported.
    assert alerts_now()[:3] == ["fired", "cleared", "fired"]
    payload = [json.loads(message.value()) for message in letters_of(kafka, alerts, 3)]
    assert [(one["rule"], one["state"], one["app"]) for one in payload] == [
        ("stale feed", state, "posts") for state in ("fired", "cleared", "fired")
    ]
    assert payload[0]["why"] == "no message for longer than 1s" and payload[0]["value"] == 1.0
