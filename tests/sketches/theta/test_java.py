"""Theta against datasketches-java, byte for byte, and against bytes that are not one."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.theta import Theta

from ...cases import each

SIZES = [0, 1, 2, 6, 31, 32, 33, 90, 130, 1_000, 40_000]


def image(answer: list[str], which: int = 0) -> bytes:
    return bytes.fromhex(answer[which])


def assert_same(ours: Theta, answer: list[str]) -> None:
    assert ours.to_bytes() == image(answer)
    assert ours.estimate() == pytest.approx(float(answer[1]), rel=1e-14)
    for std_devs in (1, 2, 3):
        bounds = [float(x) for x in answer[2 * std_devs : 2 * std_devs + 2]]
        assert ours.bounds(std_devs) == pytest.approx(bounds, rel=1e-12)


@each("lg_k", [5, 7, 12])
@each("n", SIZES)
def test_images_estimates_and_bounds_are_javas(java: Any, lg_k: int, n: int) -> None:
    ours = Theta(lg_k).update(np.arange(n))
    answer = java.ask("theta", lg_k, 0, n)
    assert_same(ours, answer)
    assert_same(Theta.from_bytes(image(answer), lg_k), answer)
    assert java.ask("theta_read", ours.to_bytes()) == answer


@each("n", SIZES)
def test_sketches_in_mid_stream_and_as_hash_tables_are_read(java: Any, n: int) -> None:
    answer = java.ask("theta_raw", 6, 0, n)
    compact = Theta.from_bytes(image(answer), 12)
    table = Theta.from_bytes(image(answer, 8), 12)
    assert compact.to_bytes() == image(answer)
    assert table.to_bytes() == image(answer)
    assert table.estimate() == pytest.approx(float(answer[1]), rel=1e-14)


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 500, 40_000])
def test_packed_images_are_read(java: Any, n: int) -> None:
    ours = Theta(9).update(np.arange(n))
    packed = bytes.fromhex(java.ask("theta_v4", ours.to_bytes())[0])
    assert packed[1] == 4 and len(packed) < len(ours.to_bytes())
    assert Theta.from_bytes(packed, 9).to_bytes() == ours.to_bytes()


@pytest.mark.parametrize("n", [0, 1, 2, 40, 4_000])
def test_images_of_versions_1_and_2_are_read(java: Any, n: int) -> None:
    ours = Theta(6).update(np.arange(n))
    now = ours.to_bytes()
    longs = now[0]
    hashes = now[8 * longs :]
    theta = now[16:24] if longs == 3 else (2**63 - 1).to_bytes(8, "little")
    count = (len(hashes) // 8).to_bytes(4, "little")
    version_1 = bytes([3, 1, 3, 0, 0, 0, 0, 0]) + count + bytes(4) + theta + hashes
    version_2 = bytes([3, 2, 3, 0, 0, 0, 0xCC, 0x93]) + count + bytes(4) + theta + hashes
    for old in (version_1, version_2):
        assert image(java.ask("theta_read", old)) == now
        assert Theta.from_bytes(old, 6).to_bytes() == now
    if longs == 2:
        shorter = bytes([2, 2, 3, 0, 0, 0, 0xCC, 0x93]) + count + bytes(4) + hashes
        assert Theta.from_bytes(shorter, 6).to_bytes() == image(java.ask("theta_read", shorter)) == now
    if n == 0:
        assert Theta.from_bytes(bytes([1, 2, 3, 0, 0, 0, 0, 0])).to_bytes() == now


RANGES = [(0, 0), (0, 1), (0, 40), (20, 60), (0, 5_000), (3_000, 9_000), (40_000, 90_000), (60_000, 61_000)]


def test_set_operations_and_jaccard_are_javas(java: Any) -> None:
    sketches = [Theta(7).update(np.arange(a, b)) for a, b in RANGES]
    for x in sketches:
        for y in sketches:
            both = x.to_bytes(), y.to_bytes()
            assert_same(x | y, java.ask("theta_union", 7, *both))
            assert_same(x & y, java.ask("theta_intersect", *both))
            assert_same(x - y, java.ask("theta_minus", *both))
            expected = [float(w) for w in java.ask("theta_jaccard", *both)]
            if x is y and x.theta < 1:
                continue  # Java takes equal samples for equal sets
            assert x.jaccard(y) == pytest.approx(expected, rel=1e-11)


@cache
def images() -> dict[str, bytes]:
    """A small image of every shape."""
    result = {f"{n} values": Theta(4).update(np.arange(n)).to_bytes() for n in (0, 1, 2, 9, 60)}
    rest = Theta(4).update(np.arange(3_000)) - Theta(4).update(np.arange(3_000))
    result["nothing left below theta"] = rest.to_bytes()
    sketch = datasketches.update_theta_sketch(5)
    for value in range(60):
        sketch.update(value)
    result["packed"] = sketch.compact().serialize(compress=True)
    return result


def read_or_refuse(data: Any) -> None:
    try:
        sketch = Theta.from_bytes(data)
    except SketchError as refused:
        assert "Theta" in str(refused) and str(len(data)) in str(refused)
        return
    lower, upper = sketch.bounds(3)
    assert 0 <= lower <= sketch.estimate() <= upper < math.inf
    assert Theta.from_bytes(sketch.to_bytes()).to_bytes() == sketch.to_bytes()


@each("name", images)
def test_truncated_at_every_length(name: str, guarded: Any) -> None:
    for end in range(len(images()[name])):
        for place in guarded.both(images()[name][:end]):
            with pytest.raises(SketchError, match="Theta"):
                Theta.from_bytes(place)
    with pytest.raises(SketchError, match="Theta"):
        Theta.from_bytes(images()[name] + b"\0")


@pytest.mark.slow
@each("name", images)
def test_every_flip_of_a_bit_and_of_a_byte(name: str, guarded: Any) -> None:
    flipped = bytearray(images()[name])
    for place in range(len(flipped)):
        kept = flipped[place]
        for flip in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            flipped[place] = kept ^ flip
            read_or_refuse(guarded.at_end(bytes(flipped)))
        flipped[place] = kept


def test_images_mutated_at_random() -> None:
    rng = np.random.default_rng(9)
    kinds = list(images().values())
    for _ in range(4_000):
        mutated = bytearray(kinds[rng.integers(len(kinds))])
        for _ in range(rng.integers(1, 5)):
            mutated[rng.integers(len(mutated))] = rng.integers(256)
        if rng.random() < 0.3:
            del mutated[rng.integers(len(mutated)) :]
        if rng.random() < 0.3:
            mutated += rng.bytes(rng.integers(40))
        read_or_refuse(bytes(mutated))


def test_a_bad_image_is_refused_with_what_is_wrong_in_it() -> None:
    good = bytearray(images()["60 values"])
    for place, value, reported in (
        (1, 5, "serial version"),
        (2, 7, "family"),
        (0, 4, "preamble"),
        (6, 0, "seed"),
        (8, 17, "length"),
        (23, 255, "theta"),
        (31, 127, "not below theta"),
    ):
        kept, good[place] = good[place], value
        with pytest.raises(SketchError, match=reported):
            Theta.from_bytes(bytes(good))
        good[place] = kept
    for data in (
        b"",
        datasketches.hll_sketch(5).serialize_compact(),
        datasketches.kll_ints_sketch().serialize(),
    ):
        with pytest.raises(SketchError, match="Theta"):
            Theta.from_bytes(data)
