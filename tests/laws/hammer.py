"""Many threads in one sketch of every family, and in its groups: a program of its own, as it may crash.

``python -m tests.laws.hammer ROUNDS [ALL]`` in the root prints a family before it begins with it.
"""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.count_min import CountMin
from streamgauge.sketches.count_min.heavy_hitters import HeavyHitters
from streamgauge.sketches.hll import HLL

from .families import FAMILIES, Family
from .streams import fresh

ROWS, WRITERS, N = 700, 3, 5
PATIENCE = 240.0
"""Seconds after which threads count as dead."""


def together(*jobs: Callable[[], Any]) -> None:
    """Run the jobs at once; raises what the first of them raised, and when they wait for each other."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> None:
        start.wait()
        try:
            job()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=[job], daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        if thread.is_alive():
            print("threads wait for each other for ever", flush=True)
            os._exit(3)
    if raised:
        raise raised[0]


def questions(sketch: Any, family: Family, kind: str) -> None:
    """All questions to a sketch while others change it."""
    family.read(sketch.to_bytes(), kind)
    sketch.answer()
    repr(sketch)
    assert pickle.loads(pickle.dumps(sketch)).to_bytes()
    assert copy.deepcopy(sketch) is not sketch.copy()


def seen_by(sketch: Any) -> int | None:
    result = getattr(sketch, "n", getattr(sketch, "weight", getattr(sketch, "total", None)))
    return None if result is None else int(result)


def one_sketch(family: Family, kind: str, rounds: int) -> None:
    batches = [fresh(kind, seed, ROWS) for seed in range(WRITERS)]
    shared = family.new(kind)

    def write(batch: pa.Array) -> None:
        for _ in range(rounds):
            family.feed(shared, batch)

    def read() -> None:
        for _ in range(rounds):
            questions(shared, family, kind)

    together(*(lambda batch=batch: write(batch) for batch in batches), read)
    assert seen_by(shared) in (None, WRITERS * rounds * ROWS), "rows were lost"
    values = [value for batch in batches for value in batch.to_pylist()] * rounds
    assert family.promise(shared, values) <= (1.0 if family.confidence == 1.0 else 2.0)


def two_sketches(family: Family, kind: str) -> None:
    one, other = (family.feed(family.new(kind, seed), fresh(kind, seed, ROWS)) for seed in (1, 2))

    def merge(mine: Any, theirs: Any) -> None:
        for _ in range(6):
            try:
                mine.merge(theirs)
                (mine | theirs).to_bytes()
            except SketchError:
                if family.name != "VarOpt":  # whose package refuses some samples of samples, alone as well
                    raise
            assert mine == mine and mine != 3
            _ = mine == theirs

    together(lambda: merge(one, other), lambda: merge(other, one), lambda: questions(one, family, kind))
    questions(one, family, kind)


def many_groups(family: Family, kind: str, rounds: int) -> None:
    column = fresh(kind, 1, ROWS)
    numbers, groups = np.arange(ROWS) % N, family.many(N, kind)
    part = family.many(N, kind, seed=2)
    family.feed_groups(part, numbers, column)
    images = part.to_arrow()

    def write() -> None:
        for _ in range(rounds):
            family.feed_groups(groups, numbers, column)

    def merge() -> None:
        for _ in range(rounds):
            groups.merge(np.arange(N), images)

    def grow() -> None:
        for n in range(N, N + rounds):
            groups.resize(n)

    def read() -> None:
        for _ in range(rounds):
            groups.answers()
            questions(groups[1], family, kind)
            assert len(pickle.loads(pickle.dumps(groups))) >= N
            copy.deepcopy(groups).to_arrow()

    together(write, write, merge, grow, read)
    result = [seen_by(groups[group]) for group in range(len(groups))]
    assert None in result or sum(filter(None, result)) == 3 * rounds * ROWS, "rows were lost"


def exact_groups(name: str, rounds: int) -> None:
    line = REGISTRY[name]
    column, numbers = fresh("long", 1, ROWS), np.arange(ROWS) % N
    inputs: dict[str, Any] = {"time": np.arange(ROWS)} if line.inputs else {}
    shared, alone = line.groups_class()(N), line.groups_class()(N)

    def write() -> None:
        for _ in range(rounds):
            shared.update(numbers, column, **inputs)

    def read() -> None:
        for _ in range(rounds):
            shared.answers()
            shared.to_arrow()
            shared[1]

    together(write, write, read, lambda: [shared.resize(n) for n in range(N, N + rounds)])
    for _ in range(2 * rounds):
        alone.update(numbers, column, **inputs)
    if name != "variance":
        assert shared.answers()[:N] == alone.answers()


def heavy_hitters(rounds: int) -> None:
    one, other = HeavyHitters(3), HeavyHitters(3)

    def write(mine: HeavyHitters, theirs: HeavyHitters) -> None:
        for _ in range(rounds):
            mine.update(["a", "b", "a"])
            theirs.top()

    together(lambda: write(one, other), lambda: write(other, one), lambda: write(one, other))
    together(lambda: one.merge(other), lambda: other.merge(one))
    assert one.counts.total + other.counts.total >= 9 * rounds


def forked_children() -> None:
    """A child neither waits for threads that it doesn't have nor takes what they left half done."""
    shared, quiet = HLL(lg_k=18), CountMin().update(["a"])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            shared.update(np.arange(400_000))

    writer = threading.Thread(target=write)
    writer.start()
    quiet.estimate("a")
    outcomes = set()
    for _ in range(12):
        child = os.fork()
        if not child:
            try:
                assert quiet.update(["a"]).estimate("a") == 2
                shared.estimate()
                os._exit(10)
            except RuntimeError as error:
                os._exit(11 if "when the process forked" in str(error) else 12)
            except BaseException:
                os._exit(13)
        outcomes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    stop.set()
    writer.join()
    assert outcomes <= {10, 11}, outcomes
    assert 11 in outcomes, "no fork fell amid an update: the test shows nothing"


def main(rounds: int, all_kinds: bool) -> None:
    """Every family, one after the other."""
    sys.setswitchinterval(1e-5)
    print("forks", flush=True)
    forked_children()
    for family in FAMILIES:
        for kind in family.kinds if all_kinds else family.kinds[:1]:
            print(family, kind, flush=True)
            one_sketch(family, kind, rounds)
            two_sketches(family, kind)
            many_groups(family, kind, rounds)
    for name in (name for name, line in REGISTRY.items() if line.exact):
        print(name, flush=True)
        exact_groups(name, rounds)
    heavy_hitters(rounds)
    print("done", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), "ALL" in sys.argv[2:])
