"""An archive's records beside a partition's files: its extent, with counts and the last file's hash.

Each file's footer has the hash of the file before it, and a manifest the hash of the last one. So every
published byte is covered, and so is the existence of each file. Two kinds of small files record where a
partition begins and ends:

- ``_manifest.OFFSET.json`` is written by an archiver after each file that it publishes: the archive ends
  before OFFSET.
- ``_begins.OFFSET.json`` is written by retention before it removes files: the archive begins at OFFSET.

If there are several, the highest offset counts. They are only created and removed, never overwritten, so
programs that work on one archive at the same time, or wake up after a long pause, can't undo each other's
records.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from ..kept_form import form_of
from .segment import ArchiveError, Segment, folder
from .store import Store

FORM = 2
_MANIFEST, _BEGINS, _FIRST = "_manifest", "_begins", "_first.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive has published for a partition, including files that retention has removed since.

    `last` is the last file's name, `sha256` its SHA-256; the archive extends to `next_offset` − 1. `rows` is
    the number of messages in all `files`.
    """

    topic: str
    partition: int
    next_offset: int
    files: int = 0
    rows: int = 0
    last: str = ""
    sha256: str = ""

    @property
    def path(self) -> str:
        """Its path within an archive."""
        return _path(self.topic, self.partition, _MANIFEST, self.next_offset)

    def after(self, segment: Segment, sha256: str) -> Manifest:
        """The manifest after publishing another file."""
        return Manifest(
            self.topic,
            self.partition,
            segment.next_offset,
            self.files + 1,
            self.rows + segment.rows,
            segment.path.rpartition("/")[2],
            sha256,
        )

    def write(self, store: Store) -> None:
        """Create it, then remove older ones; does nothing if another archiver has written it."""
        store.create(self.path, _encode({"form": FORM, **asdict(self)}))
        _remove_below(store, self.topic, self.partition, _MANIFEST, self.next_offset)


def sha256_of(data: pa.Buffer | bytes) -> str:
    """The hash of a file's bytes, as ``sha256sum`` prints it.

    >>> sha256_of(b"")[:16]
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(data).hexdigest()


def read_manifest(store: Store, topic: str, partition: int) -> Manifest | None:
    """The newest manifest of a partition; None if there is none, as in archives of earlier versions.

    Raises `ArchiveError` if it is damaged.
    """
    newest = _read_highest(store, topic, partition, _MANIFEST)
    if newest is None:
        return None
    path, fields = newest
    try:
        manifest = Manifest(**fields)
    except TypeError as error:
        raise _damaged(path, str(error)) from None
    if manifest.path != path:
        raise ArchiveError(f"{path} says that it is {manifest.path}: it was moved or renamed")
    return manifest


def first_kept(store: Store, topic: str, partition: int) -> int | None:
    """The recorded offset at which a partition's archive begins, if any.

    Raises `ArchiveError` if the record is damaged.
    """
    if (newest := _read_highest(store, topic, partition, _BEGINS)) is not None:
        return int(newest[1]["first_offset"])
    path = f"{folder(topic, partition)}/{_FIRST}"
    try:
        with store.open(path) as file:
            text = file.read()
    except FileNotFoundError:
        return None
    return _first_offset(path, text)


def record_first(store: Store, topic: str, partition: int, wanted: int) -> int:
    """Record where a partition's archive begins; of several archivers, the first decides for all."""
    path = f"{folder(topic, partition)}/{_FIRST}"
    store.create(path, _encode({"form": FORM, "first_offset": wanted}))
    with store.open(path) as file:
        return _first_offset(path, file.read())


def record_removal(store: Store, topic: str, partition: int, first_offset: int) -> None:
    """Record, before files are removed, that the archive now begins at an offset."""
    fields = {"form": FORM, "first_offset": first_offset}
    store.create(_path(topic, partition, _BEGINS, first_offset), _encode(fields))
    _remove_below(store, topic, partition, _BEGINS, first_offset)


def is_record(name: str) -> bool:
    """Whether a file's name is one that this module writes.

    >>> is_record("_first.json"), is_record("_manifest.00000000000000000003.json"), is_record("a.parquet")
    (True, True, False)
    """
    return name == _FIRST or any(_offset_in(name, kind) is not None for kind in (_MANIFEST, _BEGINS))


def _path(topic: str, partition: int, kind: str, offset: int) -> str:
    return f"{folder(topic, partition)}/{kind}.{offset:020d}.json"


def _offset_in(name: str, kind: str) -> int | None:
    begin, _, rest = name.partition(".")
    stem, _, suffix = rest.partition(".")
    fits = begin == kind and suffix == "json" and len(stem) == 20 and stem.isascii() and stem.isdigit()
    return int(stem) if fits else None


def _offsets(store: Store, topic: str, partition: int, kind: str) -> list[int]:
    offsets = (_offset_in(name, kind) for name in store.files(folder(topic, partition)))
    return sorted(offset for offset in offsets if offset is not None)


def _read_highest(store: Store, topic: str, partition: int, kind: str) -> tuple[str, dict[str, Any]] | None:
    while offsets := _offsets(store, topic, partition, kind):
        path = _path(topic, partition, kind, offsets[-1])
        # Another program may have replaced it by a higher one since files were listed.
        with suppress(FileNotFoundError), store.open(path) as file:
            return path, _decode(path, file.read())
    return None


def _remove_below(store: Store, topic: str, partition: int, kind: str, offset: int) -> None:
    for old in _offsets(store, topic, partition, kind):
        if old < offset:
            store.remove(_path(topic, partition, kind, old))


def _encode(fields: Mapping[str, Any]) -> pa.Buffer:
    text = json.dumps(fields)
    return pa.py_buffer(json.dumps({**fields, "crc32": zlib.crc32(text.encode())}).encode())


def _decode(path: str, text: bytes) -> dict[str, Any]:
    """The fields of a record without its version and checksum."""
    try:
        fields = json.loads(text)
        checksum = fields.pop("crc32", None)
        # Before manifests existed, the record of the beginning had no checksum.
        plain = checksum is None and path.endswith(_FIRST)
        if not plain and checksum != zlib.crc32(json.dumps(fields).encode()):
            raise _damaged(path, "its checksum is wrong")
        form_of(fields, FORM, path)
        fields.pop("form", None)
        if any(type(fields[name]) is not int for name in fields.keys() & {"first_offset", "next_offset"}):
            raise _damaged(path, "its offset is not an integer")
        return dict(fields)
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise _damaged(path, str(error)) from None


def _first_offset(path: str, text: bytes) -> int:
    fields = _decode(path, text)
    if "first_offset" not in fields:
        raise _damaged(path, "it has no first_offset")
    return int(fields["first_offset"])


def _damaged(path: str, why: str) -> ArchiveError:
    return ArchiveError(
        f"{path} is damaged ({why}): restore it; or run `streamgauge archive verify`, and if no file is "
        "missing, delete it"
    )
