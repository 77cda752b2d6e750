"""Commands and groups of commands in one order; typer lists groups behind all commands."""

from __future__ import annotations

from typing import Any, ClassVar

from typer.core import TyperGroup


class Ordered(TyperGroup):
    """Commands in the order of `names`."""

    names: ClassVar[tuple[str, ...]] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, as help and completion list them."""
        return [*self.names]
