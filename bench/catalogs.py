"""Alerts beside an extract of 10 million objects: how long reading and a lookup take, and how much memory.

The objects lie all over the sky, with names of 23 letters, a type and a redshift. Each file is read by a
process of its own, whose largest resident size is reported, with Python, NumPy, Polars and Arrow in it. Cones
have a radius of 30″; the peer looks at all positions for each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .measure import line

ROWS = int(os.environ.get("ROWS", 10_000_000))
"""Fewer only to try the script."""
CONES = 10_000
_PART = 1_000_000

_READ = """
import re, sys, time
import numpy as np
from streamgauge.apps.supernova.catalogs.extract import extract
begin = time.process_time()
read = extract(sys.argv[1])
loaded = time.process_time() - begin
# Not getrusage's: that of a process that was forked begins with its parent's.
memory = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
dice = np.random.default_rng(2)
cones = int(sys.argv[2])
ra, dec = dice.uniform(0, 360, cones), np.degrees(np.arcsin(dice.uniform(-1, 1, cones)))
begin = time.process_time()
pairs = read.zones.within(ra, dec, 30.0)
ours = time.process_time() - begin
zones, few = read.zones, 3
right = np.mod(zones.keys, 360)
begin = time.process_time()
for at in range(few):
    east = (right - ra[at]) * np.cos(np.radians(dec[at]))
    near = np.flatnonzero(np.hypot(zones.declinations - dec[at], east) * 3600 <= 30)
peer = time.process_time() - begin
print(len(read), loaded, memory, ours / cones, peer / few, len(pairs[0]))
"""


def write_extracts(folder: Path) -> list[Path]:
    """The same objects as CSV and as Parquet."""
    dice = np.random.default_rng(1)
    text, table = folder / "simbad.csv", folder / "simbad.parquet"
    parts = []
    with text.open("w") as file:
        for first in range(0, ROWS, _PART):
            count = min(_PART, ROWS - first)
            part = pl.DataFrame(
                {
                    "main_id": [f"2MASS J{at:017}" for at in range(first, first + count)],
                    "ra": dice.uniform(0, 360, count),
                    "dec": np.degrees(np.arcsin(dice.uniform(-1, 1, count))),
                    "otype": dice.choice(["RR*", "EB*", "AGN", "G"], count),
                    "rvz_redshift": dice.uniform(0, 1, count).astype(np.float32),
                }
            )
            file.write(part.write_csv(include_header=first == 0))
            parts.append(part)
    pl.concat(parts).write_parquet(table)
    return [text, table]


def main() -> list[dict[str, Any]]:
    """A line for each file, and one for the cones."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for path in write_extracts(Path(folder)):
            command = [sys.executable, "-c", _READ, str(path), str(CONES)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            count, loaded, memory, ours, peer, _ = (float(value) for value in done.stdout.split())
            size = path.stat().st_size / 2**20
            lines.append(
                line(
                    f"{count:,.0f} objects read from {path.suffix[1:]}",
                    f"{loaded:.1f} s, at most {memory:,.0f} MB",
                    f"a file of {size:,.0f} MB",
                    f"{memory:,.0f} MB",
                    "below 1,000 MB",
                )
            )
            lines.append(
                line(
                    f"a cone of 30″ among them ({path.suffix[1:]})",
                    f"{ours * 1e6:.1f} µs",
                    f"{peer * 1e3:.0f} ms, all looked at",
                    peer / ours,
                    "report",
                )
            )
    return lines


if __name__ == "__main__":
    for row in main():
        print(row)
