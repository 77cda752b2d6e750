"""A demo at work, as a terminal shows it."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from streamgauge.apps.demo.view import AppLook, DemoView, showing
from streamgauge.operators.rules.alert import Alert

HOT = Alert("limit", "threshold", "fired", ("a\x1b[2J",), 60_000_000, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
VIEW = DemoView("http://127.0.0.1:8055", 12.4, [AppLook("iot", "local", "reading", 1234, [HOT] * 20)])


def test_a_view_names_the_page_and_has_a_line_of_each_app() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(VIEW)
    said = out.getvalue()
    assert "http://127.0.0.1:8055" in said and "12 s left" in said and "1,234" in said
    (line,) = (line for line in said.splitlines() if "iot" in line)
    assert "reading" in line and " 20 " in line and "fired" in line and "\x1b" not in said
    assert max(map(len, said.splitlines())) <= 80


def test_a_view_says_what_is_still_starting_and_that_the_end_is_near() -> None:
    out = io.StringIO()
    starting = AppLook("trending", "spark", "starting", 0, [])
    Console(file=out, width=80).print(DemoView("http://127.0.0.1:8055", 0.0, [starting]))
    assert "starting" in out.getvalue() and "closing the last windows" in out.getvalue()


def test_without_a_terminal_a_line_is_printed_now_and_then() -> None:
    out = io.StringIO()
    with showing(Console(file=out)) as show:
        show(VIEW)
        show(VIEW)
    assert out.getvalue() == "http://127.0.0.1:8055: iot 1,234 messages, 20 alerts (reading)\n"


def test_a_key_of_several_parts_is_read_as_text() -> None:
    trend = replace(HOT, rule="trend", key=("words", "horrible"))
    out = io.StringIO()
    look = AppLook("trending", "local", "reading", 1, [trend])
    Console(file=out, width=120).print(DemoView("http://127.0.0.1:8055", 1.0, [look]))
    assert "trend words, horrible fired" in out.getvalue()
