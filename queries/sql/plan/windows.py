"""The windows of a query, in the syntax of ksqlDB, Flink, RisingWave or Spark, for the same `Stream`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ....operators.table.schema import END, START
from ..errors import error_at
from ..parse.nodes import MONTHS, UNITS, Length

_NO_ZONE = "a session has no time zone: it begins with a row; leave AT TIME ZONE out"


@dataclass(frozen=True)
class Window:
    """A window: the stream's method, its text, and the column that it names as the event time, if any.

    Without a method all rows are counted together, which is possible for files. `partition` are the columns
    of PARTITION BY of a SESSION in FROM; None for windows of each group.
    """

    node: Any
    method: str
    given: tuple[str, ...]
    named: tuple[tuple[str, Any], ...] = ()
    time: Any = None
    partition: tuple[Any, ...] | None = None

    @property
    def text(self) -> str:
        """The Python for it."""
        parts = [*map(repr, self.given), *(f"{name}={value!r}" for name, value in self.named)]
        return f".{self.method}({', '.join(parts)})"

    @property
    def apply(self) -> Callable[[Any], Any]:
        """A function that adds the windows to a stream."""
        return lambda stream: getattr(stream, self.method)(*self.given, **dict(self.named))


def window_of_clause(node: Any) -> Window:
    """``WINDOW TUMBLING (SIZE …)``."""
    parts = dict(node.args["parts"])
    zone = parts.pop("TIME ZONE", None)
    place = _place(parts.get("OFFSET"), zone)
    delay = (("delay", parts["GRACE PERIOD"].duration),) if "GRACE PERIOD" in parts else ()
    if node.args["kind"] == "TUMBLING":
        return Window(node, "tumbling", (parts["SIZE"].duration,), (*place, *delay))
    if node.args["kind"] == "SESSION":
        return Window(node, "session", (parts["GAP"].duration,), delay)
    return _hopping(node, parts["SIZE"], parts["ADVANCE BY"], None, (*place, *delay))


def window_of_table(node: Any) -> Window:
    """``TUMBLE(t, ts, …)`` in FROM."""
    time = node.args["time"]
    lengths = node.args["lengths"]
    kind = node.this
    partition = node.args.get("partition") or []
    if partition and kind != "SESSION":
        raise error_at(
            partition[0],
            f"{kind} takes no PARTITION BY: windows are the same for all keys; GROUP BY names them",
        )
    if kind == "SESSION":
        if node.args.get("zone") is not None:
            raise error_at(node, _NO_ZONE)
        return Window(node, "session", (lengths[0].duration,), (), time, tuple(partition))
    wanted = 1 if kind == "TUMBLE" else 2
    place = _place(lengths[wanted] if len(lengths) > wanted else None, node.args.get("zone"))
    if kind == "TUMBLE":
        return Window(node, "tumbling", (lengths[0].duration,), place, time)
    every, size = lengths[:2]
    if kind == "HOP":
        return _hopping(node, size, every, time, place)
    if not _calendar(size, every) and int(size.this) % int(every.this):
        raise error_at(node, "the step of a CUMULATE must divide its size")
    return Window(node, "cumulate", (size.duration,), (("every", every.duration), *place), time)


def check_grouped(window: Any, edges: Collection[str]) -> None:
    """Raise `SqlError` for a window in FROM if GROUP BY doesn't name its edges; `edges` are those it names.

    In Flink and RisingWave such a query merges all windows, and a row of a HOP counts several times.
    """
    if END in edges or (START in edges and window.this != "CUMULATE"):
        return
    edge = "window_end" if window.this == "CUMULATE" else "window_start"
    raise error_at(
        window,
        f"a query of {window.this} must name its windows, GROUP BY {edge}, …; without {edge} all of them "
        "would be merged",
    )


def window_call(node: Any) -> Window | None:
    """``window(ts, '1 minute')``, ``session_window(…)`` or ``TUMBLE(ts, …)`` in GROUP BY; None for others.

    An offset may follow the lengths, and the time may be ``ts AT TIME ZONE 'Europe/Helsinki'``.
    """
    if not isinstance(node, exp.Anonymous):
        return None
    name = node.name.upper()
    if name not in ("WINDOW", "SESSION_WINDOW", "TUMBLE", "HOP", "SESSION"):
        return None
    time, *given = node.expressions or [None]
    zone = None
    if isinstance(time, exp.AtTimeZone):
        time, named = time.this, time.args["zone"]
        if not (isinstance(named, exp.Literal) and named.is_string):
            raise error_at(node, f"the time zone of {name} must be a text in single quotes")
        zone = named.name
    if not isinstance(time, exp.Column):
        raise error_at(node, f"{name} must name the time column first")
    session = name in ("SESSION_WINDOW", "SESSION")
    fewest = 2 if name == "HOP" else 1
    most = 1 if session else 2 if name == "TUMBLE" else 3
    if not fewest <= len(given) <= most:
        number = {1: "1", 2: "1", 3: "2" if name == "HOP" else "1 or 2"}[most]
        offset = ", and an offset" if len(given) > most and not session else ""
        raise error_at(node, f"{name} takes {number} lengths after the time column{offset}, got {len(given)}")
    if session:
        if zone is not None:
            raise error_at(node, _NO_ZONE)
        return Window(node, "session", (_length(given[0]).duration,), (), time)
    lengths = [_length(one) for one in given[: most - 1]]
    place = _place(_length(given[most - 1], offset=True) if len(given) == most else None, zone)
    if len(lengths) == 1:
        return Window(node, "tumbling", (lengths[0].duration,), place, time)
    size, every = lengths if name == "WINDOW" else lengths[::-1]
    return _hopping(node, size, every, time, place)


def _place(offset: Any, zone: str | None) -> tuple[tuple[str, str], ...]:
    """The alignment of windows, as keyword arguments."""
    given = (("offset", None if offset is None else offset.duration), ("zone", zone))
    return tuple((name, value) for name, value in given if value is not None)


def _calendar(*lengths: Any) -> bool:
    return any(length.args.get("months") for length in lengths)


def _hopping(node: Any, size: Any, every: Any, time: Any, named: tuple[tuple[str, str], ...] = ()) -> Window:
    if not _calendar(size, every) and int(every.this) > int(size.this):
        raise error_at(node, "a hopping window must advance by no more than its size, or rows would be lost")
    if every.duration == size.duration:
        return Window(node, "tumbling", (size.duration,), named, time)
    return Window(node, "hopping", (size.duration,), (("every", every.duration), *named), time)


def _length(node: Any, offset: bool = False) -> Length:
    if isinstance(node, exp.Interval):
        unit = node.args.get("unit")
        parts = str(node.this.name if node.this is not None else "").split()
        parts = [*parts[:1], unit.name] if unit is not None else parts
    else:
        parts = node.this.split() if isinstance(node, exp.Literal) and node.is_string else []
    units = {**UNITS, **MONTHS}
    unit = parts[1].upper() if len(parts) == 2 else ""
    unit = unit if unit in units else unit.removesuffix("S")
    digits = parts[0].removeprefix("-") if offset and parts else parts[0] if parts else ""
    if len(parts) != 2 or not digits.isdigit() or unit not in units or (int(parts[0]) < 1 and not offset):
        raise error_at(node, "a length must be written as '1 minute' or INTERVAL '1' MINUTE")
    number = int(parts[0]) * units[unit]
    return Length(this=0, months=number) if unit in MONTHS else Length(this=number)
