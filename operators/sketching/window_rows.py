"""How a worker sketches rows, by the kind of windows: by pane, unless a kind is listed here."""

from __future__ import annotations

from ..class_loading import load_class
from ..windows.window import StreamWindows
from .panes import Panes, Sketches

ROWS = {
    "count": "operators.sketching.count_rows:ByCountRows",
    "session": "operators.sketching.session_rows:SessionRows",
}
"""Kinds with their own class of rows, by import path; reading this imports none."""


def rows_class(window: StreamWindows) -> type[Sketches]:
    """The class that sketches a stream's rows.

    >>> from ..windows.session import Session
    >>> from ..windows.tumbling import Tumbling
    >>> rows_class(Session(60_000_000)).__name__, rows_class(Tumbling.every("1m")).__name__
    ('SessionRows', 'Panes')
    """
    place = ROWS.get(window.kind)
    return Panes if place is None else load_class(place)
