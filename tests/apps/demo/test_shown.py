"""A demo at work, as a terminal shows it."""

from __future__ import annotations

import io

from rich.console import Console

from streamgauge.apps.demo.shown import AppLook, DemoView, showing
from streamgauge.operators.rules.alert import Alert

HOT = Alert("limit", "threshold", "fired", ("a\x1b[2J",), 60_000_000, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
VIEW = DemoView("http://127.0.0.1:8055", 12.4, [AppLook("iot", "local", 1234, [HOT] * 20)])


def test_a_view_names_the_page_what_is_read_and_what_was_told_last() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(VIEW)
    said = out.getvalue()
    assert "http://127.0.0.1:8055" in said and "12 s left" in said and "1,234" in said
    assert said.count("fired") == 12 and "\x1b" not in said


def test_without_a_terminal_a_line_is_told_now_and_then() -> None:
    out = io.StringIO()
    with showing(Console(file=out)) as show:
        show(VIEW)
        show(VIEW)
    assert out.getvalue() == "http://127.0.0.1:8055: iot 1,234 messages, 20 alerts\n"
