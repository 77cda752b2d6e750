"""Bytes that were changed raise the documented error or give a valid sketch: never a crash or nonsense."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError

from .families import CASES, WHOLE, Family, sized
from .family import each_family
from .streams import fresh

SMALL = {"HLL": {"lg_k": 4}, "KLL": {"k": 8}, "FrequentItems": {"max_size": 8}, "Bloom": {"capacity": 20}}
SMALL |= {"CountMin": {"eps": 0.5, "confidence": 0.5}, "CPC": {"lg_k": 4}, "Tuple": {"lg_k": 4}}
SMALL |= {"REQ": {"k": 4}, "ClassicQuantiles": {"k": 2}, "TDigest": {"k": 10}}


def small(family: Family, kind: str, size: int) -> bytes:
    """A small image, of a sketch that saw so many values."""
    params = family._params(kind, 1, None) | SMALL.get(family.name, {"k": 3} if "k" in family.params else {})
    sketch = family.single(**params)
    return bytes(family.feed(sketch, fresh(kind, 3, size)))


def survives(family: Family, kind: str, image: bytes) -> bool:
    """Whether the bytes were read; all that a sketch can do must then work."""
    try:
        sketch = family.read(image, kind)
    except SketchError as error:
        assert len(str(error)) > 15
        return False
    sketch.answer()
    repr(sketch)
    again = family.read(sketch.to_bytes(), kind)
    assert again.to_bytes() == sketch.to_bytes()
    try:
        family.feed(sketch, fresh(kind, 1, 30))
        again.merge(sketch)
    except (SketchError, OverflowError):
        pass  # of another type or parameter than this column's, or too full for more, and says so
    again.to_bytes()
    return True


def merged_too(family: Family, kind: str, images: list[bytes]) -> None:
    """Many groups refuse, or take, each of the images as well."""
    for image in images:
        groups = family.many(2, kind)
        try:
            groups.merge(np.array([1]), pa.array([image], pa.binary()))
        except SketchError:
            continue
        groups[1].answer()
        groups.to_arrow()


@each_family(("family", "kind", "size"), sized([0, 2, 5, 60]), ids=str)
def test_every_truncation(family: Family, kind: str, size: int) -> None:
    image = small(family, kind, size)
    every = len(image) < 400 or size == 2
    ends = range(len(image)) if every else [*range(200), *range(200, len(image), 13)]
    cut = [image[:end] for end in ends]
    assert not any(survives(family, kind, short) for short in cut if len(short) < 8)
    for short in cut:
        survives(family, kind, short)
    merged_too(family, kind, cut[::5])


@each_family(("family", "kind", "size"), sized([0, 2, 5, 60]), ids=str)
def test_every_flipped_byte(family: Family, kind: str, size: int) -> None:
    image = small(family, kind, size)
    assert survives(family, kind, image)
    flipped = []
    step = 1 if size == 2 or WHOLE else 3 if len(image) < 400 else 7  # odd: each way to flip has its turn
    for at in range(0, len(image), step):
        changed = bytearray(image)
        changed[at] ^= (1, 0x80, 0xFF, 0x10)[at % 4]
        flipped.append(bytes(changed))
        survives(family, kind, flipped[-1])
    merged_too(family, kind, flipped[::5])


def mutations(image: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """An image with a few bytes changed, moved, doubled, lost, or copied from another image."""
    changed = bytearray(image)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, max(len(changed), 1)))
        kind = rng.integers(0, 7)
        if kind <= 1 and changed:
            changed[at] = int(rng.integers(0, 256))
        elif kind == 2:
            changed[at : at + 4] = bytes(rng.choice([0, 0xFF, 0x7F, 1], 4).astype(np.uint8))
        elif kind == 3:
            changed[at:at] = changed[: int(rng.integers(0, 20))]
        elif kind == 4:
            del changed[at : at + int(rng.integers(1, 9))]
        elif kind == 5:
            other = others[int(rng.integers(0, len(others)))]
            changed[at : at + 8] = other[at : at + 8]
        else:
            changed.extend(bytes(rng.integers(0, 256, int(rng.integers(1, 9)), np.uint8)))
    return bytes(changed)


def fuzz(images: int) -> None:
    """So many mutated images over all families, seeds fixed: read as one sketch, and merged into groups."""
    for number, (family, kind) in enumerate(CASES):
        rng = np.random.default_rng(number)
        originals = [small(family, kind, size) for size in (0, 1, 3, 9, 60, 400)]
        for _ in range(-(-images // len(CASES))):
            original = originals[int(rng.integers(0, len(originals)))]
            image = mutations(original, originals, rng)
            survives(family, kind, image)
            merged_too(family, kind, [image])


def test_mutated_images() -> None:
    fuzz(3000)


@pytest.mark.soak
def test_a_hundred_thousand_mutated_images() -> None:
    fuzz(100_000)
