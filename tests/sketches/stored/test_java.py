"""Sketches that datasketches-java stored, read here, and ours read there, of each family kept for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamgauge.sketches.req import REQ
from streamgauge.sketches.stored.classic_quantiles import ClassicQuantiles
from streamgauge.sketches.stored.cpc import CPC
from streamgauge.sketches.stored.var_opt import VarOpt
from streamgauge.sketches.tdigest import TDigest
from streamgauge.sketches.theta.tuple import Tuple

from ...cases import each

SIZES = (0, 1, 2, 15, 20, 63, 64, 700, 5000, 40_000)
Read = Callable[[bytes], Any]


def weights(n: int) -> np.ndarray:
    return 1.0 + np.arange(n) % 7


def text(n: int) -> list[str]:
    return [f"é{i}" for i in range(n)]


STORED: dict[str, tuple[Read, Callable[[int], Any]]] = {
    "cpc": (CPC.from_bytes, lambda n: CPC(10).update(np.arange(n) - 100)),
    "classic": (ClassicQuantiles.from_bytes, lambda n: ClassicQuantiles(32).update(np.arange(n))),
    "req": (REQ.from_bytes, lambda n: REQ(12).update(np.arange(n))),
    "tdigest": (TDigest.from_bytes, lambda n: TDigest(100).update(np.arange(n))),
    "var_opt_long": (
        lambda image: VarOpt.from_bytes(image, "long"),
        lambda n: VarOpt(20, "long").update(np.arange(n), weight=weights(n)),
    ),
    "var_opt_string": (
        lambda image: VarOpt.from_bytes(image, "string"),
        lambda n: VarOpt(20).update(text(n), weight=weights(n)),
    ),
    "tuple_double": (
        lambda image: Tuple.from_bytes(image, 8),
        lambda n: Tuple(8).update(np.arange(n), value=np.arange(n) % 7 + 0.5),
    ),
    "tuple_integer": (
        lambda image: Tuple.from_bytes(image, 8, "integer", "max"),
        lambda n: Tuple(8, "integer", "max").update(np.arange(n), value=np.arange(n) % 7),
    ),
    "tuple_array": (
        lambda image: Tuple.from_bytes(image, 8, "array"),
        lambda n: Tuple(8, "array", width=2).update(
            np.arange(n), value=np.stack([np.arange(n) % 7, np.ones(n)], axis=1)
        ),
    ),
}
UPDATABLE = {"classic_updatable": STORED["classic"]}


def figures(sketch: Any) -> tuple[float, float]:
    """What the oracle says of a sketch: how much it has seen, and an answer."""
    if isinstance(sketch, CPC):
        return sketch.estimate(), sketch.bounds(2)[1]
    if isinstance(sketch, VarOpt):
        return sketch.n, sketch.subset_sum(lambda item: True).estimate
    if isinstance(sketch, Tuple):
        return sketch.estimate(), sketch.totals()[0].estimate
    return sketch.n, sketch.quantile(1.0) if sketch.n else 0.0


@pytest.fixture(scope="module")
def answers(java_oracle: Callable[[str, list[str]], list[str]]) -> dict[tuple[str, str, int], str]:
    """All questions to Java in one process: what it writes, and what it makes of ours."""
    by_key = {}
    for name, (_, make) in {**STORED, **UPDATABLE}.items():
        for n in SIZES:
            by_key["write", name, n] = f"write {name} {n}"
            if name in STORED:
                by_key["read", name, n] = f"read {name} {make(n).to_bytes().hex()}"
    return dict(zip(by_key, java_oracle("StoredOracle", list(by_key.values()))))


@each("name", {**STORED, **UPDATABLE})
def test_java_wrote_it(answers: Any, name: str) -> None:
    read, make = {**STORED, **UPDATABLE}[name]
    for n in SIZES:
        image = bytes.fromhex(answers["write", name, n])
        theirs, ours = read(image), make(n)
        assert figures(theirs) == pytest.approx(figures(ours))
        if name == "cpc":
            assert ours.to_bytes() == image == theirs.to_bytes()
        more = text(n + 1000)[n:] if "string" in name else np.arange(n, n + 1000)
        grown = figures(theirs)[0] + 1000
        if name in ("cpc", "tuple_double", "tuple_integer", "tuple_array"):
            grown = pytest.approx(figures(ours.copy().update(more))[0], rel=0.05)
        united = theirs | make(0).update(more)
        assert figures(read(united.to_bytes()))[0] == grown
        assert figures(theirs.update(more))[0] == grown


@pytest.mark.parametrize("name", STORED)
def test_java_reads_ours(answers: Any, name: str) -> None:
    _, make = STORED[name]
    for n in SIZES:
        assert figures(make(n)) == pytest.approx(tuple(map(float, answers["read", name, n].split())))
