"""Was this value there in the last hour, or in any shorter span? A Bloom filter that forgets.

A bit that is set can't be cleared, so a Bloom filter over an endless stream fills up. Here a cell of one
byte stands in place of each bit and holds when it was last set, in steps of 1/128 of the window: a time-out
Bloom filter, with blocks of 256 cells. `bench/forgetting.py` measured it beside the usual way, a ring of
filters for the window's parts, of which the oldest is cleared. With 100,000 values in a window, eight parts,
and at most 1 % of others to be found:

- The ring takes 2.3 bytes per value if each value comes once and all come evenly. If they come in a burst it
  takes 13.8, as one part must have room for all of them, and 11.9 if the same ones come in every part, as
  each part holds them again. Cells take 10.5 bytes however values come.
- The ring remembers for up to 1/8 of the window too long, cells for 1/128. So cells can also answer for
  shorter spans and say when a value was last seen.
- A look-up takes 5 ns against the ring's 49, as it touches one block instead of nine. To add a value takes
  16 ns, twice a Bloom filter's time.

A cuckoo filter of fingerprints with times would be smaller still, but what it holds depends on the order of
values, so that merging isn't exact, and once it is full it must refuse values or forget some too early. Cells
merge by their maximum: no order of rows or merges changes a byte.
"""

from .groups import SlidingBloomGroups
from .sketch import SlidingBloom

__all__ = ["SlidingBloom", "SlidingBloomGroups"]
