"""The user's own folder for what is kept on a machine: compiled kernels, jars, notes of what runs."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def user_cache() -> Path:
    """The folder that ``STREAMGAUGE_CACHE`` names, or the platform's usual one; it may not exist.

    On Linux that is ``$XDG_CACHE_HOME/streamgauge`` or ``~/.cache/streamgauge``.
    """
    chosen = os.environ.get("STREAMGAUGE_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("streamgauge", appauthor=False)
