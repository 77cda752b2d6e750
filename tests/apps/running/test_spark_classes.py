"""The classes that Spark loads: recorded once, and given to the Java of every session after that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from streamgauge.apps.environment.java import find_java
from streamgauge.apps.running import spark, spark_rehearsal
from streamgauge.apps.running.spark_classes import recorded
from streamgauge.apps.running.spark_rehearsal import RehearsalError, record


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def java_options(monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    """What a session for apps gives Java."""
    given: dict[str, str] = {}

    def session(name: str, config: Mapping[str, str]) -> None:
        given.update(config)

    monkeypatch.setattr("streamgauge.spark_udafs.session.session.session", session)
    monkeypatch.setenv("JAVA_HOME", "")
    spark.start_session(folder)
    return given["spark.driver.defaultJavaOptions"]


def test_a_session_uses_what_was_recorded(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recorded(find_java()) == []
    assert "SharedArchiveFile" not in java_options(monkeypatch, tmp_path)

    def rehearse(options: list[str]) -> None:
        Path(options[0].partition("=")[2]).write_text("classes")

    monkeypatch.setattr(spark_rehearsal, "_rehearse", rehearse)
    record()
    (archive,) = (cache / "classes").glob("spark-*.jsa")
    assert recorded(find_java())[0] == f"-XX:SharedArchiveFile={archive}"
    # In quotation marks, as the folder may have a space in its name.
    assert f'"-XX:SharedArchiveFile={archive}"' in java_options(monkeypatch, tmp_path)


def test_without_a_cache_folder_a_session_starts_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "a file" / "cache"))
    assert recorded(find_java()) == []


def test_a_rehearsal_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no room for a broker' >&2\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(RehearsalError, match=r"could not be recorded.*\nno room for a broker$"):
        record()


@pytest.mark.soak
def test_a_jvm_records_classes_that_another_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")  # which names an archive for all sessions of a run
    record()
    (option, *_) = recorded(find_java())
    file = Path(option.partition("=")[2])
    assert file.stat().st_size > 50_000_000
    seen = subprocess.run(
        [find_java().program, option, "-Xshare:auto", "-version"], capture_output=True, text=True, check=True
    )
    assert "sharing" in seen.stderr
