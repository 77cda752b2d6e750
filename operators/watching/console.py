"""A Rich console for texts from elsewhere, which neither executes nor interprets them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ..rendering.names import escaped


class TerminalConsole(Console):
    r"""A console in which markup is text, and control characters are escaped before a string is laid out.

    A `rich.text.Text` keeps its line ends; a string is one line.

    >>> TerminalConsole(width=40).print("[red]a[/]\x1b[2J", ":smile:")
    [red]a[/]\x1b[2J :smile:
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        """See `rich.console.Console`."""
        return super().render_str(escaped(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `rich.console.Console`."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(escaped(text, lines=True), style)
