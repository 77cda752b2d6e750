"""Watch an engine work until all that was replayed is in its sketches."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.live import Live

from ..kafka.broker import EmbeddedKafka
from ..replay.process import Replay
from .answers import windows
from .engines import Engine
from .view import Snapshot, View

log = logging.getLogger("streamgauge")

_REFRESH = 0.25  # seconds
_TELL = 5.0  # seconds between two lines where there is no terminal to draw in
_RATE_OVER = 3.0  # seconds
_NEWS = 5.0  # seconds for which a warning is shown


class _Warnings(logging.Handler):
    """The engine's latest warning, such as that the broker is away, while it is news.

    What is `pressing` goes before it, for as long as it is.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.pressing = ""
        self._latest = ""
        self._at = float("-inf")

    def emit(self, record: logging.LogRecord) -> None:
        self._latest, self._at = record.getMessage(), time.monotonic()

    @property
    def latest(self) -> str:
        news = self._latest if time.monotonic() - self._at < _NEWS else ""
        return self.pressing or news


def watch(
    engine: Engine,
    replay: Replay,
    seconds: float | None,
    note: str,
    console: Console,
    broker: EmbeddedKafka,
    revive: Callable[[], object],
) -> float:
    """Show the engine at work; return after how many seconds the last message was in.

    Draws over the whole terminal, or tells a line now and then where there is none. `seconds` is how long the
    stream is to last, if that is known. A broker that has ended is started again by `revive`. Raises what
    ended the replay or the engine, if either failed.
    """
    warnings = _Warnings()
    log.addHandler(warnings)
    try:
        with Live(console=console, screen=console.is_terminal, auto_refresh=False, transient=True) as live:
            latest = 0.0
            for latest in _looks(engine, replay, seconds, note, warnings, live):  # noqa: B007
                if not broker.running and not warnings.pressing:
                    warnings.pressing = "the broker has ended; it is started again"
                elif not broker.running:
                    revive()
                    warnings.pressing = ""
                    log.warning("the broker serves again")
            return latest
    finally:
        log.removeHandler(warnings)


def _looks(
    engine: Engine, replay: Replay, seconds: float | None, note: str, warnings: _Warnings, live: Live
) -> Iterator[float]:
    """Look and show until all is in; yields after how many seconds the newest message was first seen."""
    begin = time.monotonic()
    latest, told, said = 0.0, 0.0, ""
    marks = deque([(0.0, 0)])
    while True:
        over = replay.done
        look = engine.look()
        elapsed = time.monotonic() - begin
        read = look.account.read
        if read > marks[-1][1]:
            latest = elapsed
        marks.append((elapsed, read))
        while len(marks) > 2 and marks[1][0] < elapsed - _RATE_OVER:
            marks.popleft()
        rate = (read - marks[0][1]) / max(elapsed - marks[0][0], 1e-9)
        lag = max(replay.sent - read, 0)
        news = warnings.latest or ("the replay is over, the engine catches up" if over else "")
        if live.console.is_terminal:
            found, until = windows(look.table), look.closed_until
            planned = seconds if seconds is not None and elapsed <= seconds else None
            shown = Snapshot(
                engine.title, elapsed, planned, found, until, look.account, rate, lag, news or note
            )
            live.update(View(shown), refresh=True)
        elif elapsed - told >= _TELL or news != said:
            told, said = elapsed, news
            line = f"{elapsed:3.0f} s: {rate:,.0f} posts/s, {read:,} read, {lag:,} behind"
            live.console.print(
                f"{line}; {news}" if news else line, highlight=False, markup=False, soft_wrap=True
            )
        yield latest
        if over and read >= replay.sent:
            return
        time.sleep(_REFRESH)
