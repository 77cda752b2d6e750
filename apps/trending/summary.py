"""The end of a run: every answer beside the exact one, and whether it lies inside its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ...operators.sketching.accounting import Account
from ..tables.written import plain
from .answers import CONFIDENCE, Bounded, Tag, Window
from .exact import Exact, ExactWindow
from .view import accounting, between

_NONE = ExactWindow()
_STYLE: dict[str, Any] = {
    "title_justify": "left",
    "title_style": "bold",
    "header_style": "bold",
    "box": box.SIMPLE_HEAD,
}


@dataclass(frozen=True, slots=True)
class CheckedWindow:
    """A window's answers and the exact ones."""

    window: Window
    exact: ExactWindow

    @property
    def posts_agree(self) -> bool:
        """Whether the count of posts is right; it has no bounds."""
        return self.window.posts == self.exact.posts

    @property
    def authors_inside(self) -> bool:
        """Whether the number of authors lies between its bounds."""
        return self.window.authors.holds(len(self.exact.authors))

    def tag_inside(self, tag: Tag) -> bool:
        """Whether a tag's count lies between its bounds."""
        return tag.holds(self.exact.tags[tag.name])

    @property
    def none_missed(self) -> bool:
        """Whether no tag that was left out of the list is more frequent than the last one's upper bound."""
        named = {tag.name for tag in self.window.tags}
        left_out = max((n for tag, n in self.exact.tags.items() if tag not in named), default=0)
        return left_out <= min((tag.upper for tag in self.window.tags), default=0)

    @property
    def checks(self) -> list[bool]:
        """One verdict an answer."""
        tags = [self.tag_inside(tag) for tag in self.window.tags]
        return [self.posts_agree, self.authors_inside, self.none_missed, *tags]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        window, exact = self.window, self.exact
        authors = window.authors
        return {
            "start": _iso(window.start),
            "end": _iso(window.end),
            "posts": window.posts,
            "exact_posts": exact.posts,
            "authors": {
                "estimate": authors.estimate,
                "lower": authors.lower,
                "upper": authors.upper,
                "exact": len(exact.authors),
                "inside_bounds": self.authors_inside,
            },
            "top_tags": [
                {
                    "tag": tag.name,
                    "estimate": tag.estimate,
                    "lower": tag.lower,
                    "upper": tag.upper,
                    "exact": exact.tags[tag.name],
                    "inside_bounds": self.tag_inside(tag),
                }
                for tag in window.tags
            ],
            "inside_bounds": all(self.checks),
        }


@dataclass(frozen=True)
class Summary:
    """A finished run: its accounts and its windows, checked.

    `seconds` is how long messages were being read, `repeated` how many posts came more than once and were
    counted as often.
    """

    engine: str
    account: Account
    seconds: float
    windows: Sequence[CheckedWindow]
    exact_account: Account
    repeated: int
    title: str = ""
    kept: str | None = None

    @classmethod
    def of(
        cls,
        engine: str,
        account: Account,
        seconds: float,
        windows: Sequence[Window],
        exact: Exact,
        **more: Any,
    ) -> Summary:
        """Check windows against exact answers; a window that only one side has is wrong."""
        known = {window.start: window for window in windows}
        checked = [CheckedWindow(window, exact.windows.get(start, _NONE)) for start, window in known.items()]
        checked += [
            CheckedWindow(_absent(start, exact), found)
            for start, found in exact.windows.items()
            if start not in known
        ]
        checked.sort(key=lambda one: one.window.start)
        return cls(engine, account, seconds, checked, exact.account, exact.repeated, **more)

    @property
    def messages_per_second(self) -> float:
        """Messages read a second, on average."""
        return self.account.read / self.seconds if self.seconds > 0 else 0.0

    @property
    def checks(self) -> list[bool]:
        """One verdict an answer, and one for the account."""
        return [check for window in self.windows for check in window.checks] + [self.accounts_agree]

    @property
    def accounts_agree(self) -> bool:
        """Whether the engine's account balances and is the exact one."""
        return self.account.balanced and self.account == self.exact_account

    @property
    def all_inside_bounds(self) -> bool:
        """Whether every answer lies inside its bounds."""
        return bool(self.windows) and all(check for window in self.windows for check in window.checks)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "engine": self.engine,
            **self.account.to_dict(),
            "messages_per_second": round(self.messages_per_second, 1),
            "seconds": round(self.seconds, 3),
            "repeated": self.repeated,
            "accounts_agree": self.accounts_agree,
            "confidence": CONFIDENCE,
            "windows": [window.to_dict() for window in self.windows],
            "all_inside_bounds": self.all_inside_bounds,
            **({"bootstrap_servers": self.kept} if self.kept else {}),
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(
            ("\nTrending", "bold"),
            f" on {self.title or self.engine}: {self.account.read:,} messages in {self.seconds:.1f} s, ",
            (f"{self.messages_per_second:,.0f} a second", "bold green"),
        )
        yield accounting(self.account, options.max_width)
        if self.repeated:
            yield Text(
                f"{self.repeated:,} posts came more than once, and count as often",
                style="dim",
                justify="center",
            )
        yield self._windows()
        if self.windows:
            yield self._tags(max(self.windows, key=lambda one: one.window.posts))
        yield self._verdict()
        if self.kept:
            yield Text.assemble(
                "\nThe broker is still up at ",
                (self.kept, "bold"),
                "; `streamgauge kafka stop --name demo` ends it",
            )

    def _windows(self) -> Table:
        table = Table(title="\nwindow by window", **_STYLE)
        table.add_column("window (UTC)", no_wrap=True)
        for name in ("posts", "authors", "exactly"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("between", no_wrap=True)
        table.add_column("tags", justify="right", no_wrap=True)
        for one in self.windows:
            window = one.window
            tags = [one.tag_inside(tag) for tag in window.tags]
            table.add_row(
                f"{window.start:%H:%M:%S}",
                Text.assemble(f"{window.posts:,} ", _mark(one.posts_agree)),
                f"{window.authors.estimate:,.0f}",
                f"{len(one.exact.authors):,}",
                Text.assemble(between(window.authors), " ", _mark(one.authors_inside)),
                Text.assemble(f"{sum(tags)}/{len(tags)} ", _mark(all(tags) and one.none_missed)),
            )
        return table

    def _tags(self, one: CheckedWindow) -> Table:
        window = one.window
        title = f"\ntop hashtags of {window.start:%H:%M:%S} – {window.end:%H:%M:%S}"
        table = Table(title=title, **_STYLE)
        table.add_column("", justify="right", style="dim")
        table.add_column("tag", no_wrap=True, overflow="ellipsis", max_width=30)
        table.add_column("posts", justify="right")
        table.add_column("exactly", justify="right")
        table.add_column("between", no_wrap=True)
        for rank, tag in enumerate(window.tags, 1):
            table.add_row(
                str(rank),
                Text(f"#{plain(tag.name)}"),
                f"{tag.estimate:,.0f}",
                f"{one.exact.tags[tag.name]:,}",
                Text.assemble(between(tag), " ", _mark(one.tag_inside(tag))),
            )
        return table

    def _verdict(self) -> Text:
        checks = self.checks
        wrong = len(checks) - sum(checks)
        if not self.windows:
            return Text("\nNo post was counted, so there is nothing to compare.", style="bold yellow")
        if not wrong:
            said = f"\nAll {len(checks)} answers hold: counts are exact, estimates lie inside their bounds."
            return Text(said, style="bold green")
        account = (
            "" if self.accounts_agree else f" The exact account is: {accounting(self.exact_account, 200)}"
        )
        return Text(f"\n{wrong} of {len(checks)} answers do not hold.{account}", style="bold red")


def _absent(start: datetime, exact: Exact) -> Window:
    """A window that the engine should have had and did not have."""
    return Window(start, start + exact.length, 0, Bounded(0, 0, 0), (), ())


def _mark(right: bool) -> tuple[str, str]:
    return ("✓", "green") if right else ("✗", "bold red")


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
