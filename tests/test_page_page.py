"""The page on the live page: its code runs, what it names is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from streamgauge.apps.panels import Panel

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "page.md").read_text()


def test_the_code_runs() -> None:
    names: dict[str, Any] = {}
    (text,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    exec(text, names)
    assert [panel.title for panel in names["panels"]][:2] == ["Users", "Errors in requests"]


def test_every_panel_and_picture_that_there_is_is_documented() -> None:
    reported = re.findall(r"^\| `(\w+Panel)` \|", PAGE, re.M)
    assert sorted(reported) == sorted(panel.__name__ for panel in get_args(Panel))
    for picture in re.findall(r"\((pictures/[^)]+)\)", PAGE):
        assert (ROOT / "docs" / picture).is_file()
