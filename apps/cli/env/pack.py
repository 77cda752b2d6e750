"""`streamgauge env pack`: an archive of all that Spark's executors need to run this package."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from ....operators.watching.terminal import write_line
from ...ending import at_once, in_order

_SUFFIXES = (".tar.gz", ".tgz")


def pack(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="The archive, a .tar.gz or .tgz.")],
    packages: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME", help="Also pack this installed package. Repeatable."),
    ] = None,
    families: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Compile only these aggregates' kernels, such as distinct,top_k."),
    ] = "",
    jobs: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Parallel compilers; 0: one per core.")
    ] = 0,
) -> None:
    """Create an archive of this environment for Spark's executors.

    Executors then need nothing installed. The archive has this Python, this package with its dependencies
    except Spark, and compiled kernels. Executors unpack it into their working folder. They need the same
    operating system and processor architecture as this machine; on another processor model they compile
    kernels of their own.

        streamgauge env pack environment.tar.gz

        # with a package of yours, and the kernels that its streams need
        streamgauge env pack environment.tar.gz --with my-streams --families distinct,quantiles,reading

        # then, in Python
        streamgauge.spark.session(master="spark://host:7077", archive="environment.tar.gz")
    """
    if not archive.name.endswith(_SUFFIXES):
        raise typer.BadParameter(f"must end in {' or '.join(_SUFFIXES)}, got {archive.name}")
    with at_once():
        from ....operators.warm_up.steps import steps
        from ...environment.packed_environment import (
            PackError,
            stage_environment,
            warm_environment,
            write_archive,
        )
    chosen = [name for name in map(str.strip, families.split(",")) if name]
    try:
        steps(chosen)
    except KeyError as error:
        raise typer.BadParameter(error.args[0], param_hint="--families") from None
    began = time.monotonic()
    archive.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".pack-", dir=archive.parent.resolve()))
    try:
        with in_order():
            stage_environment(folder / "environment", packages or [])
            warm_environment(folder / "environment", chosen, jobs)
            write_archive(folder / "environment", archive)
    except PackError as error:
        write_line(f"Error: {error}", sys.stderr)
        raise typer.Exit(2) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    size = archive.stat().st_size / 1e6
    write_line(f"created {archive} ({size:.0f} MB, {time.monotonic() - began:.0f} s)")
