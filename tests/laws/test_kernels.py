"""Every compiled kernel runs without the interpreter's lock, so that threads update sketches in parallel."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher

from streamgauge.sketches.core.compilation.jit import kernel
from streamgauge.sketches.core.compilation.kernel_cache import KernelCache

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(
    ".".join(["streamgauge", *path.relative_to(ROOT).with_suffix("").parts])
    for floor in ("sketches", "sampling", "operators")
    for path in (ROOT / floor).rglob("*.py")
    if path.stem != "__init__"
)


def kernels() -> dict[str, Any]:
    """All kernels by name."""
    by_key = {}
    for name in MODULES:
        for inside, value in vars(importlib.import_module(name)).items():
            if isinstance(value, CPUDispatcher) and value.py_func.__module__ == name:
                by_key[f"{name}.{inside}"] = value
    return by_key


def test_no_kernel_holds_the_lock() -> None:
    result = kernels()
    assert len(result) > 100
    assert [name for name, one in result.items() if not one.targetoptions.get("nogil")] == []
    # All that Python calls are kept on disk too, so that a second process compiles nothing.
    called = {name: one for name, one in result.items() if not one.targetoptions.get("no_cpython_wrapper")}
    assert len(called) > 50
    assert [name for name, one in called.items() if not isinstance(one._cache, KernelCache)] == []


@kernel
def _wait_for(flags, me, other):
    """Say that this one runs, until the other one does too: with the lock held, neither ever would."""
    flags[me] = 1
    while flags[other] == 0 and flags[me] < 5_000_000_000:
        flags[me] += 1
    return flags[other] > 0


def test_two_kernels_run_at_once() -> None:
    flags = np.zeros(2, np.int64)
    _wait_for(np.ones(2, np.int64), 0, 1)
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda me=me: answers.append(int(_wait_for(flags, me, 1 - me))))
        for me in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [1, 1]
