"""Where an archive's files are stored: a local folder, or an object store by URL."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import pyarrow as pa

from ..object_store import filesystem_of
from ..whole_file import sync
from .segment import ArchiveError

_DRAFT_SECONDS = 86_400.0


class Store(Protocol):
    """Files by their paths within the archive; all are complete: a file appears with all its bytes."""

    name: str

    def files(self, folder: str) -> list[str]:
        """The names of the files in a folder, sorted; empty if the folder doesn't exist."""

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder, sorted."""

    def create(self, path: str, data: pa.Buffer) -> bool:
        """Write a file unless it exists; returns whether this call created it.

        Raises `ArchiveError` if it can't be written; nothing of it is left then.
        """

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading. Raises `FileNotFoundError`."""

    def remove(self, path: str) -> None:
        """Delete a file; a missing file is ignored."""

    def remove_drafts(self, folder: str) -> None:
        """Delete partial files that killed programs have left in a folder, once they are a day old."""


def store_of(place: str, options: Mapping[str, Any] | None = None) -> Store:
    """The store for a folder's path or a URL, such as ``s3://bucket/archive``.

    `options` go to the URL's fsspec filesystem, for an endpoint or credentials. Raises `ArchiveError` if
    there is no filesystem for it.
    """
    if "://" not in place:
        return LocalStore(Path(place))
    scheme, _, rest = place.partition("://")
    if scheme == "file":
        return LocalStore(Path(rest))
    try:
        return ObjectStore(place, filesystem_of(place, **(options or {})))
    except ValueError as error:
        raise ArchiveError(str(error)) from None


class LocalStore:
    """A local folder, or a mounted one."""

    def __init__(self, root: Path) -> None:
        self.name = str(root)
        self._root = root

    def files(self, folder: str) -> list[str]:
        """See `Store.files`."""
        return self._names(folder, False)

    def folders(self, folder: str) -> list[str]:
        """See `Store.folders`."""
        return self._names(folder, True)

    def _names(self, folder: str, folders: bool) -> list[str]:
        try:
            with os.scandir(self._root / folder) as entries:
                return sorted(e.name for e in entries if e.is_dir() == folders and not e.name.startswith("."))
        except FileNotFoundError:
            return []

    def create(self, path: str, data: pa.Buffer) -> bool:
        """See `Store.create`: a hard link gives a complete file its name, or fails if the name exists."""
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # Engines that read folders skip names that begin with a dot.
        draft = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        try:
            with draft.open("xb") as written:
                written.write(data)
                written.flush()
                os.fsync(written.fileno())
            try:
                os.link(draft, file)
            except FileExistsError:
                return False
        except OSError as error:
            raise ArchiveError(f"{path} can't be written to {self.name}: {error.strerror}") from None
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
        sync(file.parent)
        return True

    def open(self, path: str) -> BinaryIO:
        """See `Store.open`."""
        return (self._root / path).open("rb")

    def remove(self, path: str) -> None:
        """See `Store.remove`."""
        with suppress(FileNotFoundError):
            (self._root / path).unlink()

    def remove_drafts(self, folder: str) -> None:
        """See `Store.remove_drafts`. A writer that wakes after a day fails; its messages are read again."""
        for draft in (self._root / folder).glob(".*.parquet.*"):
            with suppress(FileNotFoundError):
                if time.time() - draft.stat().st_mtime > _DRAFT_SECONDS:
                    draft.unlink()


class ObjectStore:
    """Files below a URL, in an fsspec filesystem; it must support creating a file only if it is missing."""

    def __init__(self, url: str, filesystem: Any) -> None:
        self.name = url
        self._files = filesystem
        self._root = filesystem._strip_protocol(url).rstrip("/")
        self._exclusive = False

    def files(self, folder: str) -> list[str]:
        """See `Store.files`."""
        return self._names(folder, "file")

    def folders(self, folder: str) -> list[str]:
        """See `Store.folders`."""
        return self._names(folder, "directory")

    def _names(self, folder: str, kind: str) -> list[str]:
        try:
            entries = self._files.ls(self._path(folder), detail=True, refresh=True)
        except TypeError:  # not all filesystems have cached listings to refresh
            entries = self._files.ls(self._path(folder), detail=True)
        except FileNotFoundError:
            return []
        names = (e["name"].rstrip("/").rpartition("/")[2] for e in entries if e["type"] == kind)
        return sorted(name for name in names if name and not name.startswith("."))

    def create(self, path: str, data: pa.Buffer) -> bool:
        """See `Store.create`. Raises `ArchiveError` if the store can't do that atomically."""
        created = self._created(path, data)
        if not self._exclusive and created and self._created(path, data):
            # Some filesystems, and some servers of S3's protocol, silently ignore the condition.
            raise self._not_exclusive("it overwrote one")
        self._exclusive = True
        return created

    def _created(self, path: str, data: pa.Buffer) -> bool:
        try:
            self._files.pipe_file(self._path(path), data.to_pybytes(), mode="create")
        except FileExistsError:
            return False
        except NotImplementedError as error:
            raise self._not_exclusive(str(error)) from None
        except OSError as error:
            raise ArchiveError(f"{path} can't be written to {self.name}: {error}") from None
        return True

    def _not_exclusive(self, why: str) -> ArchiveError:
        return ArchiveError(
            f"{self.name}: this store can't create a file only if it doesn't exist ({why}), so two archivers "
            "could overwrite each other; use a folder, S3, or another store that can"
        )

    def open(self, path: str) -> BinaryIO:
        """See `Store.open`."""
        return cast(BinaryIO, self._files.open(self._path(path), "rb"))

    def remove(self, path: str) -> None:
        """See `Store.remove`."""
        with suppress(FileNotFoundError):
            self._files.rm_file(self._path(path))

    def remove_drafts(self, folder: str) -> None:
        """See `Store.remove_drafts`: objects never exist partially."""

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/")
