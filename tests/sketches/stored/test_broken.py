"""Broken images of the families for stored sketches, and of REQ and t-digest: refused, and no crash."""

from __future__ import annotations

import subprocess
import sys

import pytest

BROKEN = """
import numpy as np
from streamgauge.sketches.stored.classic_quantiles import ClassicQuantiles
from streamgauge.sketches.stored.cpc import CPC
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.req import REQ
from streamgauge.sketches.tdigest import TDigest
from streamgauge.sketches.stored.var_opt import VarOpt

MAKE = {
    "CPC": lambda: CPC(4),
    "ClassicQuantiles": lambda: ClassicQuantiles(4),
    "REQ": lambda: REQ(4),
    "TDigest": lambda: TDigest(10),
    "VarOpt": lambda: VarOpt(5, "long"),
}
for name, make in MAKE.items():
    for n in (0, 1, 5, 12, 40, 300):
        whole = np.arange(n) * 7919 % 1009
        sketch = make().update(whole, weight=1.0 + whole % 7) if name == "VarOpt" else make().update(whole)
        image = sketch.to_bytes()
        more = {"kind": "long"} if name == "VarOpt" else {}
        broken = [image[:length] for length in range(len(image))] + [image + b"\\0"]
        for place in range(len(image)):
            for bit in range(8):
                flipped = bytearray(image)
                flipped[place] ^= 1 << bit
                broken.append(bytes(flipped))
        refused = 0
        for data in broken:
            try:
                found = type(sketch).from_bytes(data, **more)
            except SketchError:
                refused += 1
                continue
            repr(found), found.answer()
            try:
                found.update(np.arange(50)).merge(found)
            except SketchError:
                continue  # it counts too much to be doubled, and says so
            image_of_it = found.to_bytes()
            assert type(sketch).from_bytes(image_of_it, **more).to_bytes() == image_of_it, (name, n)
        print(name, n, refused, len(image), len(broken))
"""


@pytest.mark.slow
def test_every_flipped_bit_and_every_truncation() -> None:
    # In a process of its own: what slips through could end it.
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    output = [line.split() for line in done.stdout.splitlines()]
    assert len(output) == 30
    for name, n, refused, size, broken in output:
        # All truncations, and any bit of the first three bytes.
        assert int(size) + 20 <= int(refused) <= int(broken), (name, n)
