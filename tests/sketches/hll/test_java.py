"""HLL against datasketches-java: images of every form and type read and written, unions in every order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from streamgauge.sketches.hll import HLL

from ...cases import each

SIZES = [0, 1, 7, 8, 25, 96, 97, 384, 385, 3_000, 200_000]


def assert_within_javas(sketch: HLL, std_devs: int, theirs: list[str]) -> None:
    """Ours are whole numbers, rounded outwards, and of HIP in its first values much closer than Java's."""
    lower, upper = sketch.bounds(std_devs)
    javas_lower, javas_upper = map(float, theirs)
    assert javas_lower - 1 <= lower <= sketch.estimate() <= upper <= javas_upper + 1


def image(answer: list[str], which: int = 0) -> bytes:
    return bytes.fromhex(answer[which])


@each("lg_k", [4, 7, 8, 10, 12, 16])
@each("n", SIZES)
def test_every_image_java_writes_is_read(java: Any, lg_k: int, n: int) -> None:
    ours = HLL(lg_k).update(np.arange(n))
    for kind in ("HLL_4", "HLL_6", "HLL_8"):
        answer = java.ask("hll", lg_k, kind, 0, n)
        for which in (0, 1):
            read = HLL.from_bytes(image(answer, which))
            expected = java.ask("hll_as", "HLL_8", image(answer, which))
            assert read.to_bytes() == image(expected)
            assert read.estimate() == pytest.approx(float(answer[2]), rel=1e-13)
            assert_within_javas(read, 1, answer[4:6])
            assert_within_javas(read, 3, answer[8:10])
        if kind == "HLL_8":
            assert ours.to_bytes() == image(answer)


@each("lg_k", [4, 8, 12, 16])
@each("n", SIZES)
def test_hll_4_is_written_as_java_converts_it(java: Any, lg_k: int, n: int) -> None:
    ours = HLL(lg_k).update(np.arange(n))
    converted = java.ask("hll_as", "HLL_4", ours.to_bytes())
    assert ours.to_bytes("hll_4") == image(converted, 1)


def test_many_exceptions_of_hll_4(java: Any) -> None:
    """Registers 15 and more above the least: a few of them made by hand, since chance makes so few."""
    rng = np.random.default_rng(2)
    for lg_k, high in ((6, 9), (10, 60), (12, 700)):
        made = bytearray(HLL(lg_k).update(np.arange(40 << lg_k)).to_bytes())
        slots = rng.choice(1 << lg_k, high, replace=False)
        for slot in slots:
            made[40 + slot] = int(rng.integers(20, 32))
        made[5] = 32 + 16  # the sums are to be rebuilt, out of order
        ours = HLL.from_bytes(bytes(made))
        converted = java.ask("hll_as", "HLL_4", ours.to_bytes())
        assert ours.to_bytes("hll_4") == image(converted, 1)
        updatable = java.ask("hll_as", "HLL_4", ours.to_bytes("hll_4"))
        for which in (0, 1):
            assert HLL.from_bytes(image(updatable, which)).to_bytes()[40:] == ours.to_bytes()[40:]


@each("n", SIZES)
def test_each_goes_on_where_the_other_stopped(java: Any, n: int) -> None:
    start = HLL(11).update(np.arange(n))
    java_went_on = java.ask("hll_go_on", start.to_bytes(), n, 5_000)
    read = HLL.from_bytes(image(java.ask("hll", 11, "HLL_8", 0, n)))
    assert read.update(np.arange(n, n + 5_000)).to_bytes() == image(java_went_on)


@each("lg_ks", [(12, 12, 12), (12, 10, 12), (7, 11, 9)])
@each("sizes", [(30_000, 30_000, 30_000), (5, 20_000, 90), (6, 60, 300), (0, 700, 3), (50, 60, 90)])
def test_unions_are_javas_in_every_order(java: Any, lg_ks: tuple, sizes: tuple) -> None:
    starts = np.cumsum([0, *sizes])
    parts = [HLL(lg).update(np.arange(a, a + n)) for lg, a, n in zip(lg_ks, starts, sizes)]
    for order in itertools.permutations(parts):
        answer = java.ask("hll_union", min(lg_ks), *(part.to_bytes() for part in order))
        theirs = bytearray(image(answer))
        if theirs[0] == 10 and theirs[5] & 16:
            theirs[8:16] = bytes(8)  # Java leaves rests of the HIP sum that mean nothing any more
        union = HLL(min(lg_ks))
        for part in order:
            union.merge(part)
        assert union.to_bytes() == bytes(theirs)
        assert union.estimate() == pytest.approx(float(answer[2]), rel=1e-12)
        if theirs[0] == 10 and theirs[5] & 16:
            assert union.bounds(2) == pytest.approx([float(x) for x in answer[6:8]], rel=1e-12)
        else:
            assert_within_javas(union, 2, answer[6:8])


def test_a_union_with_registers_above_31_has_javas_sums(java: Any) -> None:
    made = bytearray(HLL(8).update(np.arange(10_000)).to_bytes())
    made[40:44] = bytes([33, 45, 63, 50])
    made[5] = 32
    first = HLL.from_bytes(bytes(made))
    second = HLL(8).update(np.arange(5_000, 20_000))
    answer = java.ask("hll_union", 8, first.to_bytes(), second.to_bytes())
    assert (first | second).to_bytes() == image(answer)
    assert (first | second).estimate() == pytest.approx(float(answer[2]), rel=1e-12)
    grown = (first | second).copy()
    assert HLL.from_bytes(grown.to_bytes()).to_bytes() == grown.to_bytes()
