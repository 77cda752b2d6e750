"""The benchmarks are found by their names; what they measure is not for tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_benchmarks_are_listed_by_a_word_in_their_names() -> None:
    requested = [sys.executable, "-m", "bench", "--list", "kernels"]
    listed = subprocess.run(requested, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert {"kernels_hll", "kernels_sampling"} <= set(listed.split())
    assert "files" not in listed.split()
