"""Everything that prints does so through one writer, in which hostile texts stay texts."""

from __future__ import annotations

import ast
import io
import json
import logging
import sys
import unicodedata
from pathlib import Path

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from streamgauge.operators.rendering.names import escaped
from streamgauge.operators.watching.console import TerminalConsole
from streamgauge.operators.watching.terminal import LogFormatter, json_line, write_json, write_line

from ...cases import each

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = (
    "\x1b[2J\x1b[H",
    "\x1b]0;owned\x07",
    "a\n2026-01-01T00:00:00+00:00 iot: hot b fired: forged",
    "a\rforged",
    "\u202etxt.exe",
    "\u2066\u2069",
    "\x9b31m",
    "\x7f\x08",
    "\ud800",
    "\u2028next",
    "\ufeff\u200b",
)
SAFE = ("", "plain", "é", "日本語", "👩\u200d🚀", "می\u200cخواهم", "❤\ufe0f", "a\\b", "[red]x[/]")


def controls(text: str) -> list[str]:
    """What a terminal would obey or hide."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in BIDI]


BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u200b"


@each("text", HOSTILE)
def test_nothing_of_a_text_is_obeyed_wherever_it_is_printed(text: str) -> None:
    out = io.StringIO()
    write_line(f"before {text} after", out)
    write_json({"name": text, text: 1}, out)
    console = TerminalConsole(file=out, force_terminal=True, color_system=None, width=200)
    console.print(text, f"{text}!")
    table = Table(text, title=text)
    table.add_row(text)
    console.print(table)
    console.print(Text(text.replace("\n", " ")))
    record = logging.LogRecord("streamgauge", logging.WARNING, "", 0, "about %s", (text,), None)
    print(LogFormatter("%(name)s %(message)s").format(record), file=out)
    result = out.getvalue()
    assert controls(result.replace("\n", "")) == [], repr(result)
    assert not [line for line in result.splitlines() if line.startswith(("2026", "forged"))]
    assert json.loads(result.splitlines()[1]) == {"name": text, text: 1}


def test_every_control_character_of_unicode_is_escaped_and_letters_are_not() -> None:
    assert escaped("".join(SAFE)) == "".join(SAFE) and [json.loads(json_line(text)) for text in SAFE] == list(
        SAFE
    )
    for number in range(sys.maxunicode + 1):
        letter = chr(number)
        if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(letter) in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        ):
            assert escaped(letter).startswith("\\"), hex(number)


def test_markup_is_text_and_a_table_stays_in_line() -> None:
    out = io.StringIO()
    console = TerminalConsole(file=out, width=60)
    table = Table("name", "count")
    table.add_row("[red]x[/]", "1")
    table.add_row("\x1b[31m", "22")
    console.print(Panel(table))
    lines = out.getvalue().splitlines()
    assert "[red]x[/]" in out.getvalue() and "\\x1b[31m" in out.getvalue()
    assert {len(line) for line in lines} == {60}


@pytest.mark.slow
def test_nothing_else_of_the_package_prints() -> None:
    writers = {"operators/watching/terminal.py", "operators/watching/console.py"}
    writers |= {"operators/java.py", "apps/set_up.py"}  # they run before anything is installed
    wrong = []
    for room in ("apps", "agents", "queries", "operators", "spark_udafs", "sketches", "sampling"):
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in writers:
                wrong += [f"{name}:{line}" for line in printing(path.read_text())]
    assert wrong == []


def printing(text: str) -> list[int]:
    """The lines that call what writes to a terminal as it is."""
    collected = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("print", "Console", "rich.print", "typer.echo", "click.echo", "typer.secho") or (
                called in ("sys.stdout.write", "sys.stderr.write")
            ):
                collected.append(node.lineno)
            if called == "TextColumn" and not any(word.arg == "markup" for word in node.keywords):
                collected.append(node.lineno)
    return collected
