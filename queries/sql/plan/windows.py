"""The windows of a query, in the words of ksqlDB, Flink, RisingWave and Spark: all the same `Stream`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ....operators.windows.durations import duration_text
from ..errors import error_at
from ..parse.nodes import UNITS
from .expressions import interval_us


@dataclass(frozen=True)
class Window:
    """A window: the stream's method, its text, and the column that it names as the event time, if any.

    Without a method all rows are counted together, as those of files can be. `partition` are the columns of
    PARTITION BY of a SESSION in FROM; None for windows of each group.
    """

    node: Any
    method: str
    given: tuple[str, ...]
    named: tuple[tuple[str, Any], ...] = ()
    time: Any = None
    partition: tuple[Any, ...] | None = None

    @property
    def text(self) -> str:
        """The Python of it."""
        parts = [*map(repr, self.given), *(f"{name}={value!r}" for name, value in self.named)]
        return f".{self.method}({', '.join(parts)})"

    @property
    def apply(self) -> Callable[[Any], Any]:
        """What makes the windows of a stream."""
        return lambda stream: getattr(stream, self.method)(*self.given, **dict(self.named))


def window_of_clause(node: Any) -> Window:
    """``WINDOW TUMBLING (SIZE …)``."""
    lengths = {name: duration_text(length.this) for name, length in node.args["parts"].items()}
    delay = (("delay", lengths["GRACE PERIOD"]),) if "GRACE PERIOD" in lengths else ()
    if node.args["kind"] == "TUMBLING":
        return Window(node, "tumbling", (lengths["SIZE"],), delay)
    if node.args["kind"] == "SESSION":
        return Window(node, "session", (lengths["GAP"],), delay)
    size, every = (node.args["parts"][name].this for name in ("SIZE", "ADVANCE BY"))
    return _hopping(node, size, every, None, delay)


def window_of_table(node: Any) -> Window:
    """``TUMBLE(t, ts, …)`` in FROM."""
    time = node.args["time"]
    lengths = [one.this for one in node.args["lengths"]]
    kind = node.this
    partition = node.args.get("partition") or []
    if partition and kind != "SESSION":
        raise error_at(
            partition[0],
            f"{kind} takes no PARTITION BY: windows are the same for all keys; GROUP BY names them",
        )
    if kind == "TUMBLE":
        return Window(node, "tumbling", (duration_text(lengths[0]),), (), time)
    if kind == "SESSION":
        return Window(node, "session", (duration_text(lengths[0]),), (), time, tuple(partition))
    every, size = lengths
    if kind == "HOP":
        return _hopping(node, size, every, time)
    if size % every:
        raise error_at(node, "the step of a CUMULATE must divide its size")
    return Window(node, "cumulate", (duration_text(size),), (("every", duration_text(every)),), time)


def window_call(node: Any) -> Window | None:
    """``window(ts, '1 minute')``, ``session_window(…)`` or ``TUMBLE(ts, …)`` in GROUP BY; None for others."""
    if not isinstance(node, exp.Anonymous):
        return None
    name = node.name.upper()
    if name not in ("WINDOW", "SESSION_WINDOW", "TUMBLE", "HOP", "SESSION"):
        return None
    if not node.expressions or not isinstance(node.expressions[0], exp.Column):
        raise error_at(node, f"{name} must name the time column first")
    time, *given = node.expressions
    lengths = [_length(one) for one in given]
    most = 1 if name in ("SESSION_WINDOW", "TUMBLE", "SESSION") else 2
    if not 1 <= len(lengths) <= most or (name == "HOP" and len(lengths) != 2):
        number = "2" if name == "HOP" else "1" if most == 1 else "1 or 2"
        raise error_at(node, f"{name} takes {number} lengths behind the time column, got {len(lengths)}")
    if name in ("SESSION_WINDOW", "SESSION"):
        return Window(node, "session", (duration_text(lengths[0]),), (), time)
    if len(lengths) == 1:
        return Window(node, "tumbling", (duration_text(lengths[0]),), (), time)
    size, every = lengths if name == "WINDOW" else lengths[::-1]
    return _hopping(node, size, every, time)


def _hopping(node: Any, size: int, every: int, time: Any, delay: tuple[tuple[str, str], ...] = ()) -> Window:
    if every > size:
        raise error_at(node, "a hopping window must advance by no more than its size, or rows are left out")
    if every == size:
        return Window(node, "tumbling", (duration_text(size),), delay, time)
    return Window(node, "hopping", (duration_text(size),), (("every", duration_text(every)), *delay), time)


def _length(node: Any) -> int:
    if isinstance(node, exp.Interval):
        return interval_us(node)
    text = node.this if isinstance(node, exp.Literal) and node.is_string else ""
    parts = text.split()
    unit = parts[1].upper() if len(parts) == 2 else ""
    unit = unit if unit in UNITS else unit.removesuffix("S")
    if len(parts) != 2 or not parts[0].isdigit() or unit not in UNITS or int(parts[0]) < 1:
        raise error_at(node, "a length must be written as '1 minute' or INTERVAL '1' MINUTE")
    return int(parts[0]) * UNITS[unit]
