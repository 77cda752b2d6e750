"""Where downloaded and running things are kept on this machine."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


class CacheError(RuntimeError):
    """There is no place to keep things in; the message names it and what to set."""


def cache_folder() -> Path:
    """The user's cache folder of streamgauge, made if absent.

    ``$STREAMGAUGE_CACHE``, else ``$XDG_CACHE_HOME/streamgauge``, else the platform's usual place. Raises
    `CacheError` if it can't be made.
    """
    if chosen := os.environ.get("STREAMGAUGE_CACHE"):
        folder = Path(chosen).expanduser()
    elif xdg := os.environ.get("XDG_CACHE_HOME"):
        folder = Path(xdg) / "streamgauge"
    elif sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        folder = Path(local) / "streamgauge"
    else:
        folder = Path.home() / ".cache" / "streamgauge"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CacheError(
            f"the cache folder {folder} can't be made ({error.strerror}); "
            "name one that can be written to in STREAMGAUGE_CACHE"
        ) from None
    return folder.resolve()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock, so that a second process waits for what the first one is doing.

    Where the platform has no such locks (Windows) nobody waits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
