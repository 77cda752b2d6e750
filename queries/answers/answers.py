"""Answers to questions about a table: numbers with their bounds, and what the answer is based on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa

from ...operators.table.merge import larger_windows
from ...operators.table.schema import END, START, aggregates_of, keys_of
from ...operators.table.windows import declared_windows, zone_of
from ...operators.windows.local_clock import before
from ...operators.windows.window import EARLIEST
from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.protocol import SketchError
from ..question.key_filter import wanted_keys
from ..question.question import BadQuestion, Question, Rollup, WindowSelection
from ..question.question_kinds import QUESTION_KINDS, column_of, kind_named
from ..views.merge_cache import Deadline, Every, MergeCache, Selection, apart
from ..views.view import Gap, ServedWindow, TableView
from .ordered_rows import first, ordered

MOST_WINDOWS = 100_000
MOST_ROWS = 10_000_000
MOST_ANSWERS = 100_000
MOST_FIRST = 100
"""For up to so many ordered rows, only their own groups are merged in full."""


_REPEATED = {"quantiles": "ranks", "cdf": "values", "frequency": "items", "membership": "items"}
"""The parameter for which each group of an answer has several rows, by kind of question."""


class TooMuch(StreamgaugeError, ValueError):
    """A question that exceeds a server's limits; the message says what to reduce."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one question: windows and rows of sketches to merge, and rows of the answer."""

    windows: int = MOST_WINDOWS
    rows: int = MOST_ROWS
    answers: int = MOST_ANSWERS


@dataclass(frozen=True)
class Answer:
    """The rows of an answer, and what they are based on.

    `since` and `until` are the edges of the merged windows, and `windows` is their number: None and 0 if
    there are none, as for a table without windows. `open` means that some of them are still filling, `final`
    that nothing in the answer can change any more. `watermark` is the time up to which windows are final.
    `missing` names the requested windows that the server doesn't have, `stale` says since when and why it
    doesn't follow the log, if it doesn't, and `lag` is the number of unread messages in the log. `bounds` are
    for a query in SQL: by column, a list of ``[lower, upper]`` for each row; other answers have bounds in
    their rows.
    """

    table: str
    question: str
    rows: pl.DataFrame
    since: datetime | None = None
    until: datetime | None = None
    windows: int = 0
    open: bool = False
    final: bool = True
    watermark: datetime | None = None
    stale: Mapping[str, str] | None = None
    lag: int | None = None
    missing: tuple[Mapping[str, str | None], ...] = field(default=())
    bounds: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)

    def about(self) -> dict[str, Any]:
        """Everything except the rows, as plain JSON."""
        return {
            "table": self.table,
            "question": self.question,
            "from": _time_text(self.since),
            "to": _time_text(self.until),
            "windows": self.windows,
            "open": self.open,
            "final": self.final,
            "watermark": _time_text(self.watermark),
            "stale": self.stale,
            "lag": self.lag,
            "missing": list(self.missing),
        }

    @classmethod
    def of(cls, about: Mapping[str, Any], rows: pl.DataFrame) -> Answer:
        """The answer described by `about`, with its rows."""
        return cls(
            about["table"],
            about["question"],
            rows,
            since=_read(about["from"]),
            until=_read(about["to"]),
            windows=about["windows"],
            open=about["open"],
            final=about["final"],
            watermark=_read(about["watermark"]),
            stale=about["stale"],
            lag=about["lag"],
            missing=tuple(about["missing"]),
        )


def answer(
    view: TableView,
    question: Question,
    rollups: MergeCache,
    limits: Limits = Limits(),
    deadline: Deadline = Deadline(),  # noqa: B008
) -> Answer:
    """The answer from a table at one moment.

    Raises `BadQuestion` for a question that the table can't answer, `TooMuch` beyond the limits,
    `SketchError` for windows that can't be merged this way, and `OutOfTime`.
    """
    keys = keys_of(view.schema)
    by = tuple(keys) if question.by is None else question.by
    if unknown := [key for key in by if key not in keys]:
        raise BadQuestion(f"by: {unknown[0]} is not a key of this table; its keys are {_listed(keys)}")
    timeless = is_timeless(view)
    if timeless:
        _check_times(view, question)
    chosen, span = _chosen(view, question.where)
    every: Every
    if isinstance(question.every, Rollup):
        every = larger_windows("every", *question.every, view.schema)
    else:
        every = question.every

    def merged(windows: list[ServedWindow], columns: tuple[str, ...], where: WindowSelection) -> pa.Table:
        check_limits(windows, limits)
        shape = Selection(columns, by, wanted_keys(view.schema, where.keys))
        try:
            return rollups.table(view.schema, windows, shape, every, deadline)
        except SketchError as error:
            raise BadQuestion(str(error)) from None

    aggregates = aggregates_of(view.schema)
    if question.kind == "rows":
        columns = question.columns or tuple(aggregates)
        if unknown := [name for name in columns if name not in aggregates]:
            raise BadQuestion(
                f"columns: {unknown[0]} is not a column of {view.name}; it has {_listed(aggregates)}"
            )
        few = question.limit is not None and question.limit <= MOST_FIRST and question.every == "span"
        if few and by and chosen and question.order.removeprefix("-") in columns and not apart(view.schema):
            check_limits(chosen, limits)
            wanted = Selection(columns, by, wanted_keys(view.schema, question.where.keys))
            try:
                rows = first(view, question, chosen, wanted, rollups, deadline)
            except SketchError as error:
                raise BadQuestion(str(error)) from None
        else:
            rows = ordered(merged(chosen, columns, question.where), question, deadline)
    elif question.kind == "sets":
        one, other = (column_of(view, name, "sets") for name in (question.column, question.other))
        others, span_of_others = _chosen(view, question.other_where or question.where)
        tables = [
            merged(chosen, (one,), question.where),
            merged(others, (other,), question.other_where or question.where),
        ]
        rows = kind_named("sets").answer(tables, one, other, by, question.every != "span" and not timeless)
        chosen = sorted({*chosen, *others}, key=lambda window: (window.start, window.end, window.partition))
        span = min(span[0], span_of_others[0]), _later(span[1], span_of_others[1])
    else:
        column = column_of(view, question.column, question.kind)
        table = merged(chosen, (column,), question.where)
        if table.num_rows > limits.answers:
            raise too_many(table.num_rows, limits)
        each = max(1, len(getattr(question, _REPEATED.get(question.kind, ""), ())))
        if table.num_rows * each > limits.answers:
            raise too_many(table.num_rows * each, limits)
        rows = QUESTION_KINDS[question.kind].answer(table, column, aggregates[column], question, deadline)
    if rows.height > limits.answers:
        raise too_many(rows.height, limits)
    return answer_about(view, question.kind, rows, chosen, span)


def is_timeless(view: TableView) -> bool:
    """Whether a table has no windows that could be selected, shown or missing."""
    windows = declared_windows(view.schema)
    return windows is not None and windows.all_time


def _check_times(view: TableView, question: Question) -> None:
    """Raise `BadQuestion` if windows are requested from a table without windows."""
    spans = [question.where, *([] if question.other_where is None else [question.other_where])]
    if any(one is not None for where in spans for one in (where.since, where.until, where.last)):
        raise BadQuestion(
            f"{view.name} has no windows, so from=, to= and last= can't choose any; leave them out"
        )
    if question.order.removeprefix("-") in (START, END):
        raise BadQuestion(f"order: {view.name} has no windows; name a key or a column")


def standing(view: TableView) -> dict[str, Any]:
    """A table's progress and its missing windows, for an answer that covers all of it."""
    return answer_about(view, "", pl.DataFrame(), list(view.windows), (EARLIEST, None)).about()


def _chosen(view: TableView, where: WindowSelection) -> tuple[list[ServedWindow], tuple[int, int | None]]:
    """The requested windows, and the requested span, which begins at EARLIEST if all are requested."""
    since, until = where.since, where.until
    windows = [window for window in view.windows if where.open or not window.open]
    if where.last is not None and windows:
        since = before(max(window.end for window in windows), where.last, zone_of(view.schema))
    if since is not None:
        windows = [window for window in windows if window.start >= since]
    if until is not None:
        windows = [window for window in windows if window.end <= until]
    return windows, (EARLIEST if since is None else since, until)


def check_limits(windows: list[ServedWindow], limits: Limits) -> None:
    """Raise `TooMuch` for more windows or rows than one question may merge."""
    count = len({(window.start, window.end) for window in windows})
    if count > limits.windows:
        raise TooMuch(
            f"this needs {count:,} windows, and at most {limits.windows:,} are merged for one question; "
            "ask for a shorter span, with from= and to= or last=, in SQL WHERE window_start >= …"
        )
    rows = sum(window.rows for window in windows)
    if rows > limits.rows:
        raise TooMuch(
            f"this needs {rows:,} windows and groups, and at most {limits.rows:,} are merged for one "
            "question; ask for a shorter span, with from= and to= or last=, in SQL WHERE window_start >= …"
        )


def too_many(rows: int, limits: Limits) -> TooMuch:
    """The error for an answer with so many rows."""
    return TooMuch(
        f"the answer has {rows:,} rows, and one has at most {limits.answers:,}; ask for fewer with limit=, "
        "by=, key.NAME= or a shorter span"
    )


def answer_about(
    view: TableView,
    kind: str,
    rows: pl.DataFrame,
    chosen: list[ServedWindow],
    span: tuple[int, int | None],
) -> Answer:
    """An answer with what it is based on: the windows, and the requested span."""
    since, until = span
    end = max((window.end for window in chosen), default=None)
    last_end = until if until is not None else end
    missing = [gap for gap in view.gaps if gap.until > since and (until is None or gap.since < until)]
    stale = view.stale
    answer = Answer(
        view.name,
        kind,
        rows,
        _moment(min((window.start for window in chosen), default=None)),
        _moment(end),
        len({(window.start, window.end) for window in chosen}),
        any(window.open for window in chosen),
        last_end is not None and last_end <= view.final_us,
        _moment(view.final_us),
        None
        if stale is None
        else {"since": datetime.fromtimestamp(stale.since, UTC).isoformat(), "why": stale.why},
        view.lag,
        tuple(_gap(gap) for gap in missing),
    )
    if is_timeless(view):
        return replace(answer, rows=rows.drop(START, END, strict=False), since=None, until=None, windows=0)
    return answer


def _gap(gap: Gap) -> dict[str, str | None]:
    return {"from": _time_text(_moment(gap.since)), "to": _time_text(_moment(gap.until)), "why": gap.why}


def _later(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(time_us: int | None) -> datetime | None:
    """A time; None for the values that stand before and after all times."""
    try:
        return None if time_us is None else _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return None


def _time_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _listed(names: Any) -> str:
    return ", ".join(names) or "none"
