"""Recordings of prices in packages that a machine may have, and a made-up twin that is always there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ...conftest import recordings_folder
from .made import recording


@pytest.fixture(scope="session")
def apple() -> Path:
    """river's 1,867 days of Apple."""
    return _file("apple.csv", "river", "drift/datasets/apple.csv", "pip install river")


@pytest.fixture(scope="session")
def sp500() -> Path:
    """The 5,105 days of the S&P 500 in the npm package vega-datasets."""
    return _file("sp500-2000.csv", None, "", "npm pack vega-datasets")


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trades of Alpaca's form, made up: two sessions of three symbols with all that rules report."""
    path = tmp_path_factory.mktemp("stocks") / "alpaca.jsonl"
    path.write_bytes(b"\n".join(recording()) + b"\n")
    return path


def _file(name: str, package: str | None, inside: str, how: str) -> Path:
    """A recording in the folder of recordings or its `stocks`, or in a package; skips without."""
    if (named := recordings_folder()) is not None:
        for folder in (named / "stocks", named):
            if (folder / name).is_file():
                return folder / name
    spec = importlib.util.find_spec(package) if package else None
    if spec is not None and spec.origin is not None and (path := Path(spec.origin).parent / inside).is_file():
        return path
    pytest.skip(f"{name} is not here: {how}, or name its folder by STREAMGAUGE_RECORDINGS")
