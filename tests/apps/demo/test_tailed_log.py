"""The demo's log: what a program writes is what the topic holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.agents.ingest.batch import IngestError
from streamgauge.apps.demo.synthetic import MadeUp
from streamgauge.apps.demo.tailed_log import TailedLog
from streamgauge.apps.registry import app_of

from ...agents.ingest.agents import fresh, values
from ...waiting import until

pytestmark = pytest.mark.kafka


def made_up() -> MadeUp:
    example = app_of("logs").example
    assert example is not None and example.log == "access.log"
    return MadeUp.from_now(example, 3, 4.0)


@pytest.mark.slow
def test_lines_reach_the_topic_in_their_order(kafka: Any, tmp_path: Path) -> None:
    topic, made = fresh("demo-log"), made_up()
    log = TailedLog(made, tmp_path / "access.log", topic, kafka.bootstrap_servers).start()
    try:
        until(lambda: log.done)
    finally:
        log.stop()
    lines = [message.value for message in made.messages()]
    assert log.sent == len(lines) and values(kafka, topic) == lines


@pytest.mark.slow
def test_what_ends_the_agent_ends_the_demo(kafka: Any, tmp_path: Path) -> None:
    log = TailedLog(made_up(), tmp_path / "access.log", fresh("demo-log"), kafka.bootstrap_servers)
    # Another agent of its name: this one is fenced.
    log.start()
    until(lambda: log.sent > 0)
    newer = TailedLog(made_up(), tmp_path / "access.log", log.topic, kafka.bootstrap_servers)
    newer.start()

    def ended() -> bool:
        # An agent learns of it with the next line that it sends: there always is one.
        with (tmp_path / "access.log").open("ab") as file:
            file.write(b"one more\n")
        return log.done is None

    try:
        with pytest.raises(IngestError, match="another agent"):
            until(ended)
        until(lambda: newer.done is not None and newer.sent > 0)  # which goes on
    finally:
        log.stop()
        newer.stop()
