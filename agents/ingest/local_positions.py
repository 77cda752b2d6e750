"""A source's positions in a file, for sinks other than Kafka; replaced atomically after the messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...operators.kept_form import form_of
from ...operators.whole_file import whole_file
from .batch import IngestError, Positions

_FORM = 2


class LocalPositions:
    """The positions of one source in a file of `folder`.

    Raises `IngestError` for an unusable file, `WrittenByNewer` for a newer form.
    """

    def __init__(self, folder: Path, agent: str, source: str) -> None:
        self._path = folder / agent / "positions" / f"{quote(source, safe='')}.json"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = self._path.read_text() if self._path.exists() else "{}"
            self.positions: dict[str, Mapping[str, Any]] = _read(json.loads(text), str(self._path))
        except OSError as error:
            raise IngestError(f"{self._path} can't be used: {error.strerror}") from None
        except ValueError:
            raise IngestError(f"{self._path} is damaged; delete it to start over") from None

    def keep(self, changed: Positions) -> None:
        """Store changed positions durably."""
        for part, position in changed.items():
            if position is None:
                self.positions.pop(part, None)
            else:
                self.positions[part] = position
        with whole_file(self._path) as unfinished:
            unfinished.write_text(json.dumps({"form": _FORM, "positions": self.positions}))


def _read(kept: dict[str, Any], what: str) -> dict[str, Mapping[str, Any]]:
    """Return a file's positions; in form 1 it contains nothing else, and each position is an object."""
    if not isinstance(kept.get("form"), int):
        return kept
    form_of(kept, _FORM, what)
    positions: dict[str, Mapping[str, Any]] = kept["positions"]
    return positions
