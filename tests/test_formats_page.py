"""What the page on formats shows works as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .operators.formats.schema_registry import SmallRegistry

PAGE = Path(__file__).resolve().parents[1] / "docs" / "formats.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def test_the_lines_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    registry = SmallRegistry()
    names: dict[str, Any] = {}
    with registry.served():
        for block in BLOCKS:
            if '"orders-value"' in block:
                registry.add("orders-value", names["order"])
            exec(block.replace("http://localhost:8081", registry.url), names)
    assert "Float64" in str(names["orders"].schema["total"])
    assert names["decoded"].frame.rows()[0][:2] == (1, "ann") and names["decoded"].reasons == []
    assert list(names["rows"].columns) == ["id", "who", "total", "tags", "items", "sku", "n"]
    assert names["latest"].schema == names["plain"].schema
    assert list(names["files"].schema) == ["records"] and list(names["some"].schema) == ["user", "by"]
    assert list(names["prices"].columns) == ["price", "symbol"]
    assert "not symbol;price" in capsys.readouterr().out
    decoded = names["own"].source.decode(
        names["sg"].formats.Messages.of([b"ACME;9.75", b"oops", b"\xff"], [b"k"] * 3)
    )
    assert decoded.frame.rows() == [("ACME", 9.75, "k")]
    assert decoded.refused.tolist() == [1, 2] and decoded.reasons == ["not symbol;price"] * 2
