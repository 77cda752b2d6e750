"""`streamgauge env warm`: kernels compiled ahead of time."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from ....operators.watching.terminal import write_line
from ...ending import at_once, in_order


def warm(
    families: Annotated[
        str, typer.Option(metavar="NAMES", help="Compile only these aggregates, such as distinct,top_k.")
    ] = "",
    cache_dir: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Cache folder, for processes with this NUMBA_CACHE_DIR."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Parallel compilers; 0: one per core.")
    ] = 0,
) -> None:
    """Compile kernels ahead of time, for an image or a shared folder.

    Numba compiles a kernel when it is first called, and stores the result beside the package if that folder
    is writable, else in your cache folder. This command compiles all kernels, so new executors and containers
    don't wait for the compiler. A different processor model compiles its own.

        # in an image, for all of its users
        RUN pip install /tmp/streamgauge-*.whl && streamgauge env warm

        # only the aggregates that your streams use
        streamgauge env warm --families distinct,quantiles,top_k

        # once for all executors, which run with NUMBA_CACHE_DIR=/mnt/shared/kernels
        streamgauge env warm --cache-dir /mnt/shared/kernels
    """
    with at_once():
        if cache_dir is not None:
            os.environ["NUMBA_CACHE_DIR"] = str(cache_dir.resolve())
        from ....operators.warm_up.steps import steps
        from ....sketches.core.compilation.kernel_cache import folders
        from ...environment.compiling import compile_all

    try:
        todo = steps(name.strip() for name in families.split(",") if name.strip())
    except KeyError as error:
        raise typer.BadParameter(error.args[0], param_hint="--families") from None
    began = time.monotonic()
    with in_order():
        compile_all(todo, "compiling kernels", jobs)
    place = next((folder for folder in folders() if folder.is_dir()), folders()[0])
    write_line(
        f"compiled {len(todo)} families in {time.monotonic() - began:.0f} s; their kernels are stored in "
        f"{place}"
    )
