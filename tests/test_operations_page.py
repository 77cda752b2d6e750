"""What the page on running streams shows works as it stands, and it names every metric."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamgauge.operators.watching.figures import Figures
from streamgauge.operators.watching.health import Health
from streamgauge.operators.watching.metrics import families

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "operations.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def block(word: str) -> str:
    (result,) = [text for text in BLOCKS if word in text]
    return result


@pytest.mark.kafka
def test_metrics_are_served_as_shown(kafka: Any) -> None:
    import polars as pl

    from streamgauge import Stream, count, json

    kafka.create_topic("watched-posts", 1)
    source = Stream.from_kafka(
        "watched-posts", value=json({"n": pl.Int64}), bootstrap_servers=kafka.bootstrap_servers
    )
    names: dict[str, Any] = {"posts": source.tumbling("1m").agg(n=count())}
    exec(block("metrics=9400").replace("metrics=9400", "metrics=0"), names)
    address = f"http://{names['run'].metrics_address}"
    assert httpx.get(f"{address}/health", trust_env=False, timeout=120).status_code == 200
    names["run"].stop()
    names["run"].wait(120)


def test_logs_are_set_up_as_shown() -> None:
    names: dict[str, Any] = {}
    exec(block("log_to("), names)
    names["undo"]()


def test_every_metric_is_in_the_table_and_no_other() -> None:
    section = PAGE.split("## Metrics")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    shown = {name for line in rows for name in re.findall(r"`([a-z_]+)(?:\{[^}]*\})?`", line.split("|")[1])}
    known = {
        family.name.removeprefix("streamgauge_") + ("_total" if family.type == "counter" else "")
        for family in families([(Figures(group="g"), Health(True, True))])
    }
    assert known == shown
