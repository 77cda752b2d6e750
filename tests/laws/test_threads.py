"""Threads may share a sketch: nothing crashes, nothing is lost, nobody waits for ever."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgauge.sketches.core.locking import Shared
from streamgauge.sketches.core.protocol import Groups, Sketch
from streamgauge.sketches.hll import HLL
from streamgauge.sketches.stored.var_opt import VarOpt

from .families import FAMILIES

ROOT = Path(__file__).resolve().parents[2]


def hammer(*arguments: str, timeout: float) -> None:
    """Run the hammer in a process of its own: a crash of the interpreter is a failed test with a name."""
    command = [sys.executable, "-W", "ignore", "-X", "faulthandler", "-m", "tests.laws.hammer", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    output = f"after {done.stdout.splitlines()[-1:]}: {done.stderr[-2000:]}"
    assert done.returncode == 0 and done.stdout.endswith("done\n"), output


@pytest.mark.slow
def test_threads_share_sketches_and_groups_of_every_family() -> None:
    hammer("4", timeout=900)


@pytest.mark.soak
def test_threads_share_sketches_for_long() -> None:
    hammer("60", "ALL", timeout=7200)


def public(kind: type) -> list[str]:
    """The methods and properties of a family that others may call."""
    return [
        name
        for name, result in inspect.getmembers(kind)
        if not name.startswith("_") and (inspect.isfunction(result) or isinstance(result, property))
    ]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_nothing_public_goes_without_the_lock(family: Any) -> None:
    for kind in (family.single, family.groups):
        assert issubclass(kind, Shared) and issubclass(kind, (Sketch, Groups))
        for name in public(kind):
            result = inspect.getattr_static(kind, name)
            method = result.fget if isinstance(result, property) else result
            calls_back = getattr(method, "holds_no_lock", False)
            assert calls_back or method.__code__.co_name.startswith("locked"), name


def test_two_threads_in_two_sketches_run_at_once() -> None:
    one, other = HLL(), HLL()
    inside = threading.Barrier(2)

    def values() -> Any:
        inside.wait(120)  # broken if the other thread can't get as far
        yield from range(10)

    threads = [threading.Thread(target=sketch.update, args=[values()]) for sketch in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert round(one.estimate()) == round(other.estimate()) == 10


def test_a_slow_iterator_keeps_nobody_waiting() -> None:
    sketch, requested = HLL().update([1, 2, 3]), threading.Event()

    def values() -> Any:
        assert requested.wait(120)
        yield from range(100, 110)

    writer = threading.Thread(target=sketch.update, args=[values()])
    writer.start()
    assert round(sketch.estimate()) == 3  # while the writer waits for its first value
    requested.set()
    writer.join()
    assert round(sketch.estimate()) == 13


def test_callbacks_may_use_other_sketches() -> None:
    one, other = (VarOpt(kind="long").update(np.arange(5)) for _ in range(2))
    inside = threading.Barrier(2)

    def ask(mine: Any, theirs: Any) -> None:
        def belongs(item: Any) -> bool:
            if item == 0:
                inside.wait(120)
            return bool(theirs.n == 5)

        assert mine.subset_sum(belongs).estimate == 5

    threads = [threading.Thread(target=ask, args=pair) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def test_what_describes_a_method_is_the_methods_own() -> None:
    assert str(inspect.signature(HLL.update)).startswith("(self, values: 'Any')")
    assert str(inspect.signature(HLL)) == "(lg_k: 'int' = 12) -> 'None'"
    assert (HLL.bounds.__doc__ or "").startswith("(lower, upper)") and HLL.bounds.__name__ == "bounds"
    assert inspect.getsource(HLL.estimate).lstrip().startswith("def estimate")
