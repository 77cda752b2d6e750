"""The kernels of a demo: what is on disk is loaded in the background, what is not is compiled and says so."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streamgauge.apps.demo import kernels
from streamgauge.apps.demo.kernels import Kernels
from streamgauge.operators.warm_up.steps import Step
from streamgauge.sketches.core.compilation.kernel_cache import NotKept

ran: list[str] = []


def step(name: str) -> None:
    if name == "missing" and not ran:
        ran.append(name)
        raise NotKept(name)
    ran.append(name)


@pytest.mark.parametrize(("name", "compiled"), [("kept", 0), ("missing", 1)])
def test_only_what_is_not_kept_is_compiled(monkeypatch: pytest.MonkeyPatch, name: str, compiled: int) -> None:
    ran.clear()
    calls: list[object] = []
    monkeypatch.setattr(kernels, "compile_all", lambda todo, *_, **__: calls.append(todo))
    of = Kernels([Step(name, step, (name,))])
    of._loading.start()
    of.compile_missing(Console(file=io.StringIO()))
    assert len(calls) == compiled
    assert ran == [name]
