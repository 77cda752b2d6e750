"""Where downloaded and running things are kept on this machine."""

from __future__ import annotations

import os
import sys
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
