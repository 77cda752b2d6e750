"""Bytes that are not an HLL sketch: refused by name, or read as a valid sketch; never a crash."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.hll import HLL, HLLGroups

from ...cases import each


@cache
def images() -> dict[str, bytes]:
    """A small image of every form and type, compact and updatable."""
    by_key = {}
    for name, lg_k, n in (("empty", 4, 0), ("list", 9, 5), ("set", 9, 30), ("registers", 4, 40)):
        for kind in ("HLL_4", "HLL_6", "HLL_8"):
            sketch = datasketches.hll_sketch(lg_k, getattr(datasketches.tgt_hll_type, kind))
            for value in range(n):
                sketch.update(value)
            by_key[f"{name} {kind} compact"] = sketch.serialize_compact()
            by_key[f"{name} {kind} updatable"] = sketch.serialize_updatable()
    merged = HLL(4).update(np.arange(60)) | HLL(4).update(np.arange(50, 90))
    return by_key | {"merged": merged.to_bytes(), "merged HLL_4": merged.to_bytes("hll_4")}


def read_or_refuse(data: Any) -> None:
    try:
        sketch = HLL.from_bytes(data)
    except SketchError as refused:
        assert "HLL" in str(refused) and str(len(data)) in str(refused)
        return
    lower, upper = sketch.bounds(3)
    assert 0 <= lower <= sketch.estimate() <= upper < math.inf
    assert HLL.from_bytes(sketch.to_bytes()).to_bytes() == sketch.to_bytes()
    sketch.update(np.arange(200))
    assert sketch.estimate() > 0


@each("name", images)
def test_truncated_at_every_length(name: str, guarded: Any) -> None:
    image = images()[name]
    for end in range(len(image)):
        for place in guarded.both(image[:end]):
            with pytest.raises(SketchError, match="HLL"):
                HLL.from_bytes(place)
    with pytest.raises(SketchError, match="HLL"):
        HLL.from_bytes(image + b"\0")


def read_flipped(image: bytearray, guarded: Any, bits: int) -> None:
    """Read it with so many bits of each byte flipped, each by itself, and with the whole byte flipped."""
    for place in range(len(image)):
        kept = image[place]
        for flip in (*(1 << (place + bit) % 8 for bit in range(bits)), 255):
            image[place] = kept ^ flip
            read_or_refuse(guarded.at_end(bytes(image)))
        image[place] = kept


@pytest.mark.slow
@each("name", images)
def test_a_flipped_bit_and_a_flipped_byte_anywhere(name: str, guarded: Any) -> None:
    """Another bit of each byte than of the byte before it; `make soak` flips every bit."""
    read_flipped(bytearray(images()[name]), guarded, bits=1)


@pytest.mark.soak
@each("name", images)
def test_every_flip_of_a_bit_and_of_a_byte(name: str, guarded: Any) -> None:
    read_flipped(bytearray(images()[name]), guarded, bits=8)


@pytest.mark.parametrize("name", ["registers HLL_8 updatable", "registers HLL_4 compact", "merged"])
def test_a_register_can_not_change_unseen(name: str) -> None:
    image = bytearray(images()[name])
    for place in range(40, len(image)):
        image[place] ^= 1
        with pytest.raises(SketchError, match=r"registers|exceptions"):
            HLL.from_bytes(bytes(image))
        image[place] ^= 1


def test_images_mutated_at_random() -> None:
    rng = np.random.default_rng(9)
    kinds = list(images().values())
    for _ in range(4_000):
        image = bytearray(kinds[rng.integers(len(kinds))])
        for _ in range(rng.integers(1, 5)):
            image[rng.integers(len(image))] = rng.integers(256)
        if rng.random() < 0.3:
            del image[rng.integers(len(image)) :]
        if rng.random() < 0.3:
            image += rng.bytes(rng.integers(40))
        read_or_refuse(bytes(image))


def test_images_of_other_families_are_refused() -> None:
    theta = datasketches.update_theta_sketch(9)
    theta.update(1)
    for data in (
        b"",
        b"HLL",
        theta.compact().serialize(),
        datasketches.kll_ints_sketch().serialize(),
        bytes(64),
    ):
        with pytest.raises(SketchError, match="HLL"):
            HLL.from_bytes(data)


def test_the_row_of_a_bad_image_is_named_and_no_row_is_merged() -> None:
    good = HLL().update(np.arange(5_000)).to_bytes()
    groups = HLLGroups(2)
    with pytest.raises(SketchError, match="row 3 "):
        groups.merge([0, 1, 0, 1], pa.array([good, None, good, good[:-1]], pa.binary()))
    assert groups[0].estimate() == groups[1].estimate() == 0


def test_a_bad_image_is_refused_with_what_is_wrong_in_it() -> None:
    registers, coupons = bytearray(images()["merged"]), bytearray(images()["list HLL_8 updatable"])
    for image, place, value, reported in (
        (registers, 1, 2, "serial version"),
        (registers, 3, 22, "lg_k"),
        (registers, 7, 3, "mode"),
        (registers, 0, 2, "preamble"),
        (registers, 45, 64, "register is impossible"),
        (coupons, 6, 6, "coupon count"),
        (coupons, 11, 0, "coupon is impossible"),
    ):
        kept, image[place] = image[place], value
        with pytest.raises(SketchError, match=reported):
            HLL.from_bytes(bytes(image))
        image[place] = kept
