"""`streamgauge env warm`: a folder that others find their kernels in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("streamgauge")


@pytest.mark.slow
def test_what_is_compiled_in_a_shared_folder_is_found_there(tmp_path: Path) -> None:
    kept = tmp_path / "shared"
    done = subprocess.run(
        [PROGRAM, "env", "warm", "--families", "count, sum", "--cache-dir", kept, "--jobs", "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "compiling kernels …\n"
    assert "compiled 2 families" in done.stdout and str(kept) in done.stdout
    code = (
        "from streamgauge.operators.warm_up.steps import exercise\n"
        "from streamgauge.sketches.core.compilation.kernel_cache import only_kept\n"
        "with only_kept(): exercise('sum')"
    )
    again = subprocess.run([sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": str(kept)})
    assert again.returncode == 0


@pytest.mark.slow
def test_an_unknown_family_is_refused_before_anything_is_compiled() -> None:
    done = subprocess.run([PROGRAM, "env", "warm", "--families", "nope"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no aggregate is called 'nope'" in done.stderr and "compiling" not in done.stderr
