"""The rows that rules evaluate, as columns; objects are only created for rows that a rule must see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Protocol, overload

import numpy as np
import polars as pl

from ..formats.jsonable import json_texts, jsonable
from ..table.window_groups import WindowGroups
from .row import Row
from .value_with_bounds import FigureColumns, answer_at, figure_columns, figure_of

Window = tuple[int, int]
"""A window's end and start, in microseconds: windows are folded in this order."""


class RowSource(Protocol):
    """Rows of one or more windows, numbered."""

    def times(self) -> tuple[np.ndarray, np.ndarray]:
        """Each row's beginning and end (int64 microseconds)."""

    def keys(self, names: Sequence[str] | None = None) -> np.ndarray:
        """Each row's values of some keys, or of all, as text, in the form that `LimitRule` uses."""

    def figures(self, path: str) -> FigureColumns:
        """Each row's figure in an answer; NaN if unknown."""

    def made(self, at: np.ndarray) -> list[Row]:
        """The rows with these numbers."""


class RowColumns:
    """The rows of windows that closed together: their distinguishing keys and their answers.

    `at` names the key with a reading's own time, if rows are readings rather than windows.
    """

    def __init__(
        self, groups: WindowGroups, keys: Sequence[str], answers: Sequence[str], at: str | None
    ) -> None:
        self.starts, self.ends = groups.starts, groups.ends
        self._keys = tuple(keys)
        self._frame = groups.answers(answers)
        self._answers: Mapping[str, pl.Series] = {name: self._frame[name] for name in answers}
        self._at = None if at is None else self._frame[at].dt.epoch("us")
        self._texts: dict[tuple[str, ...], np.ndarray] = {}
        self._figures: dict[str, FigureColumns] = {}

    def usable(self) -> np.ndarray | None:
        """A mask of the valid rows: a reading without a time is not valid. None if all are valid."""
        return None if self._at is None or not self._at.null_count() else self._at.is_not_null().to_numpy()

    def times(self) -> tuple[np.ndarray, np.ndarray]:
        """See `RowSource`."""
        return (self.starts, self.ends) if self._own_times is None else (self._own_times, self._own_times)

    def keys(self, names: Sequence[str] | None = None) -> np.ndarray:
        """See `RowSource`."""
        names = self._keys if names is None else tuple(names)
        if names not in self._texts:
            columns = [json_texts(self._frame[name]) for name in names]
            rows = zip(*columns) if columns else [()] * self._frame.height
            self._texts[names] = np.array([f"[{','.join(row)}]" for row in rows], object)
        return self._texts[names]

    def figures(self, path: str) -> FigureColumns:
        """See `RowSource`."""
        if path not in self._figures:
            column, part = answer_at(self._answers, path)
            figures = None if column is None else figure_columns(column, part)
            if figures is None:
                answers = [None] * self._frame.height if column is None else column.to_list()
                figures = _listed(figure_of(jsonable(answer), part) for answer in answers)
            self._figures[path] = figures
        return self._figures[path]

    def made(self, at: np.ndarray) -> list[Row]:
        """See `RowSource`."""
        frame, (starts, ends) = self._frame[at], self.times()
        return self._rows(starts[at].tolist(), ends[at].tolist(), *self._listed(frame), range(len(at)))

    def in_order(self, at: np.ndarray) -> list[Row]:
        """The rows with these numbers, ordered by time and key."""
        # With many windows, the values of all rows are converted at once.
        rows = self._rows(*self._values, at.tolist()) if self._several else self.made(at)
        rows.sort(key=lambda row: (row.at_us, json.dumps(list(row.key.values()))))
        return rows

    @cached_property
    def _own_times(self) -> np.ndarray | None:
        if self._at is None:
            return None
        return (self._at.fill_null(0) if self._at.null_count() else self._at).to_numpy()

    @cached_property
    def _several(self) -> bool:
        return len(self.starts) > 0 and self.starts[0] != self.starts[-1]

    @cached_property
    def _values(self) -> tuple[list[int], list[int], list[list[Any]], list[list[Any]]]:
        starts, ends = self.times()
        return starts.tolist(), ends.tolist(), *self._listed(self._frame)

    def _listed(self, frame: pl.DataFrame) -> tuple[list[list[Any]], list[list[Any]]]:
        keys, answers = ([frame[name].to_list() for name in names] for names in (self._keys, self._answers))
        return keys, answers

    def _rows(
        self,
        starts: list[int],
        ends: list[int],
        keys: list[list[Any]],
        answers: list[list[Any]],
        numbers: Sequence[int],
    ) -> list[Row]:
        return [
            Row(
                {name: jsonable(column[number]) for name, column in zip(self._keys, keys)},
                starts[number],
                ends[number],
                {name: jsonable(column[number]) for name, column in zip(self._answers, answers)},
            )
            for number in numbers
        ]


class ListedRows:
    """Rows that exist as objects."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def times(self) -> tuple[np.ndarray, np.ndarray]:
        """See `RowSource`."""
        starts, ends = ([getattr(row, name) for row in self._rows] for name in ("start_us", "at_us"))
        return np.array(starts, np.int64), np.array(ends, np.int64)

    def keys(self, names: Sequence[str] | None = None) -> np.ndarray:
        """See `RowSource`."""
        keys = [[row.key[name] for name in (row.key if names is None else names)] for row in self._rows]
        texts = [json.dumps(key, ensure_ascii=False, separators=(",", ":")) for key in keys]
        return np.array(texts, object)

    def figures(self, path: str) -> FigureColumns:
        """See `RowSource`."""
        return _listed(figure_of(*answer_at(row.answers, path)) for row in self._rows)

    def made(self, at: np.ndarray) -> list[Row]:
        """See `RowSource`."""
        return [self._rows[number] for number in at.tolist()]


class LazyRows(Sequence[Row]):
    """All rows of one window, ordered by time and key; created on first access."""

    def __init__(self, columns: RowColumns, at: np.ndarray) -> None:
        self.columns = columns
        self.at = at

    def __len__(self) -> int:
        return len(self.at)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @cached_property
    def _rows(self) -> list[Row]:
        return self.columns.in_order(self.at)


class WindowBatch:
    """The rows of several windows as one set of columns, ordered by window and, within one, by time.

    Rows are numbered in this order. Columns are computed once for all rules. As pairs, a window may come
    several times, with some of its rows each time.

    >>> rows = [Row({"k": "a"}, 0, 9, {"n": 2}), Row({"k": "b"}, 0, 9, {"n": 3})]
    >>> batch = WindowBatch({(9, 0): rows, (18, 9): [Row({"k": "a"}, 9, 18, {})]})
    >>> batch.window.tolist(), batch.keys().tolist(), batch.figures("n")[0].tolist()
    ([0, 0, 1], ['["a"]', '["b"]', '["a"]'], [2.0, 3.0, nan])
    """

    def __init__(
        self, windows: Mapping[Window, Sequence[Row]] | Sequence[tuple[Window, Sequence[Row]]]
    ) -> None:
        pairs = [*(windows.items() if isinstance(windows, Mapping) else windows)]
        self.windows = [window for window, _ in pairs]
        self.rows = [rows for _, rows in pairs]
        self._parts = list(_parts(self.rows))
        sizes = np.array([len(rows) for rows in self.rows], np.int64)
        self.window = np.repeat(np.arange(len(sizes)), sizes)
        """The number of each row's window."""
        self.bounds = np.concatenate([[0], np.cumsum(sizes)])
        """The beginning of each window's rows, and the end of the last."""
        self._order: np.ndarray | None = None
        self._made: dict[Any, Any] = {}
        starts = self._gathered(lambda source: source.times()[0])
        ends = self._gathered(lambda source: source.times()[1])
        order = np.lexsort((ends, self.window))
        if (order[1:] < order[:-1]).any():
            self._order = order
            starts, ends = starts[order], ends[order]
        self.starts, self.ends = starts, ends
        """Each row's times (int64 microseconds): a window's edges, or a reading's own time twice."""

    def __len__(self) -> int:
        return len(self.window)

    @cached_property
    def lags(self) -> np.ndarray:
        """How far each row's window extends beyond it, if the window begins after the row, as for late
        readings (`Stream.tumbling`); 0 for other rows.
        """
        edges = np.array(self.windows, np.int64).reshape(-1, 2)[self.window]
        return np.where(self.ends < edges[:, 1], edges[:, 0] - self.ends, 0)

    def keys(self, names: Sequence[str] | None = None) -> np.ndarray:
        """See `RowSource`."""
        what = None if names is None else tuple(names)
        return self._shared(("keys", what), lambda source: source.keys(what))

    def figures(self, path: str) -> FigureColumns:
        """See `RowSource`."""
        value = self._shared((path, "value"), lambda source: source.figures(path)[0])
        lower = self._shared((path, "lower"), lambda source: source.figures(path)[1])
        upper = self._shared((path, "upper"), lambda source: source.figures(path)[2])
        return value, lower, upper

    def made(self, numbers: np.ndarray) -> list[Row]:
        """The rows with these numbers."""
        inside = numbers if self._order is None else self._order[numbers]
        rows: dict[int, Row] = {}
        low = 0
        for source, at in self._parts:
            own = np.unique(inside[(inside >= low) & (inside < low + len(at))])
            if len(own):
                rows |= zip(own.tolist(), source.made(at[own - low]))
            low += len(at)
        return [rows[number] for number in inside.tolist()]

    def concerned(self, where: Mapping[str, Any]) -> np.ndarray | None:
        """A mask of the rows whose keys match; None if all rows match."""
        mask: np.ndarray | None = None
        for name, wanted in where.items():
            texts = self.keys((name,))
            verdicts = {text: is_wanted(json.loads(text)[0], wanted) for text in set(texts.tolist())}
            own = np.array([verdicts[text] for text in texts.tolist()], bool)
            mask = own if mask is None else mask & own
        return mask

    def by_keys(self) -> np.ndarray:
        """The numbers of the rows; within one window and time they are ordered by key."""
        if "order" not in self._made:
            texts = [order_text(text) for text in self.keys().tolist()]
            ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
            rank = np.array([ranks[text] for text in texts], np.int64)
            self._made["order"] = np.lexsort((rank, self.ends, self.window))
        order: np.ndarray = self._made["order"]
        return order

    def _shared(self, what: Any, column: Callable[[RowSource], np.ndarray]) -> np.ndarray:
        if what not in self._made:
            gathered = self._gathered(column)
            self._made[what] = gathered if self._order is None else gathered[self._order]
        made: np.ndarray = self._made[what]
        return made

    def _gathered(self, column: Callable[[RowSource], np.ndarray]) -> np.ndarray:
        parts = [column(source)[at] for source, at in self._parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.int64)


def order_text(key: str) -> str:
    """The form of a key's text by which rows with the same time are ordered.

    >>> order_text('["a",1]'), order_text('["é"]')
    ('["a",1]', '["\\\\u00e9"]')
    """
    return key if key.isascii() else json.dumps(json.loads(key), separators=(",", ":"))


def is_wanted(value: Any, wanted: Any) -> bool:
    """Whether a key's value equals the one that `where` names, or one of several."""
    return value in wanted if isinstance(wanted, list | tuple | set | frozenset) else value == wanted


def by_window(columns: RowColumns, rows: slice) -> dict[Window, LazyRows]:
    """The rows of each window in a range, by its end and start."""
    at = np.arange(rows.start, rows.stop)
    usable = columns.usable()
    if usable is not None:
        at = at[usable[at]]
    starts, ends = columns.starts[at], columns.ends[at]
    if len(at) and (starts[0] == starts).all() and (ends[0] == ends).all():
        return {(int(ends[0]), int(starts[0])): LazyRows(columns, at)}
    order = np.lexsort((starts, ends))
    at, starts, ends = at[order], starts[order], ends[order]
    cuts = np.flatnonzero((np.diff(starts) != 0) | (np.diff(ends) != 0)) + 1
    return {
        (int(columns.ends[part[0]]), int(columns.starts[part[0]])): LazyRows(columns, part)
        for part in np.split(at, cuts)
        if len(part)
    }


def _parts(windows: Sequence[Sequence[Row]]) -> Iterator[tuple[RowSource, np.ndarray]]:
    """Runs of windows from the same source, with their rows' numbers there."""
    for _, some in groupby(windows, lambda rows: id(rows.columns) if isinstance(rows, LazyRows) else None):
        group = list(some)
        first = group[0]
        if isinstance(first, LazyRows):
            yield first.columns, np.concatenate([rows.at for rows in group if isinstance(rows, LazyRows)])
        else:
            listed = [row for rows in group for row in rows]
            yield ListedRows(listed), np.arange(len(listed))


def _listed(figures: Any) -> FigureColumns:
    rows = [(np.nan,) * 3 if figure is None else figure for figure in figures]
    value, lower, upper = np.array(rows, np.float64).reshape(-1, 3).T
    return value, lower, upper
