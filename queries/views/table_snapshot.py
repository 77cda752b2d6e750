"""A served table stored in a folder, so that a later server need not read the whole log again.

Closed windows are in files ``<digest>.arrows``, Arrow IPC streams that are named after their content and
never changed; ``table.json`` lists the valid ones, with the log's offsets to resume from, and is replaced
atomically. If anything is damaged or missing, the snapshot is ignored: the log is read instead, with a
warning.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...operators.kept_form import form_of
from ...operators.table.schema import from_ipc, to_ipc
from ...operators.whole_file import whole_file
from ...sketches.core.protocol import SketchError
from .live import KnownTable
from .view import Gap, ServedWindow, windows_of

log = logging.getLogger("streamgauge.serving")

_FORM = 1
_NAME = "table.json"


class TableSnapshot:
    """The folder in which one table is stored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[int, str] = {}

    def save(self, topic: str, topic_id: str, known: KnownTable) -> None:
        """Store the known state. Raises `OSError` if that fails; the previous snapshot then remains."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # Data that the server protects by a token must not be readable by other users of its machine.
        self._folder.chmod(0o700)
        versions: dict[int, str] = {}
        windows: list[list[Any]] = []
        for window in known.windows:
            name = self._files.get(window.version) or self._write(window)
            versions[window.version] = name
            windows.append([window.partition, name])
        self._files = versions
        fields = {
            "form": _FORM,
            "topic": topic,
            "topic_id": topic_id,
            "places": {str(partition): place for partition, place in known.places.items()},
            "gaps": {str(p): [astuple(gap) for gap in gaps] for p, gaps in known.gaps.items()},
            "windows": windows,
        }
        text = json.dumps(fields)
        _replace(self._folder / _NAME, json.dumps({"digest": _digest(text.encode()), "table": text}).encode())
        kept = {_NAME, *versions.values()}
        for file in self._folder.iterdir():
            if file.name not in kept and file.suffix in (".arrows", ".unfinished"):
                file.unlink(missing_ok=True)

    def load(self, topic: str, topic_id: str) -> KnownTable | None:
        """The stored windows of this topic, if the snapshot is complete and intact.

        Raises `WrittenByNewer` for a newer version, which is not changed.
        """
        path = self._folder / _NAME
        if not path.exists():
            return None
        try:
            whole = json.loads(path.read_bytes())
            if whole["digest"] != _digest(whole["table"].encode()):
                raise ValueError(f"{_NAME} was changed after it was written")
            fields: Mapping[str, Any] = json.loads(whole["table"])
            form_of(fields, _FORM, f"the table kept in {self._folder}")
            if (fields["topic"], fields["topic_id"]) != (topic, topic_id):
                log.warning("%s is of another table topic; reading all of %s instead", path, topic)
                return None
            windows = [
                window for partition, name in fields["windows"] for window in self._read(partition, name)
            ]
            places = {int(p): (offset, state) for p, (offset, state) in fields["places"].items()}
            gaps = {
                int(p): tuple(Gap(*gap) for gap in of_partition) for p, of_partition in fields["gaps"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
            log.warning("%s is damaged (%s); reading all of %s instead", self._folder, error, topic)
            self._files = {}
            return None
        return KnownTable(places, tuple(windows), gaps)

    def _write(self, window: ServedWindow) -> str:
        data = to_ipc(window.table)
        name = f"{_digest(data)}.arrows"
        path = self._folder / name
        if not path.exists():
            _replace(path, data)
        return name

    def _read(self, partition: int, name: str) -> list[ServedWindow]:
        data = (self._folder / name).read_bytes()
        if f"{_digest(data)}.arrows" != name:
            raise SketchError(f"{name} was changed after it was written")
        windows = list(windows_of(partition, from_ipc(data)))
        for window in windows:
            self._files[window.version] = name
        return windows


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _replace(path: Path, data: bytes) -> None:
    with whole_file(path) as unfinished:
        unfinished.touch(mode=0o600)
        unfinished.chmod(0o600)
        unfinished.write_bytes(data)
