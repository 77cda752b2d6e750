"""Pack an environment that runs wherever it is unpacked: an interpreter, packages and compiled kernels.

The packages are those that `streamgauge[spark]` needs, as installed here, without Spark's own, which
executors have. The interpreter includes its standard library and its shared library, if any; from the system
it needs what this machine's Python needs, such as libc.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ...sketches.core.compilation.kernel_cache import HOME, PACKAGE, folders
from ...sketches.core.errors import StreamgaugeError

_OF_SPARK = {"pyspark", "py4j"}
_VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_LIBRARY = Path("lib", _VERSION)
_LEFT_OUT = shutil.ignore_patterns(
    *("site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3"),
    *("ensurepip", "config-*", "*.a"),
)
_PROGRAM = f"""\
#!/bin/sh
here=$(dirname -- "$0")
export LD_LIBRARY_PATH="$here/../lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" PYTHONNOUSERSITE=1
exec "$here/{_VERSION}" "$@"
"""
_WARM = """\
import sys
from streamgauge.apps.environment.compiling import compile_all
from streamgauge.operators.warm_up.steps import steps
compile_all(steps(sys.argv[2:]), "compiling kernels", int(sys.argv[1]))
"""
_COMPRESSION = 1
"""The fastest level: half of the content is kernels and libraries, which compress little better at others."""


class PackError(StreamgaugeError, RuntimeError):
    """The environment can't be packed; the message says why."""


def stage_environment(folder: Path, packages: Sequence[str] = ()) -> None:
    """Create the environment in a new folder, without kernels.

    `packages` are further installed packages to add, with their dependencies. Raises `PackError` for one that
    isn't installed, and if Python has a different layout, as on Windows.
    """
    if os.name != "posix":
        raise PackError("an archive for executors can only be made where they run: on Linux")
    needed = list(required(f"{PACKAGE}[spark]", *packages))
    _stage_python(folder)
    site = folder / _LIBRARY / "site-packages"
    for one in needed:
        if canonicalize_name(one.name) != PACKAGE:
            _stage_files(one, site)
    _stage_package(site)


def warm_environment(folder: Path, families: Sequence[str] = (), jobs: int = 0) -> None:
    """Make the environment compile its kernels; kernels that this machine has compiled are loaded.

    Raises `PackError` if it doesn't run.
    """
    cache = folder.with_name("cache")
    (cache / "kernels").mkdir(parents=True)
    for kernel in (kernel for kept in folders() for kernel in kept.glob("*.kernel")):
        (cache / "kernels" / kernel.name).unlink(missing_ok=True)
        (cache / "kernels" / kernel.name).symlink_to(kernel.resolve())
    left_out = ("PYTHONPATH", "PYTHONHOME", "NUMBA_CACHE_DIR")
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    done = subprocess.run(
        [folder / "bin" / "python", "-c", _WARM, str(jobs), *families],
        env={**env, "STREAMGAUGE_CACHE": str(cache), "PYTHONDONTWRITEBYTECODE": ""},
        cwd=folder,
    )
    if done.returncode:
        raise PackError("the packed environment doesn't run; what it said is above")


def write_archive(folder: Path, archive: Path) -> None:
    """Write the environment as an archive, atomically; files belong to root, and only root may write them."""

    def owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode &= 0o755
        return entry

    part = folder.with_name("archive.part")
    with tarfile.open(part, "w:gz", compresslevel=_COMPRESSION) as file:
        for path in sorted(folder.iterdir()):
            file.add(path, path.name, filter=owned)
    part.replace(archive)


def required(*requirements: str) -> Iterator[Distribution]:
    """Return the installed distributions of these requirements and their dependencies, except Spark's own.

    Raises `PackError` for one that isn't installed.
    """
    waiting = [(Requirement(one), "the archive") for one in requirements]
    seen: set[tuple[str, str]] = set()
    given: set[str] = set()
    while waiting:
        requirement, by = waiting.pop()
        name = canonicalize_name(requirement.name)
        wanted = {(name, extra) for extra in ("", *requirement.extras)} - seen
        if name in _OF_SPARK or not wanted:
            continue
        seen |= wanted
        try:
            installed = distribution(requirement.name)
        except PackageNotFoundError:
            raise PackError(f"{requirement.name}, which {by} needs, is not installed here") from None
        if name not in given:
            given.add(name)
            yield installed
        for one in map(Requirement, installed.requires or ()):
            if any(one.marker is None or one.marker.evaluate({"extra": extra}) for _, extra in wanted):
                waiting.append((one, installed.name))


def _stage_python(folder: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    real = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    shutil.copy2(real, folder / "bin" / _VERSION)
    program = folder / "bin" / "python"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    (folder / "bin" / "python3").symlink_to("python")
    for kind in ("stdlib", "platstdlib"):
        there = Path(
            sysconfig.get_path(kind, vars={"base": sys.base_prefix, "platbase": sys.base_exec_prefix})
        )
        if there.is_dir():
            shutil.copytree(
                there, folder / _LIBRARY, ignore=_LEFT_OUT, copy_function=_linked, dirs_exist_ok=True
            )
    shared = sysconfig.get_config_var("INSTSONAME")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and shared:
        place = Path(sysconfig.get_config_var("LIBDIR"), shared)
        if not place.is_file():
            raise PackError(f"this Python's shared library is not where it says, in {place}")
        shutil.copy2(place.resolve(), folder / "lib" / shared)


def _stage_files(installed: Distribution, site: Path) -> None:
    """Copy a distribution's files below site-packages, without its programs and tests."""
    if installed.files is None:
        raise PackError(f"{installed.name} has no record of its files; install it by pip")
    for file in installed.files:
        source = Path(str(installed.locate_file(file)))
        if {"..", "tests"} & set(file.parts) or not source.is_file():
            continue
        target = site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        _linked(source, target)


def _stage_package(site: Path) -> None:
    """Copy this package from where it is imported, which may be a checkout, with its metadata."""
    for source in _package_files(HOME):
        target = site / PACKAGE / source.relative_to(HOME)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    info = Path(str(distribution(PACKAGE).locate_file(""))).glob(f"{PACKAGE}-*.dist-info")
    for folder in info:
        shutil.copytree(
            folder, site / folder.name, ignore=shutil.ignore_patterns("direct_url.json", "RECORD")
        )


def _package_files(folder: Path) -> Iterator[Path]:
    """Yield all files of a package and its subpackages; only modules of its root, which may be a
    repository."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if (path / "__init__.py").is_file():
                yield from _package_files(path)
            elif folder != HOME and path.name != "__pycache__":
                files = (file for file in sorted(path.rglob("*")) if file.is_file())
                yield from (file for file in files if "__pycache__" not in file.relative_to(path).parts)
        elif folder != HOME or path.suffix == ".py" or path.name == "py.typed":
            yield path


def _linked(source: str | Path, target: str | Path) -> None:
    """Link a file to a second place, which costs nothing within one file system."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)
