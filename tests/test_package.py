"""What can be imported from the package's root, and what `import *` brings."""

from __future__ import annotations

import builtins
import inspect
import sys
import tomllib
from pathlib import Path

import pytest

import streamgauge
from streamgauge.operators.consumer import runner

ROOT = Path(__file__).resolve().parents[1]


def test_import_star_hides_no_name_of_python_itself() -> None:
    brought = set(streamgauge.__all__)
    assert not brought & set(dir(builtins))
    assert not brought & set(sys.stdlib_module_names)
    assert {"Stream", "count", "distinct", "sketch", "StreamTester"} <= brought


def test_every_name_that_is_offered_can_be_had() -> None:
    for name in dir(streamgauge):
        assert getattr(streamgauge, name) is not None
    assert streamgauge.sum("x").name == "sum" and streamgauge.json({}).schema == {}
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = streamgauge.nope


@pytest.mark.parametrize("name", ["run", "start"])
def test_help_shows_all_options_of_a_run(name: str) -> None:
    """Without this, `help(Stream.run)` shows an option less, or another default, than the runner has."""
    shown = list(inspect.signature(getattr(streamgauge.Stream, name)).parameters.values())[1:]
    assert shown == list(inspect.signature(runner.start).parameters.values())[1:]


def test_the_wheel_holds_every_room_and_what_lies_in_it() -> None:
    """Packages are listed: a folder that is forgotten would be missing only where it is installed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    floors = ("sketches", "sampling", "operators", "spark_udafs", "apps")
    rooms = {file.parent for floor in floors for file in (ROOT / floor).rglob("*.py")}
    names = {".".join(["streamgauge", *room.relative_to(ROOT).parts]) for room in rooms}
    assert set(settings["packages"]) == {"streamgauge", *names}
    assert [room for room in rooms if not (room / "__init__.py").is_file()] == []
    packed = {
        file
        for name, patterns in settings["package-data"].items()
        for pattern in patterns
        for file in ROOT.joinpath(*name.split(".")[1:]).glob(pattern)
    }
    beside = {file for room in rooms for file in room.iterdir() if file.is_file() and file.suffix != ".py"}
    assert packed == {*beside, ROOT / "py.typed"}
