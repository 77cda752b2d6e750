"""KLL against datasketches-java, byte for byte: our coins are its coins."""

from __future__ import annotations

import base64
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
import pytest

from streamgauge.sketches.kll import KLL

pytestmark = [pytest.mark.spark, pytest.mark.apart]

ORACLE = Path(__file__).parents[2] / "oracles" / "KllOracle.java"

DTYPES: dict[Any, str] = {"double": "<f8", "float": "<f4", "long": "<i8"}


def java_answers(lines: list[str]) -> list[str]:
    """The answer to each command of `KllOracle.java`, in one run of Java."""
    jars = (Path(pyspark.__file__).parent / "jars").glob("datasketches-*.jar")
    java = shutil.which("java")
    assert java, "the Java oracle needs a `java` on PATH"
    done = subprocess.run(
        [java, "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars)), str(ORACLE)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def text(data: bytes) -> str:
    """Bytes as the oracle takes them."""
    return base64.b64encode(data).decode() or "-"


def data(text: str) -> bytes:
    """Bytes as the oracle gives them."""
    return base64.b64decode(text)


def stream(kind: str, n: int) -> np.ndarray:
    return (np.random.default_rng(n).normal(size=n) * 1000).astype(DTYPES[kind])


def as_java_does(sketch: KLL) -> KLL:
    """The same sketch, made to take values in as Java does: it never samples and goes up level by level."""
    tables = sketch._store.tables
    sketch._store.tables = tables._replace(deepest=61, leaps=np.zeros_like(tables.leaps))
    return sketch


@pytest.mark.slow
def test_built_sketches_are_equal_to_the_byte() -> None:
    cases = list(product(DTYPES, (8, 20, 200, 1000), (0, 1, 2, 200, 201, 1000, 10_000)))
    lines = [
        f"build {kind} {k} {seed} {text(stream(kind, n).tobytes())}"
        for seed, (kind, k, n) in enumerate(cases)
    ]
    for seed, ((kind, k, n), answer) in enumerate(zip(cases, java_answers(lines), strict=True)):
        sketch = as_java_does(KLL(k, kind, seed=seed))
        assert sketch.update(stream(kind, n)).to_bytes() == data(answer), (kind, k, n)


@pytest.mark.slow
def test_merged_sketches_are_equal_to_the_byte() -> None:
    sizes = [(200, 10_000), (50, 3000), (400, 100), (200, 1), (8, 5000), (200, 0)]
    cases = [(kind, a, b) for kind in DTYPES for a, b in product(sizes, sizes)]

    def built(kind: Any, size: tuple[int, int], seed: int) -> KLL:
        return KLL(size[0], kind, seed=seed).update(stream(kind, size[1]))

    lines = [
        f"merge {kind} 77 {text(bytes(built(kind, a, 1)))} {text(bytes(built(kind, b, 2)))}"
        for kind, a, b in cases
    ]
    for (kind, a, b), answer in zip(cases, java_answers(lines), strict=True):
        mine = as_java_does(KLL.from_bytes(bytes(built(kind, a, 1)), kind, seed=77))
        assert mine.merge(built(kind, b, 2)).to_bytes() == data(answer), (kind, a, b)


@pytest.mark.slow
def test_java_reads_goes_on_with_and_ranks_deep_sketches() -> None:
    lines, sketches = [], []
    for kind in DTYPES:
        sketch = KLL(200, kind, seed=1).update(stream(kind, 1_000_000))
        low, high = (np.array(end, DTYPES[kind]) for end in (sketch.low, sketch.high))
        below = high - 1 if kind == "long" else np.nextafter(high, low)
        points = np.array([low, -1000, 0, 500, below, high], DTYPES[kind])
        lines += [
            f"ranks {kind} {text(bytes(sketch))} {text(points.tobytes())}",
            f"add {kind} 1 {text(bytes(sketch))} {text(stream(kind, 10_000).tobytes())}",
        ]
        sketches.append((sketch, points))
    answers = java_answers(lines)
    for (sketch, points), ranks, added in zip(sketches, answers[::2], answers[1::2], strict=True):
        n, *theirs = map(float, ranks.split())
        assert n == 1_000_000 and theirs == pytest.approx([sketch.rank(x) for x in points], rel=1e-12)
        assert KLL.from_bytes(data(added), sketch.kind).n == 1_010_000


@pytest.mark.slow
def test_weighted_sketches_are_read_both_ways() -> None:
    lines, mine = [], []
    for kind in DTYPES:
        values = stream(kind, 5_000)
        weights = np.random.default_rng(5).integers(1, 1 << 12, len(values)).astype("<i8")
        points = np.array([-1000, 0, 500], DTYPES[kind])
        sketch = KLL(200, kind, seed=1).update(values, weight=weights)
        true = [float(weights[values <= point].sum() / weights.sum()) for point in points]
        lines += [
            f"ranks {kind} {text(bytes(sketch))} {text(points.tobytes())}",
            f"weigh {kind} 200 9 {text(values.tobytes())} {text(weights.tobytes())}",
        ]
        mine.append((sketch, points, true))
    answers = java_answers(lines)
    for (sketch, points, true), ranks, weighed in zip(mine, answers[::2], answers[1::2], strict=True):
        n, *theirs = map(float, ranks.split())
        assert n == sketch.n and theirs == pytest.approx([sketch.rank(x) for x in points])
        java = KLL.from_bytes(data(weighed), sketch.kind)
        assert java.n == sketch.n
        for one in (java, sketch, java | sketch):
            assert [one.rank(x) for x in points] == pytest.approx(true, abs=2 * one.normalized_rank_error())
