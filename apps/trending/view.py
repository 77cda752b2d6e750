"""The live view in a terminal: the top tags of the latest window, all windows, where every message went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ...operators.sketching.accounting import Account
from ..tables.written import plain
from .answers import Bounded, Tag, Window

_WIDE = 100  # columns from which the two halves stand side by side
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known at one moment of a run."""

    engine: str
    elapsed: float
    seconds: float | None
    windows: Sequence[Window]
    watermark: datetime | None
    account: Account
    rate: float
    lag: int
    note: str = ""


class View:
    """A snapshot as Rich shows it, in any terminal of 80 columns and 24 rows or more."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.height
        rows = max(height - 5, 12)  # between the head and the accounting line
        yield self._head()
        if width >= _WIDE:
            n = min(rows - 2, 10)
            left = width * 10 // 21
            sides = Table.grid(expand=True, padding=0)
            sides.add_column(width=left)
            sides.add_column(ratio=1)
            sides.add_row(self._tags(left, n, n + 2), self._windows(n - 1, n + 2))
            yield sides
            if rows - n - 2 >= 4:
                yield self._sample(min(rows - n - 4, 3))
        else:
            n_windows = min(4, rows - 10)
            n_tags = min(10, rows - n_windows - 5)
            yield self._tags(width, n_tags, n_tags + 2)
            yield self._windows(n_windows, n_windows + 3)
        yield accounting(self.snapshot.account, width)

    def _head(self) -> Panel:
        now = self.snapshot
        clock = _span(now.elapsed) + (f" of {_span(now.seconds)}" if now.seconds else "")
        figures = Table.grid(expand=True)
        for _ in range(4):
            figures.add_column(ratio=1)
        figures.add_row(
            Text.assemble((f"{now.rate:,.0f}", "bold green"), (" posts/s", "dim")),
            Text.assemble((f"{now.account.read:,}", "bold"), (" read", "dim")),
            Text.assemble(
                (f"{now.lag:,}", "bold yellow" if now.lag > 2 * now.rate else "bold"), (" behind", "dim")
            ),
            Text.assemble((clock, "bold"), justify="right"),
        )
        return Panel(
            figures,
            title=f"[bold]streamgauge[/] · trending · [cyan]{now.engine}[/]",
            title_align="left",
            subtitle=f"[dim]{now.note}[/]" if now.note else None,
            subtitle_align="left",
            box=box.ROUNDED,
            border_style="blue",
            padding=(0, 1),
        )

    def _tags(self, width: int, n: int, height: int) -> Panel:
        latest = self._latest()
        if latest is None:
            waiting = Text("waiting for the first window…", style="dim", justify="center")
            return Panel(waiting, title="top hashtags", title_align="left", box=box.ROUNDED, height=height)
        longest = max([12, *(_cells(plain(tag.name)) + 1 for tag in latest.tags[:n])])
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(justify="right", style="dim", width=2)
        table.add_column(no_wrap=True, width=min(longest, width // 3), overflow="ellipsis")
        table.add_column(ratio=1, no_wrap=True)
        table.add_column(justify="right", no_wrap=True, min_width=6)
        table.add_column(no_wrap=True, min_width=13, style="dim")
        most = max((tag.upper for tag in latest.tags), default=1) or 1
        used = 2 + min(longest, width // 3) + 6 + 13 + 8
        for rank, tag in enumerate(latest.tags[:n], 1):
            table.add_row(
                str(rank),
                Text(f"#{plain(tag.name)}", style="bold" if rank <= 3 else ""),
                bar(tag, most, max(width - used, 4)),
                f"{tag.estimate:,.0f}",
                between(tag),
            )
        return Panel(
            table,
            title=f"top hashtags · {self._named(latest)}",
            title_align="left",
            box=box.ROUNDED,
            border_style="green" if self._closed(latest) else "yellow",
            height=height,
        )

    def _windows(self, n: int, height: int) -> Panel:
        table = Table(box=None, expand=True, padding=(0, 1, 0, 0), header_style="dim", pad_edge=False)
        table.add_column("window", no_wrap=True)
        table.add_column("posts", justify="right", no_wrap=True)
        table.add_column("authors", justify="right", no_wrap=True)
        table.add_column("between", no_wrap=True, style="dim")
        table.add_column("top", no_wrap=True, overflow="ellipsis", ratio=1)
        for window in list(reversed(self.snapshot.windows))[:n]:
            closed = self._closed(window)
            table.add_row(
                Text.assemble(
                    ("● " if closed else "○ ", "green" if closed else "yellow"), _clock(window.start)
                ),
                f"{window.posts:,}",
                f"{window.authors.estimate:,.0f}",
                between(window.authors),
                Text(f"#{plain(window.tags[0].name)}" if window.tags else ""),
            )
        return Panel(
            table,
            title="windows · [green]●[/] closed [yellow]○[/] filling",
            title_align="left",
            box=box.ROUNDED,
            border_style="blue",
            height=height,
        )

    def _sample(self, n: int) -> Panel:
        latest = self._latest()
        posts = latest.sample[:n] if latest is not None else ()
        lines = [Text(plain(post), no_wrap=True, overflow="ellipsis") for post in posts]
        return Panel(
            Group(*lines),
            title="posts picked at random",
            title_align="left",
            box=box.ROUNDED,
            border_style="blue",
            height=n + 2,
        )

    def _latest(self) -> Window | None:
        """The window to show: the newest, or the one before it while the newest has only begun."""
        found = self.snapshot.windows
        if len(found) > 1 and found[-1].posts < found[-2].posts / 2:
            return found[-2]
        return found[-1] if found else None

    def _closed(self, window: Window) -> bool:
        watermark = self.snapshot.watermark
        return watermark is not None and window.end <= watermark

    def _named(self, window: Window) -> str:
        state = "[green]●[/]" if self._closed(window) else "[yellow]○[/]"
        return f"{state} {_clock(window.start)} – {_clock(window.end)} UTC"


def bar(tag: Tag, most: float, width: int) -> Text:
    """A tag's count as a bar: solid up to its lower bound, shaded up to its upper one."""
    eighths = max(round(tag.lower / most * width * 8), 1)
    solid = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
    shaded = max(round(tag.upper / most * width) - len(solid), 0)
    return Text.assemble((solid, "cyan"), ("░" * shaded, "cyan"))


def accounting(account: Account, width: int = 80) -> Text:
    """Where every message went, as an equation, in one line of `width` columns."""
    mark = (" ✓", "bold green") if account.balanced else (" ✗", "bold red")
    for number, dead in ((",", "dead-lettered"), (",", "dead"), ("", "dead")):
        line = Text(no_wrap=True, overflow="ellipsis", justify="center")
        line.append(f"{account.read:{number}} read = {account.counted:{number}} counted", "bold")
        line.append(f" + {account.filtered:{number}} filtered + {account.late:{number}} late")
        line.append(f" + {account.dead_lettered:{number}} {dead}").append(*mark)
        if line.cell_len <= width:
            break
    return line


def between(bounds: Bounded) -> str:
    """Bounds as people read them."""
    if round(bounds.lower) == round(bounds.upper):
        return "exactly"
    return f"{bounds.lower:,.0f}–{bounds.upper:,.0f}"


def _cells(text: str) -> int:
    return Text(text).cell_len


def _clock(moment: datetime) -> str:
    return moment.strftime("%H:%M:%S")


def _span(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds))).removeprefix("0:")
