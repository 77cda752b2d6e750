"""One line in a terminal that shows a run's progress."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from .figures import Figures

_EVERY_SECONDS = 0.5
_RATE_SECONDS = 5.0
"""The span over which a rate is measured."""

_SCALES = ((1e9, "G"), (1e6, "M"), (1e4, "k"))


class ProgressLine:
    """Figures as one line, with the rate at which messages were recently read.

    >>> from ..sketching.account import Account
    >>> line = ProgressLine("posts")
    >>> line.text(Figures(group="g", account=Account(read=0, counted=0)), now=0.0, width=80)
    'posts  0 read'
    >>> figures = Figures(group="g", account=Account(read=90_000, counted=90_000), open_windows=2)
    >>> line.text(figures, now=2.0, width=80)
    'posts  90.0 k read  45.0 k/s  2 windows open'
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._seen: deque[tuple[float, int]] = deque()

    def text(self, figures: Figures, now: float, width: int) -> str:
        """The line at a time (seconds), at most `width` long: the least important parts are omitted first."""
        own = figures.account
        parts = [f"{self._topic}  {short(own.read)} read"]
        rate = self._rate(now, own.read)
        if rate is not None:
            parts.append(f"{short(rate)}/s")
        if own.dead_lettered:
            parts.append(f"{short(own.dead_lettered)} dead")
        if own.late:
            parts.append(f"{short(own.late)} late")
        if figures.lag is not None:
            parts.append(f"{short(figures.lag)} wait")
        if figures.watermark_us is not None:
            parts.append(f"at {_moment(figures.watermark_us, figures.now)}")
        if figures.open_windows:
            parts.append(f"{short(figures.open_windows)} window{'s' * (figures.open_windows > 1)} open")
        line = parts[0][:width]
        for part in parts[1:]:
            if len(line) + 2 + len(part) <= width:
                line += f"  {part}"
        return line

    def _rate(self, now: float, read: int) -> float | None:
        self._seen.append((now, read))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _RATE_SECONDS:
            self._seen.popleft()
        then, before = self._seen[0]
        return (read - before) / (now - then) if now > then else None


def short(count: float) -> str:
    """A count in at most six characters.

    >>> [short(count) for count in (7, 9_999, 12_345, 1_250_000)]
    ['7', '9,999', '12.3 k', '1.2 M']
    """
    for size, unit in _SCALES:
        if count >= size:
            scale = 1e3 if unit == "k" else size
            return f"{count / scale:.1f} {unit}"
    return f"{count:,.0f}"


def _moment(watermark_us: int, now: float) -> str:
    """A watermark as a time of day, with its date unless that is today's."""
    moment = datetime.fromtimestamp(watermark_us / 1e6, UTC)
    today = datetime.fromtimestamp(now, UTC).date()
    return f"{moment:%H:%M:%S}" if moment.date() == today else f"{moment:%Y-%m-%d %H:%M}"


def in_foreground() -> bool:
    """Whether standard error is a terminal, with this program in the foreground."""
    try:
        descriptor = sys.stderr.fileno()
        return os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return False


@contextmanager
def progress_lines(looks: Mapping[str, Callable[[], Figures]], clock: Callable[[], float]) -> Iterator[None]:
    """Keep a line for each stream up to date at the bottom of the terminal while the block runs.

    `looks` maps the beginnings of lines to functions that return the figures.
    """
    lines = {begins: ProgressLine(begins) for begins in looks}

    def text(width: int) -> str:
        now = clock()
        return "\n".join(line.text(looks[begins](), now, width) for begins, line in lines.items())

    with live_text(text):
        yield


@contextmanager
def live_text(text: Callable[[int], str]) -> Iterator[None]:
    """Keep the result of `text`, called with the width, at the bottom of the terminal while the block runs.

    The program's own output scrolls above it; at the end it disappears.
    """
    from rich.live import Live
    from rich.text import Text

    from .console import TerminalConsole

    console, ended = TerminalConsole(stderr=True), threading.Event()

    def follow(live: Live) -> None:
        while not ended.wait(_EVERY_SECONDS):
            if in_foreground():
                live.update(Text(text(console.width - 1), style="dim"), refresh=True)

    with Live(
        console=console,
        auto_refresh=False,
        transient=True,
        # Otherwise Rich would redirect to standard error what is printed to a redirected standard output.
        redirect_stdout=sys.stdout.isatty(),
    ) as live:
        following = threading.Thread(target=follow, args=(live,), name="streamgauge-progress", daemon=True)
        following.start()
        try:
            yield
        finally:
            ended.set()
            following.join()
