"""A zone's clock that is never set back, and when it first showed a time: how local days begin.

Clocks are put forward and back, and zones have skipped whole days. Windows need a clock that only advances:
while the zone's clock repeats an hour, this one stands still. So each time on it is reached at one moment. A
skipped time is reached when the clock jumps over it, and a repeated one when it first occurs. Java's
``atStartOfDay`` begins days there as well.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...sketches.core.lazy import np
from .durations import CalendarLength
from .window import YEAR_1, YEAR_10000

_DAY_US = 86_400_000_000
_YEAR_US = 366 * _DAY_US
_CHUNK = 48
"""Offsets are looked up for 2^48 microseconds at a time, about nine years."""
_FIRST, _LAST = YEAR_1 + 2 * _DAY_US, YEAR_10000 - 2 * _DAY_US
"""The range of times whose offsets Python knows in all zones; other times use the offsets at its ends."""
_NEVER = 2**62


class _Offsets(NamedTuple):
    """A zone's offsets from UTC, with a column entry for each interval between two changes, in microseconds.

    An interval begins at `starts`. `before` is the latest time that the zone's clock showed before it, and
    `reached` the latest by its end.
    """

    starts: np.ndarray
    offsets: np.ndarray
    before: np.ndarray
    reached: np.ndarray


def check_zone(zone: object) -> str:
    """The name of a time zone. Raises `ValueError` for anything else.

    >>> check_zone("Europe/Helsinki")
    'Europe/Helsinki'
    """
    try:
        if not isinstance(zone, str) or zone == "localtime":
            raise ValueError
        return ZoneInfo(zone).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f'zone must be the name of a time zone, such as "Europe/Helsinki" or "UTC", got {zone!r}'
        ) from None


def shown(times_us: np.ndarray, zone: str) -> np.ndarray:
    """The latest time that a zone's clock has shown by each time, as microseconds since 1970 there.

    >>> hour = 3_600_000_000
    >>> back = 1_792_890_000_000_000  # at 01:00 UTC on the last Sunday of October
    >>> autumn = np.array([back + n * hour // 2 for n in (-2, -1, 0, 1, 2)])
    >>> (shown(autumn, "Europe/Helsinki") / hour % 24).round(3).tolist()
    [3.0, 3.5, 4.0, 4.0, 4.0]
    """
    return _by_chunk(_shown, times_us, zone)


def first_shown(clock_us: np.ndarray, zone: str) -> np.ndarray:
    """The first time at which a zone's clock showed each of these times or a later one."""
    return _by_chunk(_first_shown, clock_us, zone)


def before(time_us: int, length: CalendarLength, zone: str | None = None) -> int:
    """When a zone's clock, or UTC, first showed the time `length` before what it shows at `time_us`.

    >>> midnight = 1_774_818_000_000_000  # of 2026-03-30 in Helsinki, after a day of 23 hours
    >>> (midnight - before(midnight, CalendarLength(us=_DAY_US), "Europe/Helsinki")) // 3_600_000_000
    23
    """
    times = np.array([time_us])
    clock = times if zone is None else shown(times, zone)
    if length.months:
        first = clock.view("datetime64[us]").astype("datetime64[M]")
        begin = first - np.timedelta64(length.months, "M")
        longest = (begin + 1).astype("datetime64[D]") - begin.astype("datetime64[D]")
        within = clock.view("datetime64[us]") - first.astype("datetime64[us]")
        # In a month with 30 days, the 31st is its last day.
        more = np.maximum(within.astype("timedelta64[D]") - (longest - 1), np.timedelta64(0, "D"))
        clock = (begin.astype("datetime64[us]") + within - more).view(np.int64)
    clock = clock - np.int64(length.us)
    return int((clock if zone is None else first_shown(clock, zone))[0])


def _shown(times: np.ndarray, known: _Offsets, low: int, high: int) -> np.ndarray:
    first, last = (int(np.searchsorted(known.starts, time, "right")) - 1 for time in (low, high))
    if first == last:
        return np.maximum(times + known.offsets[first], known.before[first])
    at = np.searchsorted(known.starts, times, "right") - 1
    return np.maximum(times + known.offsets[at], known.before[at])


def _first_shown(clock: np.ndarray, known: _Offsets, low: int, high: int) -> np.ndarray:
    first, last = (int(np.searchsorted(known.reached, time)) for time in (low, high))
    at = first if first == last else np.searchsorted(known.reached, clock)
    return np.maximum(known.starts[at], clock - known.offsets[at])


def _by_chunk(
    function: Callable[[np.ndarray, _Offsets, int, int], np.ndarray], times: np.ndarray, zone: str
) -> np.ndarray:
    """Apply a function to times, with the offsets that are valid around them."""
    if not len(times):
        return times
    low, high = int(times.min()), int(times.max())
    if low < YEAR_1 - _YEAR_US or high > YEAR_10000 + _YEAR_US:
        times = np.clip(times, YEAR_1 - _YEAR_US, YEAR_10000 + _YEAR_US)
        low, high = int(times.min()), int(times.max())
    if low >> _CHUNK == high >> _CHUNK:
        return function(times, _offsets(zone, low >> _CHUNK), low, high)
    chunks = times >> np.int64(_CHUNK)
    result = np.empty_like(times)
    for chunk in np.unique(chunks).tolist():
        own = chunks == chunk
        some = times[own]
        result[own] = function(some, _offsets(zone, chunk), int(some.min()), int(some.max()))
    return result


@lru_cache(maxsize=512)
def _offsets(zone: str, chunk: int) -> _Offsets:
    """The offsets of a zone from a year before a chunk of time until a year after it."""
    info = ZoneInfo(zone)
    first, last = (chunk << _CHUNK) - _YEAR_US, ((chunk + 1) << _CHUNK) + _YEAR_US
    starts, offsets = [-_NEVER], [_offset_us(info, first)]
    # No zone ever changed its clock twice within three days.
    for time in range(first, last, 3 * _DAY_US):
        offset = _offset_us(info, time + 3 * _DAY_US)
        if offset != offsets[-1]:
            starts.append(_change(info, time, time + 3 * _DAY_US))
            offsets.append(offset)
    before, reached = [-_NEVER], []
    for end, offset in zip(starts[1:], offsets):
        reached.append(max(before[-1], end + offset - 1))
        before.append(reached[-1])
    reached.append(_NEVER)
    return _Offsets(*(np.array(column, np.int64) for column in (starts, offsets, before, reached)))


def _change(info: ZoneInfo, low: int, high: int) -> int:
    """When a zone's offset changed, between two times with different offsets; in whole seconds."""
    old, low, high = _offset_us(info, low), low // 1_000_000, high // 1_000_000
    while high - low > 1:
        middle = (low + high) // 2
        if _offset_us(info, middle * 1_000_000) == old:
            low = middle
        else:
            high = middle
    return high * 1_000_000


def _offset_us(info: ZoneInfo, time_us: int) -> int:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=min(max(time_us, _FIRST), _LAST))
    offset = at.astimezone(info).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)
