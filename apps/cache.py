"""Where downloaded and running things are kept on this machine."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache folder of streamgauge, made if absent.

    ``$STREAMGAUGE_CACHE``, else ``$XDG_CACHE_HOME/streamgauge``, else the platform's usual place.
    """
    if chosen := os.environ.get("STREAMGAUGE_CACHE"):
        folder = Path(chosen).expanduser()
    elif xdg := os.environ.get("XDG_CACHE_HOME"):
        folder = Path(xdg) / "streamgauge"
    elif sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        folder = Path(local) / "streamgauge"
    else:
        folder = Path.home() / ".cache" / "streamgauge"
    folder.mkdir(parents=True, exist_ok=True)
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
