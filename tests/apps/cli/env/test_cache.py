"""`streamgauge env cache` shows what is kept, and removes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamgauge.apps.cli.commands import app
from streamgauge.apps.dev.kafka import running_clusters
from streamgauge.sketches.core.compilation import kernel_cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "HOME", tmp_path / "package")
    for name, size in (("kernels/one.kernel", 400_000), ("kafka/jars-9.9/kafka.jar", 1_100_000)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(bytes(size))
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["env", "cache", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_cache_is_listed_and_cleared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [json.loads(line) for line in run("--json").splitlines()]
    assert [(one["content"], one["bytes"]) for one in shown] == [
        ("compiled kernels", 400_000),
        ("Kafka's jars", 1_100_000),
    ]
    assert "1.1 MB  Kafka's jars" in run()
    assert run("--clear") == "removed 1.5 MB\n"
    assert run() == "nothing is cached\n" and not list(folder.rglob("*.jar"))


def test_the_jars_of_running_clusters_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running: Any = object()
    monkeypatch.setattr(running_clusters, "find_running", lambda: [running])
    assert run("--clear") == "removed 0.4 MB\n"
    assert (folder / "kafka" / "jars-9.9" / "kafka.jar").is_file()


def test_kernels_of_an_installed_package_are_outside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An uninstall removes the package's own files; a folder of kernels would stay, and be importable."""
    packages = Path("/env/lib/python3.11/site-packages")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(kernel_cache, "HOME", packages / "streamgauge")
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", "")
    assert kernel_cache.folders()[0] == packages / "__pycache__" / "streamgauge-kernels"
    monkeypatch.setattr(kernel_cache, "HOME", Path("/src/streamgauge"))
    assert kernel_cache.folders()[0] == Path("/src/streamgauge/__pycache__/streamgauge-kernels")
