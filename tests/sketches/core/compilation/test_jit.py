"""Kernels that only kernels call: compiled with their callers, cached with them, closed to Python."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from streamgauge.sketches.core.compilation.jit import fused, inner, lean

MODULE = """
from streamgauge.sketches.core.compilation.jit import inner, lean

@inner
def deepest(values, at):
    return values[at] * 3

@inner
def deep(values):
    total = values[0] * 0
    for i in range(len(values)):
        total += deepest(values, i)
    return total

@lean
def top(values):
    return deep(values) + deepest(values, 0)
"""

SCRIPT = """
import numpy as np, kernels
print(kernels.top(np.arange(10)), kernels.top(np.arange(10.0)))
print(sum(kernels.top.stats.cache_hits.values()), len(kernels.deep.signatures))
"""


@inner
def _third(values):  # type: ignore[no-untyped-def]
    return values[2]


@lean
def third(values):  # type: ignore[no-untyped-def]
    """Calls an inner kernel."""
    return _third(values)


def run(folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.slow
def test_another_process_takes_all_of_it_from_the_cache(tmp_path):
    (tmp_path / "kernels.py").write_text(MODULE)
    first, second = run(tmp_path), run(tmp_path)
    assert first == ["135", "135.0", "0", "2"]
    assert second == ["135", "135.0", "2", "0"], "nothing is compiled the second time"


def test_python_has_no_way_in():
    assert third(np.arange(5)) == 2
    with pytest.raises(TypeError):
        _third(np.arange(5))


TERM = "    total = total * {0} // (values[{0} % 3] + {0}) ^ values[{0} % 2]"
LARGE = "\n".join(TERM.format(i) for i in range(2, 60))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "calls"), [(inner, True), (fused, False)])
def test_a_fused_kernel_is_a_part_of_its_caller_whatever_its_size(kind: Any, calls: bool) -> None:
    space: dict[str, Any] = {}
    exec(f"def large(values, total):\n{LARGE}\n    return total", space)
    expected, large = space["large"], kind(space["large"])

    @njit
    def twice(values: np.ndarray, total: int) -> int:
        return large(values, total) + large(values, total + 1)  # type: ignore[no-any-return]

    values = np.array([3, 4, 1, 5])
    with np.errstate(all="ignore"):
        wanted = expected(values, np.int64(7)) + expected(values, np.int64(8))
    assert twice(values, 7) == wanted
    (code,) = twice.inspect_llvm().values()
    assert (re.search(r"call [^\n]*large", code) is not None) == calls
    with pytest.raises(TypeError):
        large(values, 7)
