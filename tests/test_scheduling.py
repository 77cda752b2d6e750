"""Workers begin with what takes longest to set up, share no session, and help each other at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist")

from .scheduling import LANES, kind_of, next_unit

TESTS = Path(__file__).parent
KINDS = {
    "spark_udafs/streaming/test_run.py": "Spark",
    "engines/test_joins.py": "Spark too",
    "operators/consumer/test_runner.py": "Kafka",
    "operators/kafka/test_reader.py": "Kafka too",
    "spark_udafs/cluster/test_cluster.py": "apart",
    "laws/test_merging.py": "law",
    "test_scheduling.py": "pure",
}


def test_kinds_are_known_by_the_marks_of_a_file() -> None:
    assert {name: kind_of(TESTS / name) for name in KINDS} == KINDS
    assert all({*lane} >= {*KINDS.values()} for lane in LANES)


def test_each_worker_takes_its_own_kinds_first_and_then_what_is_left() -> None:
    units = [f"{kind}: {number}" for kind in reversed(KINDS.values()) for number in range(2)]
    taken = []
    for worker in (0, 1, 2, 5):
        left, order = [*units], list[str]()
        while left:
            order.append(next_unit(worker, left))
            left.remove(order[-1])
        taken.append([unit.split(":")[0] for unit in order[::2]])
        assert sorted(order) == sorted(units)
    assert [order[0] for order in taken] == ["Spark", "Spark too", "apart", "apart"]
    assert [order[-1] for order in taken] == ["pure", "pure", "Spark", "Spark"]


CONFTEST = """
from streamgauge.tests.scheduling import ByNeed

def pytest_xdist_make_scheduler(config, log):
    return ByNeed(config, log)
"""
CRASHES = """
import os, pathlib, pytest

began = pathlib.Path(__file__).with_name("began")
names = [{names}]

@pytest.mark.flaky(reruns={reruns})
def test_crashes(request):
    # Answered only once the reruns, sent before without waiting, have arrived.
    request.config.failures_db.get_test_reruns(request.node.nodeid)
    again = began.exists()
    began.touch()
    again or os._exit(1)

@pytest.mark.parametrize("name", names)
def test_more(name):
    pass
"""


def run_crashing(folder: Path, reruns: int = 0, names: str = "'a', 'b'") -> str:
    """What pytest prints of two files on two workers, of which one crashes."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = flaky")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_crashes.py").write_text(CRASHES.format(reruns=reruns, names=names))
    (folder / "test_others.py").write_text("def test_one():\n    pass\n\ndef test_two():\n    pass\n")
    plugins = ["-p", "xdist", "-p", "rerunfailures", "-p", "no:cacheprovider"]
    program = [sys.executable, "-m", "pytest", "-n", "2", *plugins, folder]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(program, cwd=folder, env=alone, capture_output=True, text=True).stdout


def test_a_test_that_crashes_fails_once_and_the_rest_of_its_file_runs(tmp_path: Path) -> None:
    printed = run_crashing(tmp_path)
    assert (
        "1 failed, 4 passed" in printed and "crashed while running 'test_crashes.py::test_crashes'" in printed
    )


def test_a_test_that_crashes_is_run_again_where_that_is_allowed(tmp_path: Path) -> None:
    assert "5 passed, 1 rerun" in run_crashing(tmp_path, reruns=1)


def test_a_replacement_with_other_tests_is_reported_and_so_is_what_did_not_run(tmp_path: Path) -> None:
    printed = run_crashing(tmp_path, names="'a', 'c' if began.exists() else 'b'")
    assert "the replacement of a crashed worker gets no tests" in printed
    assert "-test_crashes.py::test_more[b]" in printed and "+test_crashes.py::test_more[c]" in printed
    assert "no worker is left to run pure: test_crashes.py" in printed
    assert "1 failed, 2 passed, 2 errors" in printed and "INTERNALERROR" not in printed
