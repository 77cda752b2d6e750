"""A new family is one folder and one line: everything else takes it from there."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from datetime import datetime
from inspect import unwrap
from pathlib import Path
from typing import Any, get_type_hints
from unittest.mock import MagicMock

import polars as pl
import pyarrow as pa
import pytest

import streamgauge
from streamgauge import Stream, StreamTester, stored
from streamgauge.operators import families
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.definition.aggregate_factory import explicit_function, signature
from streamgauge.operators.warm_up.steps import steps
from streamgauge.spark_udafs.functions.registering import register

from . import promises
from .families import under_law
from .test_copies import test_bytes_pickles_and_copies_are_equal as copies_are_equal
from .test_cuts import test_any_cut_equals_the_whole as any_cut_equals_the_whole
from .test_merging import test_any_order_gives_the_same as any_order_gives_the_same

FOLDER = '''
"""How many values there were, each counted several times."""

from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import countable
from ..core.columns.columns import as_values
from ..core.one_by_one import OneByOne, Staged
from ..core.protocol import SketchError


class Tally(Staged):
    """How many values there were, each counted `times` times. Exact."""

    family = "Tally"

    def __init__(self, times=1):
        self.times, self.n = times, 0

    def update(self, values):
        self.n += self.times * len(as_values(values))
        return self

    def merge(self, other):
        self.n += other.n
        return self

    def to_bytes(self):
        return self.times.to_bytes(8, "little") + self.n.to_bytes(8, "little")

    @classmethod
    def from_bytes(cls, data):
        if len(data) != 16:
            raise SketchError("Tally: these bytes are not a tally")
        tally = cls(int.from_bytes(data[:8], "little"))
        tally.n = int.from_bytes(data[8:], "little")
        return tally

    def answer(self):
        return {"n": self.n}


class TallyGroups(OneByOne):
    """One tally a group."""

    aggregate = Aggregated({"times": 1}, of_column=countable)
'''


@pytest.fixture
def tally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[families.Family]:
    """The folder and the line of a family that the house doesn't have."""
    from streamgauge import sketches

    (tmp_path / "tally").mkdir()
    (tmp_path / "tally" / "__init__.py").write_text(FOLDER)
    monkeypatch.setattr(sketches, "__path__", [*sketches.__path__, str(tmp_path)])
    line = families.Family("tally", "sketches.tally:Tally")
    monkeypatch.setitem(families.FAMILIES, "tally", line)
    yield line
    sys.modules.pop("streamgauge.sketches.tally", None)


def test_it_is_exported_as_class_and_as_aggregate(tally: families.Family) -> None:
    offered: Any = streamgauge
    assert {"Tally", "tally"} <= set(dir(streamgauge)) & set(offered.__all__)
    assert offered.Tally is tally.sketch_class()
    requested = offered.tally("user", times=3)
    assert requested == Aggregate("tally", "user", {"times": 3})
    assert str(inspect.signature(offered.tally)) == "(column: 'str', times: 'int' = 1) -> 'Aggregate'"
    assert "times" in inspect.getdoc(offered.tally)
    with pytest.raises(TypeError, match="nope"):
        offered.tally("user", nope=1)


def test_a_stream_keeps_it(tally: families.Family) -> None:
    offered: Any = streamgauge
    rows = Stream.from_schema({"at": pl.Datetime("us"), "user": pl.String}, time="at")
    tester = StreamTester(rows.tumbling("1m").agg(users=offered.tally("user", times=2)))
    at = datetime(2026, 1, 1, 0, 0, 1)
    tester.feed([{"at": at, "user": user} for user in ("ann", None, "bob")])
    assert tester.finish().windows()["users"].to_list() == [{"n": 4}]


def test_spark_gets_functions_of_it(tally: families.Family) -> None:
    session = MagicMock()
    session.sparkContext.master = "local"
    session.conf.get.return_value = ""
    names = register(session)
    assert {"sketch_tally", "merge_tally", "answer_tally"} <= set(names)
    given = {
        name: function.func for name, function in (call.args for call in session.udf.register.mock_calls)
    }
    image = given["sketch_tally"](pa.array(["a", "b", None]))
    merged = given["merge_tally"](pa.array([image, image]))
    assert given["answer_tally"](pa.array([merged])).to_pylist() == ['{"n": 4}']


def test_the_laws_and_the_warm_up_take_it(tally: families.Family) -> None:
    family = under_law(tally)
    assert family.kinds == ("long", "string", "unsigned")
    assert family.promise is promises.nothing, "`test_exact.py` needs one"
    for kind in family.kinds:
        unwrap(copies_are_equal)(family, kind, 100)
        unwrap(any_cut_equals_the_whole)(family, kind, "uneven")
        unwrap(any_order_gives_the_same)(family, kind, mixed=False)
    (mine,) = [step for step in steps() if step.name == "tally"]
    mine.run()


@pytest.mark.parametrize("name", families.FAMILIES)
def test_type_checkers_see_how_it_is_asked_for(name: str) -> None:
    line = families.FAMILIES[name]
    result = explicit_function(name)
    wanted = f"def {name}{signature(line)}".replace("'", "")
    assert result, f"write `{wanted}` in operators/definition/aggregates.py for type checkers and editors"
    shown = inspect.signature(result).parameters
    expected = signature(line).parameters
    assert next(iter(shown)) == "column"
    assert {one: shown[one].default for one in shown if one != "column"} == {
        one: expected[one].default for one in expected if one != "column"
    }, f"expected {wanted}"


def test_families_of_others_are_public_in_a_module_of_their_own() -> None:
    lines = [line for line in families.FAMILIES.values() if line.stored]
    renamed = {old: families.family(new) for old, new in families.RENAMED.items()}
    names = {line.name for line in lines} | {line.class_name for line in lines}
    assert names | {*renamed, *(line.class_name for line in renamed.values())} == set(stored.__all__)
    for old, line in renamed.items():
        assert (
            getattr(stored, line.class_name) is line.sketch_class() is getattr(streamgauge, line.class_name)
        )
        assert getattr(stored, old) is explicit_function(line.name)
    for line in lines:
        assert getattr(stored, line.class_name) is line.sketch_class()
        assert getattr(stored, line.name) is explicit_function(line.name)
        assert not {line.name, line.class_name} & set(dir(streamgauge))


def test_type_checkers_see_every_name_that_is_offered_and_no_other() -> None:
    """`make types` in turn finds an import that leads nowhere."""
    tree = ast.parse(Path(streamgauge.__file__).read_text())
    hidden = [
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for node in hidden[0].body if isinstance(node, ast.ImportFrom)]
    seen = [alias.asname for node in imports for alias in node.names]
    assert sorted(map(str, seen)) == sorted(set(dir(streamgauge)) - {"__version__"})


def test_a_sketch_and_its_groups_know_each_other_by_the_registry() -> None:
    for line in families.FAMILIES.values():
        if not line.exact:
            assert type(line.groups_class()(1)[0]) is line.sketch_class()


@pytest.mark.parametrize("name", ["Bloom", "CountMin", "DDSketch", "KLL", "REQ", "SlidingBloom", "TDigest"])
def test_type_checkers_know_the_sketch_of_one_group(name: str) -> None:
    """Where the sketch doesn't stand on its groups, so that these may import it."""
    line = next(line for line in families.FAMILIES.values() if line.class_name == name)
    assert get_type_hints(line.groups_class().__getitem__)["return"] is line.sketch_class()
