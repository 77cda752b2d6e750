"""Rooms import each other in one direction: who reads one reads what lies below it, and never comes back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ["sketches", "sampling", "operators", "spark_udafs", "apps"]


def modules(floor: str) -> Iterator[tuple[Path, list[str]]]:
    for path in (ROOT / floor).rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield path, [*parts[:-1]] if parts[-1] == "__init__" else [*parts]


def imported(path: Path) -> Iterator[list[str]]:
    """The modules of this package that a module imports, within functions and for types, too."""
    folder = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*folder[: len(folder) - node.level + 1], *(node.module or "").split(".")]
            yield from ([*filter(None, base), *one.name.split(".")] for one in node.names)


def room(parts: list[str]) -> str:
    """A folder of a floor, or a module that lies beside them.

    What the engine keeps of a kind of windows lies in the kind's folder, above the engine's own rooms, which
    find it by `windows.kinds`.
    """
    if parts[:2] == ["operators", "windows"] and {*parts[3:]} & {"rows", "open", "recovery"}:
        return "operators.windows.kept"
    return ".".join(parts[:2])


def graph(floor: str) -> dict[str, set[str]]:
    rooms = {room(parts) for _, parts in modules(floor)}
    below: dict[str, set[str]] = {name: set() for name in rooms}
    for path, parts in modules(floor):
        below[room(parts)] |= {room(other) for other in imported(path)} & (rooms - {room(parts)})
    return below


KNOWN = {
    # What a sink to a table topic writes is in the consumer's own form.
    ("operators.sinks", "operators.consumer"),
    # Workers and tasks of the consumer recover windows by count.
    ("operators.consumer", "operators.windows.kept"),
    # A query server loads the language, which answers from the server's tables, with the first query in SQL.
    ("operators.serving", "operators.sql"),
}
"""Rooms that reach up, and why."""


def module_graph(floor: str) -> dict[str, set[str]]:
    below: dict[str, set[str]] = {".".join(parts): set() for _, parts in modules(floor)}
    for path, parts in modules(floor):
        name = ".".join(parts)
        for other in imported(path):
            lower = ".".join(other)
            below[name].add(lower if lower in below else ".".join(other[:-1]))
        below[name] &= below.keys() - {name}
    return below


@pytest.mark.parametrize("floor", FLOORS)
def test_no_module_is_imported_by_what_it_imports(floor: str) -> None:
    try:
        TopologicalSorter(module_graph(floor)).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


@pytest.mark.parametrize("floor", FLOORS)
def test_no_room_is_imported_by_what_it_imports(floor: str) -> None:
    below = graph(floor)
    for upper, lower in KNOWN:
        below.get(upper, set()).discard(lower)
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))
