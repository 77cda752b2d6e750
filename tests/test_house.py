"""The house's own rules: floors import only from those below, nothing in a circle.

An import counts wherever it stands: in a function, under `TYPE_CHECKING`, or as a string for `importlib`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ["sketches", "sampling", "operators", "spark_udafs", "queries", "agents", "apps"]
SOURCES = sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))
TOP = sorted([*ROOT.glob("*.py"), *(ROOT / "spark").glob("*.py")])
"""The modules above all floors: the public ones, and the facades that they offer."""


def named(path: Path) -> str:
    """A module's name within the package, dotted; empty for the root."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MODULES = {named(path): path for path in (*SOURCES, *TOP)}


def imported(path: Path) -> Iterator[str]:
    """The names within the package that a module imports, the imported object's name included."""
    package = path.relative_to(ROOT).parts[:-1]
    tree = ast.parse(path.read_text())
    pieces = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base += node.module.split(".") if node.module else []
            if node.level or base[0] == "streamgauge":
                yield from (".".join([*base[not node.level :], alias.name]) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name.partition(".")[2] for a in node.names if a.name.split(".")[0] == "streamgauge")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in pieces:
            yield from by_string(node.value, package)


@cache
def imports_of(path: Path) -> list[str]:
    """The same, read once for all tests."""
    return list(imported(path))


def by_string(text: str, package: tuple[str, ...]) -> Iterator[str]:
    """The module that a string names, if it does, as in ``import_module("..operators.table", __name__)``."""
    if not re.fullmatch(r"\.*\w+(\.\w+)*(:\w+)?", text):
        return
    dots = len(text) - len(text.lstrip("."))
    base = package[: len(package) - dots + 1] if dots else ()
    result = ".".join([*base, text.lstrip(".").partition(":")[0]]).removeprefix("streamgauge.")
    if "." in result and result in MODULES:
        yield result


def module_of(name: str) -> str:
    """The module that an imported name is, or lies in."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def floor_of(name: str) -> int:
    first = name.partition(".")[0]
    return FLOORS.index(first) if first in FLOORS else len(FLOORS)


def test_a_floor_imports_only_from_those_below() -> None:
    upwards = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in SOURCES
        for name in imports_of(path)
        if floor_of(name) > floor_of(named(path))
    ]
    assert upwards == []


def test_the_picture_of_the_floors_shows_every_room() -> None:
    picture = (ROOT / "docs" / "pictures" / "house.svg").read_text()
    rooms = {
        path.parent for path in SOURCES if path.name == "__init__.py" and path.parent.parent.parent == ROOT
    }
    missing = sorted(str(room.relative_to(ROOT)) for room in rooms if f">{room.name}<" not in picture)
    assert len(rooms) > 60 and not missing, "python docs/_site/house.py draws it again"


def test_no_two_rooms_of_a_folder_import_each_other() -> None:
    """In no folder, by any detour: its rooms and modules can be read from the bottom up."""
    between: dict[str, dict[str, set[str]]] = {}
    for name, path in MODULES.items():
        for target in {module_of(each) for each in imports_of(path)}:
            here, there = name.split("."), target.split(".")
            while here[1:] and there[1:] and here[0] == there[0]:
                here, there = here[1:], there[1:]
            if here[0] != there[0]:
                rooms = between.setdefault(name.removesuffix(".".join(here)), {})
                rooms.setdefault(here[0], set()).add(there[0])
    circles = []
    for folder, rooms in between.items():
        try:
            TopologicalSorter(rooms).prepare()
        except CycleError as error:
            circles.append(f"{folder or 'the root'}: {' -> '.join(error.args[1])}")
    assert circles == []


def test_an_import_upwards_is_seen_however_it_is_written(tmp_path: Path, monkeypatch) -> None:
    room = tmp_path / "operators" / "room.py"
    room.parent.mkdir()
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    for text, result in {
        "def f():\n    from ..spark_udafs.frames import tables": "spark_udafs.frames.tables",
        "from .. import apps": "apps",
        "from ..stream import Stream": "stream.Stream",
        "import streamgauge.apps.cli.commands": "apps.cli.commands",
        "from streamgauge import Stream": "Stream",
        'import_module("..spark_udafs.streaming.run", __package__)': "spark_udafs.streaming.run",
        'import_module("streamgauge.apps.cli.commands")': "apps.cli.commands",
        'PLACE = "apps.cli.commands:main"': "apps.cli.commands",
    }.items():
        room.write_text(text)
        assert list(imported(room)) == [result]
        assert floor_of(result) > FLOORS.index("operators")


def test_no_modules_import_each_other_in_a_circle() -> None:
    """`graphlib` names the modules of the first circle that it finds."""
    below = {name: {module_of(at) for at in imports_of(path)} - {name} for name, path in MODULES.items()}
    TopologicalSorter(below).prepare()


TWICE = {
    # One name for what a sink writes, on either engine: `streamgauge`'s and `streamgauge.spark`'s.
    *("SketchesToKafka", "SketchesToParquet"),
    # A sketch's arena and the parts of its kernels, by the same name in every family's folder.
    *("Found", "Image", "Rows", "Slots", "State", "Store", "UpdateScratch", "Work"),
    # Words that are still to get one meaning.
    *("Batch", "Columns", "Engine", "Node", "Running", "Snapshot", "Source", "Step", "Summary"),
}


def test_a_public_class_name_is_defined_once() -> None:
    """Without this, a second `Position` or `Plan` comes to mean something else."""
    by_key: dict[str, set[str]] = {}
    for path in SOURCES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                by_key.setdefault(node.name, set()).add(named(path))
    assert {name: rooms for name, rooms in by_key.items() if len(rooms) > 1 and name not in TWICE} == {}


def test_importing_the_package_imports_no_engine() -> None:
    code = (
        "import sys, streamgauge; heavy = 'pyspark numba polars pyarrow numpy confluent_kafka'.split();"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_definition_that_can_be_run_imports_no_engine_before_it_is() -> None:
    code = (
        "import sys; from streamgauge import Stream, json; Stream.from_kafka('posts', value=json({}));"
        "heavy = 'pyspark fastavro google.protobuf httpx grpc_tools confluent_kafka.schema_registry'.split();"
        "engine = 'streamgauge.operators.consumer.';"
        "heavy += [m for m in sys.modules if m.startswith(engine) and m != engine + 'options'];"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
