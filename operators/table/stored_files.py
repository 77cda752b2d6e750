"""The files of stored tables: in a local folder, or in an object store by URL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from ..object_store import filesystem_of
from ..whole_file import whole_file


@dataclass(frozen=True, order=True)
class ObjectFile:
    """An object in a store, by its URL, such as ``s3://bucket/table/window_date=2026-01-01/x.parquet``.

    `version` changes when the object is rewritten; it is known for objects that were listed.
    """

    url: str
    version: tuple[str, ...] = field(default=(), compare=False)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its folders, and its own name."""
        return PurePosixPath(self.url.partition("://")[2]).parts

    @property
    def parent(self) -> ObjectFile:
        """Its folder."""
        return ObjectFile(self.url.rpartition("/")[0])

    @property
    def name(self) -> str:
        """Its own name."""
        return self.url.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The suffix of its name, from the last dot on."""
        return PurePosixPath(self.name).suffix

    def __truediv__(self, name: str) -> ObjectFile:
        return ObjectFile(f"{self.url.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return self.url


StoredFile = Path | ObjectFile
"""A file or a folder of a stored table."""

_VERSION = ("ETag", "etag", "LastModified", "mtime", "updated", "created", "size")
"""The names in fsspec's filesystems for something that changes with an object."""


def stored_at(place: str | Path | ObjectFile) -> StoredFile:
    """The folder or file that a path or a URL names.

    >>> stored_at("tables/minutes"), stored_at("s3://bucket/minutes").name
    (PosixPath('tables/minutes'), 'minutes')
    """
    if isinstance(place, ObjectFile):
        return place
    text = str(place)
    if text.startswith("file://"):
        return Path(text.removeprefix("file://"))
    return ObjectFile(text.rstrip("/")) if "://" in text else Path(place)


def filesystem_in(file: ObjectFile) -> Any:
    """The filesystem that a file is in. Raises `ValueError` if there is none for its URL."""
    # A cached listing would have the old size of an object that is rewritten.
    return filesystem_of(file.url, use_listings_cache=False)


def opened(file: StoredFile) -> Any:
    """The file in a form that Arrow's Parquet functions accept. Raises `FileNotFoundError`, `OSError`."""
    if isinstance(file, Path):
        return file
    return _of_store(file, lambda: cast(BinaryIO, filesystem_in(file).open(file.url, "rb")))


def bytes_of(file: StoredFile) -> bytes:
    """All bytes of a file. Raises `FileNotFoundError`, `OSError`."""
    if isinstance(file, Path):
        return file.read_bytes()
    return _of_store(file, lambda: bytes(filesystem_in(file).cat_file(file.url)))


def exists(file: StoredFile) -> bool:
    """Whether the file or folder exists. Raises `OSError`."""
    if isinstance(file, Path):
        return file.exists()
    return bool(_of_store(file, lambda: filesystem_in(file).exists(file.url)))


def is_folder(file: StoredFile) -> bool:
    """Whether it is an existing folder. Raises `OSError`."""
    if isinstance(file, Path):
        return file.is_dir()
    return bool(_of_store(file, lambda: filesystem_in(file).isdir(file.url)))


def files_below(folder: StoredFile) -> list[StoredFile]:
    """All files in a folder and its subfolders, sorted; empty if the folder doesn't exist.

    Names that begin with ``_`` or ``.`` are skipped. Raises `OSError`.
    """
    if isinstance(folder, Path):
        return sorted(f for f in folder.rglob("*") if f.name[0] not in "._" and f.is_file())

    def listed() -> dict[str, Any]:
        filesystem = filesystem_in(folder)
        entries: dict[str, Any] = filesystem.find(filesystem._strip_protocol(folder.url), detail=True)
        return entries

    scheme = folder.url.partition("://")[0]
    files = (
        ObjectFile(f"{scheme}://{name.lstrip('/')}", tuple(str(info[key]) for key in _VERSION if key in info))
        for name, info in _of_store(folder, listed).items()
    )
    return sorted(file for file in files if file.name and file.name[0] not in "._")


def version_of(file: StoredFile) -> tuple[Any, ...]:
    """A value that changes when a listed file is rewritten. Raises `FileNotFoundError`."""
    if isinstance(file, ObjectFile):
        return file.version
    stat = file.stat()
    return stat.st_mtime_ns, stat.st_size


def write_whole(file: StoredFile, write: Callable[[Any], None]) -> None:
    """Replace a file atomically; `write` is called with a path or an open file to write to.

    Readers see the old file or the whole new one, which survives a power cut. Raises `OSError`.
    """
    if isinstance(file, Path):
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as unfinished:
            write(unfinished)
        return
    data = BytesIO()
    write(data)
    _of_store(file, lambda: filesystem_in(file).pipe_file(file.url, data.getvalue()))


def delete(file: StoredFile) -> None:
    """Delete a file; a missing file is ignored. Raises `OSError`."""
    with suppress(FileNotFoundError):
        if isinstance(file, Path):
            file.unlink()
        else:
            _of_store(file, lambda: filesystem_in(file).rm_file(file.url))


def _of_store(file: ObjectFile, call: Callable[[], Any]) -> Any:
    """Call a store. Its client's own errors, for example of networks, become an `OSError`."""
    try:
        return call()
    except (OSError, ValueError):
        raise
    except Exception as error:
        raise OSError(f"{file}: {type(error).__name__}: {error}") from error
