"""What can be imported from the package's root, and what `import *` brings."""

from __future__ import annotations

import builtins
import inspect
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest

import streamgauge
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.spark_udafs.streaming.run import on_spark

ROOT = Path(__file__).resolve().parents[1]


def test_import_star_hides_no_name_of_python_itself() -> None:
    brought = set(streamgauge.__all__)
    assert not brought & set(dir(builtins))
    assert not brought & set(sys.stdlib_module_names)
    assert {"Stream", "count", "distinct", "StreamTester"} <= brought


def test_every_name_that_is_offered_can_be_had() -> None:
    for name in dir(streamgauge):
        assert getattr(streamgauge, name) is not None
    assert streamgauge.sum("x").name == "sum" and streamgauge.json({}).schema == {}
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = streamgauge.nope


HEAVY = (
    *("pyspark", "numba", "numpy", "polars", "pyarrow", "pandas", "matplotlib", "datasketches"),
    *("confluent_kafka", "kafka", "uvicorn", "starlette", "pydantic", "httpx", "typer", "rich"),
)


@pytest.mark.parametrize(
    ("code", "free"),
    [
        ("from streamgauge import Stream, count, json", HEAVY),
        ("import streamgauge; streamgauge.LookupTable, streamgauge.distinct, streamgauge.field", HEAVY),
        # A stream's expressions are those of Polars; no compiler or client of Kafka is needed to say them.
        (
            "import polars as pl; from streamgauge import Stream, count, json;"
            "Stream.from_kafka('posts', value=json({'n': pl.Int64})).filter(pl.col('n') > 0)",
            ("pyspark", "numba", "kafka", "uvicorn", "starlette", "pydantic", "matplotlib"),
        ),
    ],
)
def test_what_says_what_a_stream_asks_loads_no_engine(code: str, free: tuple[str, ...]) -> None:
    shown = f"{code}; import sys; print([name for name in {free} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["run", "start"])
def test_help_shows_all_options_of_a_run(name: str) -> None:
    """Without this, `help(Stream.run)` shows an option less, or another default, than a run has."""
    shown = list(inspect.signature(getattr(streamgauge.Stream, name)).parameters.values())[1:]
    if name == "run":
        assert shown.pop().name == "progress"  # of the call that waits, not of the run
    assert shown == list(inspect.signature(RunOptions).parameters.values())


def test_help_shows_all_options_of_spark() -> None:
    shown, accepted = (
        inspect.signature(f).parameters.values() for f in (streamgauge.Stream.on_spark, on_spark)
    )
    assert list(shown)[1:] == list(accepted)[1:]


def test_every_method_gives_a_stream_that_can_be_run() -> None:
    rows = streamgauge.Stream.from_schema({"at": pl.Datetime("us"), "tags": pl.List(pl.String)}, time="at")
    steps = rows.filter(pl.col("at") > 0).with_columns(n=1).explode("tags").select("tags", "n")
    whole = steps.group_by("n").tumbling("1m").agg(posts=streamgauge.count()).complete()
    for stream in (rows, steps, whole, pickle.loads(pickle.dumps(whole))):
        assert type(stream) is streamgauge.Stream
    assert (
        whole.source is rows.source and whole.fingerprint() == pickle.loads(pickle.dumps(whole)).fingerprint()
    )


def test_the_wheel_holds_every_room_and_what_lies_in_it() -> None:
    """A folder without `__init__.py`, or an unlisted kind of file, is missing only where it is installed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    shown = "import setuptools; from distutils.core import run_setup;"
    shown += "print(*run_setup('setup.py', stop_after='init').packages)"
    done = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, capture_output=True, text=True, check=True)
    floors = ("sketches", "sampling", "operators", "spark_udafs", "queries", "agents", "apps", "spark")
    rooms = {file.parent for floor in floors for file in (ROOT / floor).rglob("*.py")}
    packages = {".".join(["streamgauge", *room.relative_to(ROOT).parts]) for room in rooms}
    assert set(done.stdout.split()) == {"streamgauge", *packages}
    packed = {
        file
        for name, patterns in settings["package-data"].items()
        for pattern in patterns
        for room in (rooms if name == "*" else [ROOT.joinpath(*name.split(".")[1:])])
        for file in room.glob(pattern)
        if file.is_file()
    }
    beside = {
        file
        for room in rooms
        for file in room.rglob("*")
        if file.is_file() and file.suffix != ".py" and file.parent.name != "__pycache__"
    }
    assert packed == {*beside, ROOT / "py.typed"}
