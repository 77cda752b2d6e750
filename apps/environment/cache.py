"""The cache folder for downloads and for records of what is running on this machine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.user_cache import user_cache


class CacheError(StreamgaugeError, RuntimeError):
    """The cache folder can't be created; the message names it and the variable to set."""


@dataclass(frozen=True)
class Cached:
    """A cached folder: what it contains, where it is and its size in bytes."""

    content: str
    folder: Path
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """Convert to plain JSON."""
        return {"content": self.content, "folder": str(self.folder), "bytes": self.bytes}


def cache_folder() -> Path:
    """The user's cache folder (`user_cache`), created if missing. Raises `CacheError` if that fails."""
    folder = user_cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CacheError(
            f"the cache folder {folder} can't be created ({error.strerror}); "
            "name a writable one in STREAMGAUGE_CACHE"
        ) from None
    return folder.resolve()


def list_cached() -> list[Cached]:
    """The cached folders that exist: compiled kernels, then Kafka's jars."""
    from ...sketches.core.compilation.kernel_cache import folders

    places = [("compiled kernels", folder) for folder in folders()]
    places += [("Kafka's jars", folder) for folder in sorted((user_cache() / "kafka").glob("jars-*/"))]
    return [Cached(content, folder, _size(folder)) for content, folder in places if folder.is_dir()]


def clear_cached(keep_jars: bool = False) -> list[Cached]:
    """Remove the cached folders, except Kafka's jars if they are in use. Return the removed ones.

    Raises `CacheError` if a folder can't be removed.
    """
    removed = [one for one in list_cached() if not (keep_jars and one.folder.name.startswith("jars-"))]
    for one in removed:
        try:
            shutil.rmtree(one.folder)
        except OSError as error:
            raise CacheError(
                f"the cache folder {one.folder} can't be removed ({error.strerror}); "
                "run this as the user who owns it"
            ) from None
    return removed


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
