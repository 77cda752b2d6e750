"""A cache keyed by the versions of the windows a result came from, so that no entry can be out of date."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class ResultCache:
    """Results of bounded size; the least recently used one is dropped first.

    If threads request the same result at once, the first computes it and the others wait. `size` returns the
    bytes of a result; all together take at most `most_bytes`, and a single one at most a quarter of that.

    >>> kept = ResultCache(most_bytes=80)
    >>> [kept.get(key, lambda: bytes(20), len) and kept.bytes for key in "abcdea"]
    [20, 40, 60, 80, 80, 80]
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._results: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, Future[Any]] = {}
        self.bytes = 0

    @property
    def keeps_nothing(self) -> bool:
        """Whether every result is computed again."""
        return self._most_bytes == 0

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The result under `key`, computed now if missing. Raises what `make` raises."""
        while True:
            with self._lock:
                if key in self._results:
                    self._results.move_to_end(key)
                    return self._results[key][0]
                other = self._making.get(key)
                if other is None:
                    own = self._making[key] = Future()
                    break
            # The thread that computes it may have had less time than this one: if it gave up, this one tries.
            if other.exception() is None:
                return other.result()
        try:
            result = make()
        except BaseException as error:
            with self._lock:
                del self._making[key]
            own.set_exception(error)
            raise
        with self._lock:
            del self._making[key]
            self._put(key, result, size(result))
        own.set_result(result)
        return result

    def known(self, keys: Iterable[Hashable]) -> dict[Hashable, Any]:
        """Those of these results that are in the cache."""
        with self._lock:
            results = {key: self._results[key][0] for key in keys if key in self._results}
            for key in results:
                self._results.move_to_end(key)
            return results

    def add(self, key: Hashable, result: Any, size: int) -> None:
        """Add a result that was computed together with others, unless it exists by now."""
        with self._lock:
            if key not in self._results:
                self._put(key, result, size)

    def _put(self, key: Hashable, result: Any, size: int) -> None:
        if size > self._most_bytes // 4:
            return
        self._results[key] = result, size
        self.bytes += size
        while self.bytes > self._most_bytes:
            _, (_, dropped) = self._results.popitem(last=False)
            self.bytes -= dropped
