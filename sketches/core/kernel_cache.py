"""Compiled kernels on disk: a file for each kernel and its arguments' types, named after all it is made from.

Numba's own cache does not do here. It looks at a kernel's own file only, so that a change of a kernel that
this one calls goes unnoticed. It does not read a folder that it can't write, so that each user of an image
compiles again what the image brings. And two processes that compile one kernel for different types at once
may mix the two up.

Here a file's name holds a digest of the kernel, of every module of the package that the kernel's own imports
from, directly or not, of the types, the processor, and the versions of Numba and Python. So what is found is
right, processes that compile the same write the same, and machines, users and releases may share a folder.

A file is unpickled and its code run, so whoever can write it controls this process. So a folder and a file
are read only if they belong to this user or to root, and neither their group nor others may write them;
otherwise a warning says so, once, and the kernel is compiled. Folders made here are so whatever the umask.

Of Numba this needs the cache that a dispatcher uses, and how a result of compiling is taken apart and put
together (`_reduce`, `_rebuild`); its tests notice where a new version changes that.
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

from . import compiling
from .errors import StreamgaugeError
from .user_cache import user_cache

config: Any = numba.core.config  # its settings are read from the environment: type checkers see none of them
PACKAGE = __name__.rpartition(".sketches.")[0]
HOME = Path(__file__).resolve().parents[2]
_BESIDE = {__name__, compiling.__name__, user_cache.__module__}
"""Modules that see to kernels and leave no trace in their code."""

_FOLDER_MODE, _FILE_MODE = 0o755, 0o644
"""Others may read, as what root compiled for an image serves every user of it."""

# At the top level alone: a kernel sees nothing that a function imports, which may be loaded now or later.
_IMPORTS = re.compile(r"^from[ \t]+(\.+[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)


def folders() -> list[Path]:
    """Where kernels are looked for, in this order; the first that can be written takes all that is used.

    The folder that ``NUMBA_CACHE_DIR`` names, or else one beside the package; then one of the user's own.
    """
    first = Path(config.CACHE_DIR) if config.CACHE_DIR else HOME / "__pycache__"
    return [first / f"{PACKAGE}-kernels", user_cache() / "kernels"]


class NotKept(StreamgaugeError, LookupError):
    """A kernel that would have to be compiled."""


_compiles: ContextVar[bool] = ContextVar("compiles", default=True)


@contextlib.contextmanager
def only_kept() -> Iterator[None]:
    """Within the block kernels are loaded and none is compiled: the first that must be raises `NotKept`."""
    token = _compiles.set(False)
    try:
        yield
    finally:
        _compiles.reset(token)


class KernelCache(_Cache):
    """What Numba needs of a dispatcher's cache, for one kernel that the module `compiler` has compiled."""

    def __init__(self, function: Callable[..., Any], compiler: str) -> None:
        self._function = function
        # Now: the files may be others when it is first called.
        self._stamp = _stamp(function.__module__, compiler)

    @property
    def cache_path(self) -> str:
        """The first folder that is looked into."""
        return str(folders()[0])

    def enable(self) -> None:
        """Nothing to do: it always is."""

    def disable(self) -> None:
        """Not offered: a kernel that isn't kept is compiled by every process."""
        raise NotImplementedError("kernels are always kept on disk")

    def flush(self) -> None:
        """Nothing to do: no file is ever stale."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for these types, or None if it must be compiled."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        first, *others = (folder / self._file(key) for folder in folders())
        kept = _read(first, key)
        for path in others:
            if kept is None and (kept := _read(path, key)) is not None:
                _written(first, path.read_bytes())  # so that the first folder can be handed on
        if kept is not None:
            return CompileResult._rebuild(target_context, *kept)
        if not _compiles.get():
            raise NotKept(self._function.__qualname__)
        compiling.begins()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel that was just compiled; where no folder can be written, say so once."""
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
    """What a file holds, if it is there, whole, and of this kernel and these types; else None."""
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
    """Whether only this user and root may have written a folder or file, as ssh requires of its own.

    Says so if not. Raises `OSError` for what is not there.
    """
    if not hasattr(os, "geteuid"):  # no such owners, as on Windows
        return True
    status = path.stat() if status is None else status
    if status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    compiling.not_trusted(path, status.st_uid, stat.S_IMODE(status.st_mode))
    return False


def _made(folder: Path) -> None:
    """Make a folder, and those above it, that only this user may write, whatever the umask."""
    if not folder.is_dir():
        _made(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(_FOLDER_MODE)


def _written(path: Path, content: bytes) -> bool:
    """Whether the file could be written: at once, so that no other process sees a part of it."""
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
    """A digest of the modules' source and of those that they import from the package, directly or not."""
    seen: set[str] = set()
    waiting = {*modules}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= _imported(name) - seen - _BESIDE
    return hashlib.sha256(b"".join(_source(name)[1] for name in sorted(seen))).digest()


@cache
def _source(module: str) -> tuple[str, bytes]:
    """A loaded module's source and its digest, from a folder or a zip file."""
    loaded: Any = sys.modules[module]
    try:
        source = Path(loaded.__file__).read_bytes()
    except OSError:
        source = loaded.__loader__.get_data(loaded.__file__)
    return source.decode(), hashlib.sha256(source).digest()


@cache
def _imported(module: str) -> set[str]:
    """The loaded modules of the package that a module imports from: all that its kernels use is loaded."""
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
