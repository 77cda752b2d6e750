"""A new kind of windows is a module and a line in a registry: everything else takes it from there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import SketchesToParquet, Stream, StreamTester, count, merge, query
from streamgauge import json as json_value
from streamgauge.operators.class_loading import load_class
from streamgauge.operators.consumer.merge.window_kinds import OPEN
from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.rules.evaluation.rule_engine import RuleEngine, rule_view
from streamgauge.operators.rules.kinds.threshold import Threshold
from streamgauge.operators.sketching.window_rows import ROWS as ROWS_OF
from streamgauge.operators.table.schema import read_parquet
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.operators.table.windows import declared_windows, end_to_end
from streamgauge.operators.windows import kinds
from streamgauge.queries.views.merge_cache import MergeCache, Selection
from streamgauge.queries.views.view import windows_of
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.kafka.stream_checks import check_readable

PARTS = {
    "shift": """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .paned import Paned
from .table import TableWindows, check_inside

HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class ShiftTable(TableWindows):
    kind: ClassVar[str] = "shift"
    in_steps: ClassVar[bool] = True

    def fit_into(self, size_us):
        return False

    def once_within(self, starts, ends, size_us):
        check_inside(self, starts, ends, size_us)

    def __str__(self):
        return f"shifts from {self.offset_us // HOUR} on"


@dataclass(frozen=True, slots=True)
class Shift(Paned):
    size_us: int = 8 * HOUR
    every_us: int = 8 * HOUR
    hour: int = 6
    most: int = 1

    kind: ClassVar[str] = "shift"

    def definition(self):
        return {"window": "shift", "hour": f"{self.hour} h", "most": f"{self.most} groups"}

    @classmethod
    def from_definition(cls, definition):
        hour, most = (int(definition[name].split()[0]) for name in ("hour", "most"))
        return cls(hour=hour, most=most)

    def of_table(self):
        return ShiftTable(self.size_us, self.every_us, self.hour * HOUR % self.every_us)

    def pane_start(self, time_us):
        return time_us - (time_us - self.hour * HOUR) % self.size_us

    def pane_starts(self, times_us):
        return times_us - (times_us - np.int64(self.hour * HOUR)) % np.int64(self.size_us)

    def first_end(self, time_us):
        return self.pane_start(time_us) + self.size_us

    def first_ends(self, times_us):
        return self.pane_starts(times_us) + np.int64(self.size_us)

    last_end, last_ends, whole_until = first_end, first_ends, first_end

""",
    "shift_rows": """
from ..sketching.panes import Panes


class ShiftRows(Panes):
    made = []

    def __init__(self, schema, window, salt=0):
        super().__init__(schema, window, salt)
        self.made.append(window)
""",
    "shift_windows": '''
import numpy as np

from ..consumer.merge.paned_windows import PanedWindows
from ..table.window_groups import WindowGroups


class OpenShift(PanedWindows):
    """Of the groups with most rows."""

    in_batches = False

    def _finals(self, ends):
        return {end: lambda part=self._part_of(end): self._groups(part.table()) for end in ends}

    def _groups(self, table):
        return WindowGroups.of_table(self._largest(table))

    def _wholes(self, ends):
        return (self._largest(table) for table in super()._wholes(ends))

    def _largest(self, table):
        order = np.argsort(-table["n"].to_numpy(), kind="stable")
        return table.take(np.sort(order[: self._window.most]))
''',
}
START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = Stream.from_schema({"at": pl.Datetime("us", "UTC"), "who": pl.String}, time="at").group_by("who")


@pytest.fixture
def shift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class of a kind that the house doesn't have."""
    from streamgauge.operators import windows

    for name, text in PARTS.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(windows, "__path__", [*windows.__path__, str(tmp_path)])
    line = kinds.WindowKind("shift", "operators.windows.shift:Shift")
    monkeypatch.setitem(kinds.KINDS, "shift", line)
    monkeypatch.setitem(ROWS_OF, "shift", "operators.windows.shift_rows:ShiftRows")
    monkeypatch.setitem(OPEN, "shift", "operators.windows.shift_windows:OpenShift")
    yield line.window_class
    for name in [name for name in sys.modules if name.startswith("streamgauge.operators.windows.shift")]:
        del sys.modules[name]


def stream_of(shift: Any, **fields: int) -> Stream:
    return ROWS._windowed("shift", shift(**fields), "0s", None).agg(n=count())


def at(hour: float, who: str = "ann") -> dict[str, object]:
    return {"at": START + timedelta(hours=hour), "who": who}


SEEN = [at(5), at(7), at(8, "bob"), at(13.9), at(14), at(20), at(21, "bob"), at(23), at(47)]


def shown(windows: pl.DataFrame) -> list[tuple[Any, ...]]:
    starts = (windows["window_start"] - START).dt.total_hours()
    return sorted(zip(starts, windows["who"], windows["n"]))


def test_a_definition_is_described_read_back_and_compared(shift: Any) -> None:
    stream = stream_of(shift, hour=6)
    again = described_stream(stream.definition())
    assert again.window == stream.window == shift(hour=6) and again.fingerprint() == stream.fingerprint()
    other = stream_of(shift, hour=7)
    assert other.fingerprint() != stream.fingerprint()
    (change,) = differences(stream.definition(), other.definition())
    assert change == "the window changed from shift 6 h 1 groups to shift 7 h 1 groups"
    with pytest.raises(ValueError, match="windows of 6 h every 1 groups already"):
        stream_of(shift).hopping("1h", every="1m")


def test_rows_become_windows_in_its_own_rows_and_open_windows(shift: Any, tmp_path: Path) -> None:
    tester = StreamTester(stream_of(shift), sinks=[SketchesToParquet(tmp_path / "table")])
    tester.feed(SEEN)
    tables = tester.tables().to_arrow()
    assert shown(query(tables)) == [(-2, "ann", 1), (6, "ann", 2), (14, "ann", 2), (22, "ann", 1)]
    assert shown(tester.finish().windows()) == [(46, "ann", 1)]
    assert load_class(ROWS_OF["shift"]).made == [shift()]
    assert str(declared_windows(tables.schema)) == "shifts from 6 on"
    stored = read_parquet(tmp_path / "table")
    assert declared_windows(stored.schema) == declared_windows(tables.schema) and stored.num_rows == 5
    rules = [Threshold("busy", value="n", at_least=2)]
    engine = RuleEngine(rules, rule_view(rules, tables.schema, None))
    assert [alert.state for alert in engine.evaluate(WindowGroups.of_table(tables), final=True)] == [
        "fired",
        "cleared",
    ]


def test_a_table_of_it_merges_rolls_up_and_is_served(shift: Any) -> None:
    tester = StreamTester(stream_of(shift, most=9))
    tester.feed(SEEN)
    table = tester.finish().tables().to_arrow()
    assert query(merge(table, by=[]))["n"].to_list() == [1, 3, 3, 1, 1]
    assert sum(query(end_to_end(table, ["who"]))["n"]) == len(SEEN)
    with pytest.raises(SketchError, match="shifts from 6 on don't fit into windows of 1h"):
        merge(table, every="1h")
    # The shift from 22:00 on lies in two days.
    with pytest.raises(SketchError, match="shifts from 6 on don't fit into windows of 1d"):
        merge(table, every="1d")
    windows = list(windows_of(0, table))
    served = MergeCache().table(table.schema, windows, Selection(("n",), ()), "span")
    assert served["n"].to_pylist() == [len(SEEN)]


def test_spark_refuses_it_by_its_name(shift: Any) -> None:
    posts = Stream.from_kafka("posts", value=json_value({"who": pl.String})).group_by("who")
    with pytest.raises(ValueError, match="the windows shift 6 h 1 groups, which only the consumer merges"):
        check_readable(posts._windowed("shift", shift(), "0s", None).agg(n=count()))


@pytest.mark.parametrize("name", kinds.KINDS)
def test_a_kind_says_its_name_as_its_line_does(name: str) -> None:
    line = kinds.KINDS[name]
    assert line.window_class.kind == name
    stored = [kind.table_class.kind for kind in kinds.KINDS.values()]
    assert len({*stored, "all"}) == len(stored) + 1


PRODUCT = Path(kinds.__file__).parents[2]
CLASSES = {line.place.split(":")[1] for line in kinds.KINDS.values()}
PLACES = [*(line.place for line in kinds.KINDS.values()), *ROWS_OF.values(), *OPEN.values()]
THEIRS = {PRODUCT / f"{place.partition(':')[0].replace('.', '/')}.py" for place in PLACES}
THEIRS.add(PRODUCT / "operators/consumer/worker/count_window_recovery.py")
"""The modules of the kinds themselves."""


def test_nothing_but_its_own_modules_compares_kinds() -> None:
    """Not by a class, nor by the name that it is stored under."""
    names = {line.name for line in kinds.KINDS.values()}
    wrong = []
    for floor in ("operators", "spark_udafs", "queries", "agents", "apps"):
        for path in set((PRODUCT / floor).rglob("*.py")) - THEIRS:
            for node in ast.walk(ast.parse(path.read_text())):
                if _compares_classes(node) or _compares_kinds(node, names):
                    wrong.append(f"{path.relative_to(PRODUCT)}:{node.lineno}")  # type: ignore[attr-defined]
    assert wrong == []


def _compares_classes(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass")):
        return False
    mentioned = {ast.unparse(one) for one in ast.walk(node.args[1])}
    return bool(mentioned & (CLASSES | {f"{name}Table" for name in CLASSES}))


def _compares_kinds(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Compare) or not ast.unparse(node.left).endswith("kind"):
        return False
    constants = {
        one.value for right in node.comparators for one in ast.walk(right) if isinstance(one, ast.Constant)
    }
    return bool(constants & names)
