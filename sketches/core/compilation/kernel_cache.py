"""Cache compiled kernels on disk: one file per kernel and argument types, named by a digest of its inputs.

Numba's own cache is not sufficient. It only checks a kernel's own file, so it misses changes in other kernels
that this one calls. It doesn't read a folder that it can't write, so each user of an image would compile
again what the image contains. And two processes that compile one kernel for different types at the same time
may mix up the two.

Here, a file's name contains a digest of the kernel, of every module of the package from which the kernel's
own module imports, directly or indirectly, of the types, the processor, and the versions of Numba and Python.
So a file that exists is valid, processes that compile the same kernel write the same file, and machines,
users and releases can share a folder.

A file is unpickled and its code is run, so a user who can write it controls this process. Therefore a folder
or file is read only if it belongs to this user or to root and neither its group nor others may write it;
otherwise a warning is printed, once, and the kernel is compiled. Folders created here have such permissions
whatever the umask.

This depends on Numba's interface between a dispatcher and its cache, and on how a compile result is
serialised (`_reduce`, `_rebuild`); the tests notice if a new version changes these.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import stat
import sys
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from ..errors import StreamgaugeError
from ..user_cache import user_cache
from . import compiling

config: Any = numba.core.config  # settings come from the environment, so type checkers don't see them
PACKAGE = __name__.rpartition(".sketches.")[0]
HOME = Path(__file__).resolve().parents[3]
_BESIDE = {__name__, compiling.__name__, user_cache.__module__}
"""Modules that manage kernels without affecting their code."""

_FOLDER_MODE, _FILE_MODE = 0o755, 0o644
"""Others may read: kernels that root compiled for an image serve all its users."""

# Only top-level imports: a kernel can't use what a function imports, which may be loaded now or later.
_IMPORTS = re.compile(r"^from[ \t]+(\.+[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)


def folders() -> list[Path]:
    """Return the folders to search for kernels, in order; the first writable one stores all that are used.

    These are the folder in ``NUMBA_CACHE_DIR``, or else one beside the package; then the user's own.
    """
    # Not inside an installed package: that folder would survive an uninstall and remain importable.
    installed = HOME.parent.name in ("site-packages", "dist-packages")
    beside = (HOME.parent if installed else HOME) / "__pycache__"
    first = Path(config.CACHE_DIR) if config.CACHE_DIR else beside
    return [first / f"{PACKAGE}-kernels", user_cache() / "kernels"]


class NotKept(StreamgaugeError, LookupError):
    """Raised by `only_kept` for a kernel that would have to be compiled."""


_compiles: ContextVar[bool] = ContextVar("compiles", default=True)


@contextlib.contextmanager
def only_kept() -> Iterator[None]:
    """Within the block, only load kernels: the first one that must be compiled raises `NotKept`."""
    token = _compiles.set(False)
    try:
        yield
    finally:
        _compiles.reset(token)


class KernelCache(_Cache):
    """A dispatcher's cache, as Numba expects it, for one kernel that the module `compiler` compiles."""

    def __init__(self, function: Callable[..., Any], compiler: str) -> None:
        self._function = function
        # Computed now, because the files may have changed by the first call.
        self._stamp = _stamp(function.__module__, compiler)

    @property
    def cache_path(self) -> str:
        """The first folder to search."""
        return str(folders()[0])

    def enable(self) -> None:
        """Do nothing: the cache is always enabled."""

    def disable(self) -> None:
        """Not supported: without the cache, every process would compile the kernel."""
        raise NotImplementedError("kernels are always kept on disk")

    def flush(self) -> None:
        """Do nothing: files are never stale."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for these types, or None if it must be compiled."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        first, *others = (folder / self._file(key) for folder in folders())
        kept = _read(first, key)
        for path in others:
            if kept is None and (kept := _read(path, key)) is not None:
                _written(first, path.read_bytes())  # so that the first folder can be distributed
        if kept is not None:
            return CompileResult._rebuild(target_context, *kept)
        if not _compiles.get():
            raise NotKept(self._function.__qualname__)
        compiling.begins()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a kernel that was just compiled; warn once if no folder is writable."""
        compiling.ends()
        if data.lifted or data.library.has_dynamic_globals:
            return
        key = self._key(sig, data.codegen)
        content = _sealed(dumps((key, data._reduce())))
        if not any(_written(folder / self._file(key), content) for folder in folders()):
            compiling.not_kept([*map(str, folders())])

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return sig, codegen.magic_tuple(), self._made_from()

    def _made_from(self) -> str:
        code = self._function.__code__
        cells = [cell.cell_contents for cell in self._function.__closure__ or ()]
        versions = numba.__version__, llvmlite.__version__, sys.version_info[:2], bool(config.BOUNDSCHECK)
        parts = self._function.__qualname__, code.co_firstlineno, code.co_code, dumps(cells), versions
        return hashlib.sha256(repr(parts).encode() + self._stamp).hexdigest()

    def _file(self, key: tuple[Any, ...]) -> str:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:24]
        name = f"{self._function.__module__.removeprefix(PACKAGE + '.')}.{self._function.__qualname__}"
        return f"{name.replace('<', '').replace('>', '')}-{digest}.kernel"


def _sealed(body: bytes) -> bytes:
    return hashlib.sha256(body).digest() + body


def _read(path: Path, key: Any) -> Any:
    """Return a file's content if it exists, is complete, and belongs to this kernel and these types."""
    try:
        if not trusted(path.parent):
            return None
        with path.open("rb") as file:
            if not trusted(path, os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    body = content[hashlib.sha256().digest_size :]
    if content != _sealed(body):
        return None
    of, kept = pickle.loads(body)
    return kept if of == key else None


def trusted(path: Path, status: os.stat_result | None = None) -> bool:
    """Whether only this user and root can have written a folder or file, as ssh requires for its files.

    Prints a warning otherwise. Raises `OSError` if it doesn't exist.
    """
    if not hasattr(os, "geteuid"):  # no Unix owners, as on Windows
        return True
    status = path.stat() if status is None else status
    if status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    compiling.not_trusted(path, status.st_uid, stat.S_IMODE(status.st_mode))
    return False


def _made(folder: Path) -> None:
    """Create a folder and its parents, writable only by this user, whatever the umask."""
    if not folder.is_dir():
        _made(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(_FOLDER_MODE)


def _written(path: Path, content: bytes) -> bool:
    """Write a file atomically, so that no process sees part of it; return whether this succeeded."""
    part = path.with_suffix(f".{uuid.uuid4().hex[:12]}.part")
    try:
        _made(path.parent)
        if not trusted(path.parent):
            return False
        part.write_bytes(content)
        part.chmod(_FILE_MODE)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        return False
    return True


@cache
def _stamp(*modules: str) -> bytes:
    """Return a digest of the source of modules and of all modules of the package that they import."""
    seen: set[str] = set()
    waiting = {*modules}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= _imported(name) - seen - _BESIDE
    return hashlib.sha256(b"".join(_source(name)[1] for name in sorted(seen))).digest()


@cache
def _source(module: str) -> tuple[str, bytes]:
    """Return a loaded module's source and its digest, from a folder or a zip file."""
    loaded: Any = sys.modules[module]
    try:
        source = Path(loaded.__file__).read_bytes()
    except OSError:
        source = loaded.__loader__.get_data(loaded.__file__)
    return source.decode(), hashlib.sha256(source).digest()


@cache
def _imported(module: str) -> set[str]:
    """Return the loaded modules of the package that a module imports; all that its kernels use are loaded."""
    parts = module.split(".")
    if hasattr(sys.modules[module], "__path__"):
        parts.append("")
    modules: set[str] = set()
    for origin, names in _IMPORTS.findall(_source(module)[0]):
        dots = len(origin) - len(origin.lstrip("."))
        base = ".".join([*parts[: len(parts) - dots], *filter(None, [origin.lstrip(".")])])
        modules |= {name for name in (base, *_below(base, names)) if name in sys.modules}
    return modules


def _below(base: str, names: str) -> Iterator[str]:
    for name in re.findall(r"\w+", names):
        yield f"{base}.{name}"
