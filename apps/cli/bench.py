"""`streamgauge bench`: every speed that is claimed, measured on this machine beside its peers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

_ROOT = Path(__file__).resolve().parents[2]


def bench(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Run only scripts with a word in their names."),
    ] = None,
    names: Annotated[bool, typer.Option("--list", help="List the scripts without running them.")] = False,
) -> None:
    """Run the benchmarks behind the published figures and print the ratios.

    Each script measures streamgauge and its peers in the same run; peers that aren't installed are skipped. A
    script takes minutes and needs a quiet machine. The scripts are part of the source, not of the package.
    The exit code is 1 if one of them fails.

        streamgauge bench --list

        streamgauge bench kernels_hll

        streamgauge bench spark
    """
    if not (_ROOT / "bench" / "__main__.py").is_file():
        raise ValueError("the benchmarks come with the source: clone the project and run `make bench` there")
    # It prints for itself, and Ctrl-C reaches it as well.
    arguments = [*(["--list"] if names else []), *(words or [])]
    raise typer.Exit(subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=_ROOT).returncode)
