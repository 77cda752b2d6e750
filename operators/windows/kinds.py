"""The only table of kinds of windows: the classes for a kind's name, in definitions and in stored tables.

To add a kind, add its module and a line here. Its class of windows (`window.StreamWindows`) decides which
windows a row belongs to, and its class for tables how a table of them rolls up (`table.TableWindows`).
Engines store panes of rows and of open windows; a kind that needs something else has an entry in
`window_rows` (`operators/sketching/`) or `window_kinds` (`operators/consumer/merge/`).

Definitions, tables, rules, sinks, servers and mergers look a kind up here. Classes are given by name, not
imported, so reading the table imports none of them. Windows on a calendar have classes of their own
(`calendar`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...sketches.core.protocol import SketchError
from ..class_loading import load_class
from .calendar import of_definition, table_of_definition
from .table import AllTime, TableWindows
from .window import StreamWindows


@dataclass(frozen=True, slots=True)
class WindowKind:
    """One entry of the table: a kind's name in definitions, and the import path of its class.

    The path is ``"floor.module:Class"``. The class of its windows in a table is beside it, with the suffix
    "Table".
    """

    name: str
    place: str

    @property
    def window_class(self) -> type[StreamWindows]:
        """The class of its windows in a definition, imported now."""
        return load_class(self.place)

    @property
    def table_class(self) -> type[TableWindows]:
        """The class of its windows in a table, imported now."""
        return load_class(f"{self.place}Table")


KINDS: dict[str, WindowKind] = {
    name: WindowKind(name, place)
    for name, place in (
        ("tumbling", "operators.windows.tumbling:Tumbling"),
        ("hopping", "operators.windows.hopping:Hopping"),
        ("sliding", "operators.windows.sliding:Sliding"),
        ("cumulate", "operators.windows.cumulate:Cumulate"),
        ("session", "operators.windows.session:Session"),
        ("count", "operators.windows.count:ByCount"),
    )
}


ON_CALENDAR = ("tumbling", "hopping", "cumulate")
"""Kinds that may be aligned to a zone's clock or months, or have an offset: see `calendar`."""


def window_of(definition: Mapping[str, Any]) -> StreamWindows:
    """The windows that a stream's definition describes. Raises `ValueError` for an unknown kind.

    >>> window_of({"window": "hopping", "size": "1h", "every": "1m"})
    Hopping(size_us=3600000000, every_us=60000000)
    """
    kind = KINDS.get(definition["window"])
    if kind is None:
        raise ValueError(
            f"the stream has windows that this version of streamgauge doesn't know: {dict(definition)}"
        )
    if kind.name in ON_CALENDAR and (windows := of_definition(kind.name, definition)) is not None:
        return windows
    return kind.window_class.from_definition(definition)


def table_windows(definition: Any) -> TableWindows:
    """The windows that a table's metadata describes. Raises `SketchError` if it is invalid.

    >>> str(table_windows({"kind": "sliding", "size": "5m", "every": "1s", "offset": "0s"}))
    'windows of 5m that end where a group has rows'
    """
    try:
        classes: list[type[TableWindows]] = [AllTime, *(kind.table_class for kind in KINDS.values())]
        (kind,) = (kind for kind in classes if kind.kind == definition["kind"])
        on_calendar = table_of_definition(kind.kind, definition) if kind.kind in ON_CALENDAR else None
        return kind.from_definition(definition) if on_calendar is None else on_calendar
    except (TypeError, KeyError, ValueError, ZeroDivisionError):
        raise SketchError(f"{definition!r} doesn't define a table's windows") from None
