"""The memory limit for a run's open windows, and what happens when it is reached."""

from __future__ import annotations

import logging
from collections.abc import Collection

from ....sketches.core.errors import StreamgaugeError
from ..options import RunOptions
from .merger import Merger

log = logging.getLogger("streamgauge.kafka")


class StateLimitError(StreamgaugeError):
    """The open windows of a run take more memory than its `state_bytes`; the message names the largest."""


def keep_within(options: RunOptions, mergers: Collection[Merger]) -> None:
    """Spill open windows to disk if they exceed `state_bytes`, or fail, depending on `at_limit`.

    Raises `StateLimitError` if they must not be spilled, or exceed it even then.
    """
    limit = options.state_bytes
    if limit is None or (used_bytes := sum(merger.state_bytes for merger in mergers)) <= limit:
        return
    largest = _largest(mergers)
    if options.at_limit == "spill":
        for merger in mergers:
            merger.open_windows.spill()
        left = sum(merger.state_bytes for merger in mergers)
        log.info(
            "open windows used %s bytes and were moved to disk; %s are left", f"{used_bytes:,}", f"{left:,}"
        )
        if left <= limit:
            return
        used_bytes = left
    raise StateLimitError(
        f"open windows take {used_bytes:,} bytes of memory, and state_bytes allows {limit:,}; the largest: "
        f"{largest}. Nothing is lost: a run with a higher state_bytes, or more mergers (table_partitions), "
        "resumes from here; shorter windows and fewer keys take less"
    )


def _largest(mergers: Collection[Merger]) -> str:
    sizes = [one for merger in mergers for one in merger.open_windows.largest()]
    first = sorted(sizes, key=lambda one: -one[1])[:3]
    return ", ".join(f"{words} ({size:,} bytes)" for words, size in first) or "none"
