"""The house's own rules: floors import only from those below, rooms stay small, importing costs nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ["sketches", "sampling", "operators", "spark_udafs", "apps"]
SOURCES = sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))

# The one door that leads up on purpose: a stream can be asked to run on Spark.
DOORS = {("operators/definition/stream.py", "spark_udafs")}


def imported_floors(path: Path) -> set[str]:
    """The floors a module imports from, relative imports resolved."""
    package = path.relative_to(ROOT).parts[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            target = [*base, *(node.module.split(".") if node.module else [])]
            names = [target[0]] if target else [alias.name for alias in node.names]
            found.update(name for name in names if name in FLOORS)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("streamgauge."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found.update(a.name.split(".")[1] for a in node.names if a.name.startswith("streamgauge."))
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_floor_imports_only_from_those_below(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    own = FLOORS.index(name.split("/")[0])
    above = {floor for floor in imported_floors(path) if FLOORS.index(floor) > own}
    assert above <= {floor for door, floor in DOORS if door == name}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_can_be_seen_at_once(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_importing_the_package_imports_no_engine() -> None:
    code = (
        "import sys, streamgauge; heavy = 'pyspark numba polars pyarrow numpy confluent_kafka'.split();"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
