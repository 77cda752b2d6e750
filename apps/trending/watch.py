"""Watch an engine work until all that was replayed is in its sketches."""

from __future__ import annotations

import time
from collections import deque

from rich.console import Console
from rich.live import Live

from ..replay.process import Replay
from .answers import windows
from .engines import Engine
from .view import Snapshot, View

_REFRESH = 0.25  # seconds
_TELL = 5.0  # seconds between two lines where there is no terminal to draw in
_RATE_OVER = 3.0  # seconds


def watch(engine: Engine, replay: Replay, seconds: float | None, note: str, console: Console) -> float:
    """Show the engine at work; return after how many seconds the last message was in.

    Draws over the whole terminal, or tells a line now and then where there is none. `seconds` is how long the
    stream is to last, if that is known. Raises what ended the replay or the engine, if either failed.
    """
    begin = time.monotonic()
    latest, told = 0.0, 0.0
    marks = deque([(0.0, 0)])
    with Live(console=console, screen=console.is_terminal, auto_refresh=False, transient=True) as live:
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
            if console.is_terminal:
                now = Snapshot(
                    engine.title,
                    elapsed,
                    seconds,
                    windows(look.table),
                    look.closed_until,
                    look.account,
                    rate,
                    lag,
                    "the replay is over, the engine catches up" if over else note,
                )
                live.update(View(now), refresh=True)
            elif elapsed - told >= _TELL:
                told = elapsed
                console.print(f"{elapsed:3.0f} s: {rate:,.0f} posts/s, {read:,} read, {lag:,} behind")
            if over and read >= replay.sent:
                return latest
            time.sleep(_REFRESH)
