"""Numba's insides: which one another version lacks is said in one line, and kernels work without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.sketches.core.compilation.numba_insides import CACHE, LINKING, missing

from .test_jit import MODULE

SCRIPT = """
import numba, numba.core.{module}
del numba.core.{module}.{name}
import numpy as np, kernels
print(kernels.top(np.arange(10)), kernels.top(np.arange(10.0)), sum(kernels.top.stats.cache_hits.values()))
"""


def test_this_numba_has_all_that_kernels_use() -> None:
    assert missing(LINKING | CACHE) == []


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), [("compiler_machinery", "register_pass"), ("caching", "_Cache")])
def test_kernels_are_compiled_and_kept_without_it(tmp_path: Path, module: str, name: str) -> None:
    (tmp_path / "kernels.py").write_text(MODULE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT.format(module=module, name=name)]
    for hits in (0, 2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["135", "135.0", str(hits)]
        assert f"has no numba.core.{module}:{name}" in done.stderr
