"""Count-min sketches of many groups: a table for groups with enough rows, a shared log for the others."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np
import pyarrow as pa

from ..core.aggregated import Aggregated
from ..core.columns.column_kinds import countable
from ..core.columns.weights import as_weights
from ..core.groups.group_numbers import as_groups, grown
from ..core.groups.sparse_tables import ROWS_AT_ONCE, LazyTables
from ..core.hashing.java_random import next_ints
from ..core.protocol import Groups, SketchError
from ..core.resume import resume
from ..core.values.image_columns import as_images, begin_with, check_sums, image_column
from ..core.values.item_kinds import code_of, joint_kind, kind_of_code, kind_with
from . import images_many as many
from . import update as kernels
from .images import UNKNOWN, image_size, parse
from .images_sparse import CHECK, KIND_AT, MAGIC, NO_BITS, bits_of, most_room, parse_sparse
from .log import LINE, by_group, replay
from .sketch import CountMin, accepted, keys_of, seed_of, shape

_NONE = np.empty(0, np.int64)
_MOST = 1 << 62
"""The weights of a group must add up to less."""
_LEAST = 64
"""The approximate size in bytes of an image of few values."""
_PATIENCE = 8
"""A group gets a table when it has an eighth as many lines in the log, of 32 bytes each, as counters."""


class CountMinGroups(Groups):
    """`CountMin` for many groups; a group with n values takes 32 · n bytes, and at most 170 kB.

    Bytes are those of `CountMin.to_bytes`: Spark's, or our own if few counters are in use. The weights of a
    group must sum to less than 2^62, those of one sketch to less than 2^63; more raise `OverflowError`.

    >>> groups = CountMinGroups(2, eps=0.01)
    >>> groups.update([0, 1, 0], ["a", "b", "a"])
    >>> groups[0].estimate("a"), groups[1].estimate("a")
    (2, 0)
    """

    aggregate: ClassVar = Aggregated(
        {"eps": 0.001, "confidence": 0.99, "seed": 0}, of_column=countable, hashes=True
    )

    def __init__(self, n: int = 0, eps: float = 0.001, confidence: float = 0.99, seed: int = 0) -> None:
        """Raises `SketchError` as `CountMin` does."""
        self._depth, self._width = shape(eps, confidence)
        self._eps, self._confidence, self._seed = float(eps), float(confidence), seed_of(seed)
        self._factors = np.array(next_ints(self._seed, self._depth), np.uint64)
        self._inverse = kernels.inverse(self._width)
        self._n = 0
        self._total = np.zeros(0, np.int64)
        patience = max(self._depth * self._width // _PATIENCE, 16)
        self._lazy = LazyTables((self._depth, self._width), np.int64, kernels.WORDS, patience, self._replay)
        self.resize(n)

    def _replay(self, tables: np.ndarray, slots: np.ndarray, log: np.ndarray, keep: bool) -> int:
        return replay(tables, slots, log, _bytes(log), self._factors, *self._inverse, NO_BITS, keep)

    @property
    def _headers(self) -> many.Headers:
        return many.headers(self._seed, self._depth, self._width, self.item_kind)

    def __len__(self) -> int:
        return self._n

    def resize(self, n: int) -> None:
        """Grow to `n` groups."""
        self._lazy.resize(n)
        self._total = grown(self._total, len(self._lazy.slots))
        self._n = max(n, self._n)

    def update(self, groups: np.ndarray, values: Any, weight: Any = None) -> None:
        """Count values in their groups, with an integer `weight` per row, if given. Raises what `CountMin`
        raises."""
        column = accepted(values, self.item_kind)
        rows = column.length
        numbers = column.per_value(as_groups(groups, rows, self._n))
        heavy = _NONE
        if weight is not None:
            heavy = np.ascontiguousarray(column.per_value(as_weights(weight, rows)))
        # as doubles, to detect an overflow before it happens
        more = np.bincount(numbers, heavy if len(heavy) else None, minlength=self._n).astype(np.float64)
        if ((self._total[: self._n] + more) >= float(_MOST)).any():
            raise OverflowError("count-min: the weights of a group add up to more than 2^62")
        keys, factors = keys_of(column, self._factors)
        for first in range(0, len(keys), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            self._add(numbers[part], keys[part], heavy[part], factors)
        self.item_kind = kind_with(self.item_kind, column)

    def _add(self, groups: np.ndarray, keys: np.ndarray, weights: np.ndarray, factors: np.ndarray) -> None:
        np.add.at(self._total, groups, weights if len(weights) else 1)
        lazy = self._lazy
        lazy.make_room(len(keys))
        rows = groups, keys, weights, factors, *self._inverse
        lazy.logged_up_to(
            kernels.add_grouped(lazy.tables, lazy.slots, *rows, lazy.log, lazy.lines, lazy.logged)
        )

    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Add serialised sketches of the same shape and seed; nulls are skipped.

        Raises `SketchError`, naming the row, for anything else: then nothing was merged.
        """
        numbers, images_column = as_images(groups, column, self._n, "count-min")
        if not len(images_column):
            return
        starts, ends = images_column.offsets[:-1], images_column.offsets[1:]
        sizes = ends - starts
        sparse = begin_with(MAGIC, images_column)
        dense = ~sparse
        if dense.any():  # Spark's size, or a few bytes more
            dense &= (sizes - image_size(self._depth, self._width)).view(np.uint64) <= many.MOST_TAIL
        sums = np.zeros(len(images_column), np.uint32)
        sums[sparse] = check_sums(
            images_column.data, starts[sparse], np.maximum(ends - CHECK, starts)[sparse]
        )
        self._lazy.give(numbers[dense])
        kind = np.array([code_of(self.item_kind, UNKNOWN)[0]], np.uint8)
        images = (
            self._headers,
            images_column.data,
            images_column.offsets,
            numbers,
            sums,
            np.full(len(sums), -1),
            kind,
        )
        longest = int(sizes.max()) // LINE + 2
        lazy = self._lazy

        def step(at: int) -> tuple[int, int]:
            state = self._state()
            at, lazy.lines, why = many.merge(state, lazy.lines, _MOST, *images, NO_BITS, at)
            return at, why

        def enlarge(why: int) -> None:
            lazy.logged_up_to(lazy.lines)
            lazy.make_room(max(longest, ROWS_AT_ONCE))

        at, why = resume(step, enlarge)
        item_kind = kind_of_code(kind[0], UNKNOWN, "count-min")
        if why == many.REFUSED:
            image = memoryview(images_column.data)[starts[at] : ends[at]]  # type: ignore[arg-type]
            self._refuse(images_column.row(at), image, item_kind)
        lazy.logged_up_to(lazy.lines)
        self.item_kind = item_kind

    def _refuse(self, row: int, image: memoryview, item_kind: str | None) -> NoReturn:
        """Raise the error for an image that the kernel rejects."""
        one = parse_sparse(image) if image[: len(MAGIC)] == MAGIC else parse(image)
        joint_kind(item_kind, one.item_kind, f"count-min: row {row}")
        theirs = *one.table.shape, one.seed
        mine = (self._depth, self._width, self._seed)
        if theirs[:2] != mine[:2] or (np.array(next_ints(one.seed, self._depth)) != self._factors).any():
            raise SketchError(
                f"count-min: row {row} has depth, width and seed {theirs}, these groups have {mine}"
            )
        raise OverflowError("count-min: the weights of a group add up to more than 2^62")

    def _state(self) -> many.State:
        lazy = self._lazy
        return many.State(lazy.tables, lazy.slots, self._total, lazy.log, _bytes(lazy.log), lazy.logged)

    def to_arrow(self) -> pa.Array:
        """Return the bytes of `CountMin.to_bytes` per group, as `binary` (`large_binary` beyond 2 GiB)."""
        firsts, order = np.empty(self._n + 1, np.int64), np.empty(self._lazy.lines, np.int64)
        by_group(self._lazy.log[: self._lazy.lines], firsts, order)
        shape = self._depth, self._width
        lines = order, firsts, self._factors, *self._inverse
        scratch = np.zeros(shape, np.int64), bits_of(*shape), most_room(*shape)
        offsets = np.zeros(self._n + 1, np.int64)
        out = np.empty(image_size(*shape) + _LEAST * self._n, np.uint8)

        def enlarge(why: int) -> None:
            nonlocal out
            larger = np.empty(2 * len(out), np.uint8)
            larger[: len(out)] = out
            out = larger

        resume(
            lambda at: many.write(self._state(), self._n, *lines, self._headers, *scratch, out, offsets, at),
            enlarge,
        )
        sparse = out[offsets[:-1]] == MAGIC[0]  # Spark's bytes begin with 0
        # An empty sketch has no kind yet, and is always sparse or, if tiny, without a byte for it.
        out[offsets[:-1][sparse & (self._total[: self._n] == 0)] + KIND_AT] = UNKNOWN[0]
        starts, ends = offsets[:-1][sparse], offsets[1:][sparse] - CHECK
        sums = check_sums(out, starts, ends).astype(">u4").view(np.uint8)
        out[ends[:, None] + np.arange(CHECK)] = sums.reshape(-1, CHECK)
        return image_column(out[: offsets[-1]], offsets)

    def answers(self, **question: Any) -> pa.Array:
        """Return `CountMin.answer` for each group."""
        total = self._total[: self._n].copy()
        error = np.array([int(2 / self._width * each) for each in total.tolist()], np.int64)
        columns = [total, error, np.full(self._n, 1 - 0.5**self._depth)]
        return pa.StructArray.from_arrays(columns, ["total", "error", "confidence"])

    def __getitem__(self, group: int) -> CountMin:
        group = range(self._n)[group]
        one = CountMin(self._eps, self._confidence, self._seed)
        one._set(self._seed, int(self._total[group]), self._lazy.table(group))
        return self._kind_to(one)


def _bytes(log: np.ndarray) -> np.ndarray:
    return log.reshape(-1).view(np.uint8)
