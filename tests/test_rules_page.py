"""The page on rules: its code runs, and its TOML is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from streamgauge.operators.rules.toml_rules import rules_of
from streamgauge.rules import Absence, Threshold

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "rules.md").read_text()


def test_the_code_runs(tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for text in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(text.replace("/tmp/alerts.jsonl", str(tmp_path / "alerts.jsonl")), names)
    tester = names["tester"]
    minute = 1_767_225_600
    for number in range(0, 600, 60):
        rows = [
            {"at": minute + number, "host": "a", "user": f"u{user}", "error": int(number > 120 and user < 9)}
            for user in range(120)
        ]
        tester.feed(rows)
    decoded = [message.value.decode() for message in tester.sent()]
    assert len(decoded) == 1 and '"rule":"errors"' in decoded[0]
    assert (tmp_path / "alerts.jsonl").read_text().count("\n") == 1


def test_the_rules_are_read() -> None:
    with_command, text = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    (hot,) = rules_of(with_command)
    assert hot.commands and hot.hold == "5m"
    assert rules_of(text) == [
        Threshold("hot", value="value", above=78, clear=76, hold="10m"),
        Absence("dead sensor", longer="2h"),
    ]
