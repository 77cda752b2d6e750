"""The user's cache folder on a machine: compiled kernels, jars, records of what is running."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def user_cache() -> Path:
    """Return the folder in ``STREAMGAUGE_CACHE``, or the platform's default; it may not exist.

    On Linux that is ``$XDG_CACHE_HOME/streamgauge`` or ``~/.cache/streamgauge``.
    """
    chosen = os.environ.get("STREAMGAUGE_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("streamgauge", appauthor=False)
