"""Where downloaded and running things are kept on this machine."""

from __future__ import annotations

from pathlib import Path

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.user_cache import user_cache


class CacheError(StreamgaugeError, RuntimeError):
    """There is no place to keep things in; the message names it and what to set."""


def cache_folder() -> Path:
    """The user's cache folder (`user_cache`), made if absent. Raises `CacheError` if it can't be made."""
    folder = user_cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CacheError(
            f"the cache folder {folder} can't be made ({error.strerror}); "
            "name one that can be written to in STREAMGAUGE_CACHE"
        ) from None
    return folder.resolve()
