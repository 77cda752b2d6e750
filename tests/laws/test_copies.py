"""Bytes, pickles and copies give an equal sketch that goes its own way; threads don't disturb each other."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

from .families import CASES, IDS, Family, sized
from .family import each_family
from .streams import fresh

SIZES = (0, 1, 5, 100, 5000)


@each_family(("family", "kind", "size"), sized(SIZES), ids=str)
def test_bytes_pickles_and_copies_are_equal(family: Family, kind: str, size: int) -> None:
    sketch = family.feed(family.new(kind), fresh(kind, 1, size))
    image = sketch.to_bytes()
    assert isinstance(image, bytes) and bytes(sketch) == image
    copies = [
        family.read(image, kind),
        pickle.loads(pickle.dumps(sketch)),
        pickle.loads(pickle.dumps(sketch, protocol=2)),
        sketch.copy(),
        copy.copy(sketch),
        copy.deepcopy(sketch),
    ]
    for other in copies:
        assert type(other) is type(sketch)
        assert other.to_bytes() == image
        assert str(other.answer()) == str(sketch.answer())
        family.feed(other, fresh(kind, 2, 300), size)
    assert sketch.to_bytes() == image, "a copy and its original share something"
    whole = family.feed(family.feed(family.new(kind), fresh(kind, 1, size)), fresh(kind, 2, 300), size)
    if family.cut and family.resumes:
        assert all(other.to_bytes() == whole.to_bytes() for other in copies)


@each_family(("family", "kind"), CASES, ids=IDS)
def test_two_threads_update_two_sketches(family: Family, kind: str) -> None:
    batches = [fresh(kind, seed, 4000) for seed in range(6)]

    def fill(sketch: Any) -> Any:
        for i, batch in enumerate(batches):
            family.feed(sketch, batch, 4000 * i)
        return sketch

    alone = [family.outcome(fill(family.new(kind, seed))) for seed in (1, 2, 3)]
    sketches = [family.new(kind, seed) for seed in (1, 2, 3)]
    threads = [threading.Thread(target=fill, args=[sketch]) for sketch in sketches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(map(family.outcome, sketches)) == alone
