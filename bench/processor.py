"""The processor that figures were measured on, in a line for the head of the tables."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import llvmlite.binding as llvm

REPORTED = ("avx2", "avx512f", "avx512bw", "avx512dq", "bmi2", "neon", "sve")
"""What changes the machine code of kernels: the vectors' width, 64-bit multiplication in them."""


def model() -> str:
    """The maker's name for the processor, or LLVM's where the system doesn't say."""
    reported = Path("/proc/cpuinfo")
    lines = reported.read_text().splitlines() if reported.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or llvm.get_host_cpu_name()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def head() -> str:
    """Model, LLVM's name for it, the features that kernels are compiled for, and cores."""
    features = llvm.get_host_cpu_features()
    result = [name.upper() for name in REPORTED if features.get(name)]
    count = cores()
    return (
        f"{model()} (LLVM: {llvm.get_host_cpu_name()}; {', '.join(result) or 'no vectors known'}), "
        f"{count} core{'s' * (count != 1)}"
    )
