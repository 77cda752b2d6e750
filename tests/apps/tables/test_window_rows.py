"""Rows of windows in a terminal: a table where it fits, blocks where it doesn't."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console

from streamgauge.apps.tables.window_rows import WindowRows

ROWS = [
    {
        "window_start": datetime(2026, 6, 1, 12, tzinfo=UTC),
        "window_end": datetime(2026, 6, 1, 12, 30, tzinfo=UTC),
        "tag": tag,
        "users": {"estimate": 120.3, "lower": 117.2, "upper": 123.4},
    }
    for tag in ("cats", "[bold]dogs\n")
]


def shown(width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(WindowRows(ROWS))
    return [line.strip() for line in out.getvalue().splitlines() if line.strip()]


def test_a_row_is_a_line_where_it_fits() -> None:
    assert shown(80)[2:] == [
        "2026-06-01 12:00 – 12:30   cats             120 (117 to 123)",
        "2026-06-01 12:00 – 12:30   '[bold]dogs\\n'   120 (117 to 123)",
    ]


def test_and_a_block_where_it_does_not() -> None:
    window = "2026-06-01 12:00 – 12:30"
    assert shown(40) == [
        *(window, "tag    cats", "users  120 (117 to 123)"),
        *(window, "tag    '[bold]dogs\\n'", "users  120 (117 to 123)"),
    ]
