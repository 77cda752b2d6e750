"""The page about sketches: its code runs, its numbers are those that are measured, its pictures are there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgauge import HLL, KLL, FrequentItems, Reservoir, Theta
from streamgauge.operators.families import FAMILIES

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "sketches.md").read_text()
NOTEBOOK = DOCS / "errors.ipynb"


def test_the_code_runs() -> None:
    names: dict[str, Any] = {}
    for text in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(text, names)
    assert names["first"].item == 1


def test_every_family_is_on_it() -> None:
    reported = set(re.findall(r"`(\w+)`", PAGE))
    assert set(FAMILIES) <= reported


def test_its_promises_are_those_of_the_sketches() -> None:
    for make, share in ((HLL, 0.033), (Theta, 0.032)):
        sketch = make(12).update(np.arange(1_000_000))
        low, high = sketch.bounds(2)
        assert (high - low) / 2 / sketch.estimate() <= share, make
    assert KLL(200, seed=1).update(np.arange(1e6)).normalized_rank_error() <= 0.0133
    items = FrequentItems(4096).update(np.arange(1_000_000))
    low, high = items.bounds(1)
    assert (high - low) / 1_000_000 <= 0.0009
    assert Reservoir(100, seed=1).update(np.arange(10_000)).error(0.95) <= 0.14


@pytest.mark.slow
def test_the_notebook_draws_its_pictures_and_every_error_is_within_its_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: no pictures")
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert "ROWS, RUNS = 100_000, 80" in text and not any(cell.get("outputs") for cell in cells)
    names: dict[str, Any] = {}
    exec(text.replace("ROWS, RUNS = 100_000, 80", "ROWS, RUNS = 20_000, 12"), names)
    drawn = {path.name for path in Path("pictures").iterdir()}
    assert drawn == set(re.findall(r"\(pictures/(errors-[\w-]+\.svg)\)", PAGE))
    assert drawn == {path.name for path in (DOCS / "pictures").glob("errors-*")}
    for name, points in names["measured"].items():
        for size, error, promised in points:
            # Of twelve runs the 95th percentile is about the largest: three standard deviations, not two.
            assert size > 0 and error <= 1.5 * promised + 1e-9, (name, points)
