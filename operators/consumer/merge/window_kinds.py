"""The class of open windows for each kind of windows: panes, unless a kind is listed here."""

from __future__ import annotations

from ...class_loading import load_class
from ...windows.window import StreamWindows
from .open_windows import OpenWindows
from .paned_windows import PanedWindows

OPEN = {
    "count": "operators.consumer.merge.count_windows:OpenByCount",
    "cumulate": "operators.consumer.merge.cumulating_windows:OpenCumulate",
    "session": "operators.consumer.merge.session_windows:OpenSession",
    "sliding": "operators.consumer.merge.sliding_windows:OpenSliding",
}
"""Kinds with their own class of open windows, by import path, so that reading this imports none."""


def open_windows_class(window: StreamWindows) -> type[OpenWindows]:
    """The class of a stream's open windows.

    >>> from ...windows.sliding import Sliding
    >>> from ...windows.tumbling import Tumbling
    >>> open_windows_class(Sliding.of("1m", "1s")).__name__
    'OpenSliding'
    >>> open_windows_class(Tumbling.every("1m")).__name__
    'PanedWindows'
    """
    place = OPEN.get(window.kind)
    return PanedWindows if place is None else load_class(place)
