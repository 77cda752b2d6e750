"""Whether a value occurred in the last hour, or in any shorter span: a Bloom filter that forgets.

A bit can't be cleared once it is set, so a Bloom filter over an endless stream fills up. Here each bit is
replaced by a cell of one byte that stores when it was last set, in steps of 1/128 of the window: a time-out
Bloom filter, with blocks of 256 cells. `bench/forgetting.py` compares it with the usual design, a ring of
filters for the window's parts whose oldest filter is cleared. With 100,000 values in a window, eight parts,
and at most 1 % false positives:

- The ring takes 2.3 bytes per value if each value occurs once and all arrive evenly. If they arrive in a
  burst it takes 13.8, because one part must have room for all of them, and 11.9 if the same values occur in
  every part, because each part stores them again. Cells take 10.5 bytes in every case.
- The ring remembers values for up to 1/8 of the window too long, cells for 1/128. Cells can therefore also
  answer for shorter spans and report when a value was last seen.
- A look-up takes 5 ns, compared with the ring's 49, because it touches one block instead of nine. Adding a
  value takes 16 ns, twice a Bloom filter's time.

A cuckoo filter of fingerprints with times would be even smaller, but its contents depend on the order of
values, so merging isn't exact, and once it is full it must refuse values or forget some too early. Cells are
merged by their maximum, so no order of rows or merges changes a byte.
"""

from .groups import SlidingBloomGroups
from .sketch import SlidingBloom

__all__ = ["SlidingBloom", "SlidingBloomGroups"]
