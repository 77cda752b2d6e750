"""Forged images: changed, and their checksum made right again. They are refused, or sound samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sampling.bernoulli import BernoulliSample
from streamgauge.sampling.core.images import HEAD
from streamgauge.sampling.decayed import DecayedReservoir
from streamgauge.sampling.hash_sample import HashSample
from streamgauge.sampling.reservoir import Reservoir, ReservoirGroups
from streamgauge.sampling.sliding import SlidingWindowSample
from streamgauge.sampling.stratified import StratifiedReservoir
from streamgauge.sampling.weighted import WeightedReservoir
from streamgauge.sketches.core.hashing.hash import SEED, hash_bytes
from streamgauge.sketches.core.protocol import SketchError

ITEMS: dict[str, Any] = {
    "numbers": pa.array(np.arange(40)),
    "doubles": pa.array(np.arange(40) / 3),
    "texts": pa.array([str(i) * (i % 4) for i in range(40)]),
    "binary": pa.array([bytes([i]) * (i % 3) for i in range(40)]),
    "rows": pa.array([{"a": i, "b": None if i % 3 else str(i)} for i in range(40)]),
}
FAMILIES: dict[str, Any] = {
    "Reservoir": lambda: (Reservoir(5, seed=1), {}),
    "WeightedReservoir": lambda: (WeightedReservoir(5, seed=1), {"weight": 2.0}),
    "DecayedReservoir": lambda: (DecayedReservoir(5, 60.0), {"time": np.arange(40) * 10**6}),
    "SlidingWindowSample": lambda: (SlidingWindowSample(5, 60.0), {"time": np.arange(40) * 10**6}),
    "StratifiedReservoir": lambda: (StratifiedReservoir(2, seed=1), {"key": np.arange(40) % 3}),
    "BernoulliSample": lambda: (BernoulliSample(0.3, seed=1), {}),
    "HashSample": lambda: (HashSample(0.5), {"key": np.arange(40) % 9}),
}


def sealed(image: bytes) -> bytes:
    """The image with the checksum its bytes should have."""
    if len(image) < HEAD.itemsize:
        return image
    data = np.frombuffer(image, np.uint8).copy()
    data[32:40] = 0
    check = np.empty(1, np.uint64)
    hash_bytes(np.array([0, len(data)]), data, SEED, check, np.empty_like(check))
    data[32:40] = check.view(np.uint8)
    return data.tobytes()


def forge(image: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(image)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, min(len(changed), 60) if rng.random() < 0.5 else len(changed)))
        how = rng.integers(0, 4)
        if how == 0:
            changed[at] ^= 1 << int(rng.integers(0, 8))
        elif how == 1:
            changed[at : at + 8] = rng.choice([0, 1, 0x7F, 0x80, 0xFF], 8).astype(np.uint8).tobytes()
        elif how == 2:
            del changed[at : at + int(rng.integers(1, 20))]
        else:
            changed[at:at] = changed[at : at + int(rng.integers(1, 20))]
        if not changed:
            return b""
    return sealed(bytes(changed))


def use(family: Any, image: bytes, items: Any, inputs: dict[str, Any]) -> bool:
    """Whether the image was read; whatever a sample can do must then work."""
    try:
        sample = type(family).from_bytes(image)
    except SketchError:
        return False
    sample.answer()
    repr(sample)
    again = type(family).from_bytes(sample.to_bytes())
    assert again == sample
    try:
        sample.update(items, **inputs)
        again.merge(sample)
    except SketchError:
        pass  # another type of items, or too many rows, which it says
    assert again.n >= 0
    again.to_bytes()
    return True


def forgeries(count: int) -> None:
    read = dict.fromkeys(FAMILIES, 0)
    cases = [(name, items) for name in FAMILIES for items in ITEMS.values()]
    for number, (name, items) in enumerate(cases):
        family, inputs = FAMILIES[name]()
        image = family.update(items, **inputs).to_bytes()
        assert sealed(image) == image
        assert type(family).from_bytes(image) == family
        rng = np.random.default_rng(number)
        for _ in range(count // len(cases)):
            read[name] += use(family, forge(image, rng), items, inputs)
    assert all(read.values()), f"of some family no forgery was sound enough to be read: {read}"


@pytest.mark.slow
def test_forged_images() -> None:
    forgeries(2500)


@pytest.mark.soak
def test_many_forged_images() -> None:
    forgeries(100_000)


def test_more_rows_than_can_be_counted_are_refused() -> None:
    image = bytearray(Reservoir(3).update(range(10)).to_bytes())
    image[16:24] = (3 << 61).to_bytes(8, "little")
    full = Reservoir.from_bytes(sealed(bytes(image)))
    with pytest.raises(SketchError, match="rows"):
        full.merge(full)
    groups = ReservoirGroups(1, k=3)
    with pytest.raises(SketchError, match="rows"):
        groups.merge([0, 0], pa.array([sealed(bytes(image))] * 2))
    assert groups.n[0] == 0 and full.n == 3 << 61
