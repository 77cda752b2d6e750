"""Show rows of windows and groups in a terminal: as a table, or as blocks if that doesn't fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ...operators.rendering.answers import answer, cell, span
from ...operators.rendering.names import visible_name
from ...operators.table.schema import END, START

_UNLIMITED = 1_000_000
_CROWDED = 1.25
"""The maximum width of a table, in widths of the terminal: cells of a table that is wider than it wrap."""


@dataclass(frozen=True)
class WindowRows:
    """Windows and groups with their answers from `operators.table.query`; at least one.

    Of an answer that is a list, the first `items` are shown.
    """

    rows: Sequence[Mapping[str, Any]]
    items: int = 3

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table()
        wide = console.measure(table, options=options.update(max_width=_UNLIMITED)).maximum
        if wide > _CROWDED * options.max_width:
            yield from self._blocks()
        else:
            yield table

    @property
    def _timed(self) -> bool:
        return START in self.rows[0]

    @property
    def _names(self) -> list[str]:
        return [name for name in self.rows[0] if name not in (START, END)]

    def _table(self) -> Table:
        """One line per window and group, with short answers and their bounds."""
        titles = ["window (UTC)"] if self._timed else []
        shown = Table(*titles, *map(visible_name, self._names), header_style="bold", box=box.SIMPLE_HEAD)
        shown.columns[0].no_wrap = True
        for row in self.rows:
            window = [span(row[START], row[END])] if self._timed else []
            shown.add_row(*window, *(Text(self._value(row[name])) for name in self._names))
        return shown

    def _blocks(self) -> RenderResult:
        """One block per window and group, one line per answer."""
        for row in self.rows:
            if self._timed:
                yield Text(span(row[START], row[END]))
            block = Table.grid(padding=(0, 2), pad_edge=True)
            for name in self._names:
                lines = self._value(row[name]).splitlines()
                block.add_row(Text(visible_name(name), style="bold", no_wrap=True), Text(", ".join(lines)))
            yield block
            yield Text("")

    def _value(self, value: Any) -> str:
        return cell(value) if isinstance(value, bytes | str | None) else answer(value, self.items)
