"""The page on other systems: its Python runs, so DataSketches' C++ library reads each column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "exchange.md").read_text()


def test_other_libraries_read_the_stored_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasketches

    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(block, names)
    histogram = names["document"]["ms"]
    assert histogram["values"] == sorted(histogram["values"]) and len(histogram["counts"]) == 100
    pages = datasketches.frequent_strings_sketch.deserialize(names["stored"]["pages"][0])
    expected = sum(page == "p0" for page in names["visits"]["page"][:3_600])
    assert pages.get_estimate("p0") == expected
