"""Every example in a docstring runs, and everything public has a docstring that says what it promises."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import streamgauge

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ["sketches", "sampling", "operators", "spark_udafs", "apps"]


def modules() -> list[str]:
    rooms = [path for floor in FLOORS for path in (ROOT / floor).rglob("*.py")]
    paths = sorted(path.relative_to(ROOT) for path in [ROOT / "stream.py", *rooms])
    return [
        ".".join(["streamgauge", *path.with_suffix("").parts]).removesuffix(".__init__") for path in paths
    ]


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("name", [name for name in streamgauge.__all__ if name != "__version__"])
def test_public_names_say_what_they_are(name: str) -> None:
    public = getattr(streamgauge, name)
    assert inspect.getdoc(public)
    if inspect.isclass(public) and hasattr(public, "from_bytes"):
        text = inspect.getdoc(public) or ""
        assert ">>>" in text, f"{name} shows no example"
