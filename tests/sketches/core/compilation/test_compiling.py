"""The one line that says what a first call waits for."""

from __future__ import annotations

import logging
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from streamgauge.sketches.core.compilation import compiling


def compile_two() -> bool:
    """Whether the line was said when two kernels were compiled that needed longer than a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "_MOMENT", -1.0)
        patch.setattr(compiling, "_WORK", compiling._Work())
        for _ in range(2):
            compiling.begins()
            compiling.ends()
        return bool(compiling._WORK.said)


def test_a_line_says_once_that_kernels_are_compiled(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "streamgauge"):
        assert compile_two()
    assert [record.getMessage() for record in caplog.records] == [
        "compiling kernels for this processor, once; `streamgauge env warm` does that ahead of time"
    ]


def test_a_moment_is_not_worth_a_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_MOMENT", 1e9)
    monkeypatch.setattr(compiling, "_WORK", compiling._Work())
    compiling.begins()
    compiling.begins()
    compiling.ends()
    compiling.ends()
    assert caplog.records == []


def test_processes_that_others_started_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        assert not pool.submit(compile_two).result()

    for name, speaks in (
        ("pyspark.daemon", False),
        ("streamgauge.spark_udafs.session.preloaded_daemon", False),
        ("my_stream", True),
    ):
        spec = type("Spec", (), {"name": name})
        monkeypatch.setattr("sys.modules", {"__main__": type("Main", (), {"__spec__": spec})})
        assert compiling._is_the_users() is speaks
