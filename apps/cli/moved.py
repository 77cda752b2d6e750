"""Commands and options under the names that they had once: what is typed today is named in one line."""

from __future__ import annotations

import sys
from typing import Any

import typer

from ...operators.watching.terminal import write_line
from .ordered import Ordered

COMMANDS = {
    "topics": "kafka topics",
    "tail": "kafka tail",
    "groups": "kafka groups",
    "warm": "env warm",
    "cache": "env cache",
    "pack": "env pack",
    "grafana": "env dashboard",
    "inspect": "query TABLE describe",
    "supernova": "alerts",
}
"""Where each command went."""

ELSEWHERE = {"bench": "`streamgauge bench` is now `make bench`, in the project's source"}
"""What is no command any more."""

OPTIONS = {
    ("ingest", "--to"): "--topic",
    ("ingest", "--folder"): "--state",
    ("replay", "--to"): "--topic",
    ("replay", "--key"): "--key-field",
    ("archive", "--to"): "--output",
    ("archive", "--start"): "--offset",
    ("sketch", "--to"): "--output",
    ("sql", "--until"): "--once",
    ("serve", "--seconds"): "--timeout",
    ("query", "--offset"): "--window-offset",
    ("kafka tail", "--from"): "--offset",
    ("kafka groups skip", "--to"): "--offset",
    ("kafka groups reset", "--to"): "--offset",
    ("kafka groups migrate", "--start"): "--offset",
    ("alerts candidate", "--to"): "--output",
    ("alerts voevent", "--to"): "--output",
}
"""What each option of a command is called now."""

ARGUMENTS = {("alerts test", "--outlet"): "streamgauge alerts test FILE OUTLET"}
"""Options whose values are arguments now."""


class CommandLine(Ordered):
    """The program's commands; an old name of one, or of an option, ends with exit code 2 and the new name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is typed; an old name is refused."""
        if args and not ctx.resilient_parsing:
            if old := ELSEWHERE.get(args[0]):
                _refuse(old)
            if new := COMMANDS.get(args[0]):
                _refuse(f"`streamgauge {args[0]}` is now `streamgauge {new}`")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an option's old name is refused."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # The error about an unknown option is click's, or one from typer's own copy of click.
            at, option = getattr(error, "ctx", None), getattr(error, "option_name", None)
            command = "" if at is None else at.command_path.removeprefix(f"{ctx.command_path} ")
            if new := ARGUMENTS.get((command, str(option))):
                _refuse(f"`{option}` of `streamgauge {command}` is an argument now: `{new}`")
            if new := OPTIONS.get((command, str(option))):
                _refuse(f"`{option}` of `streamgauge {command}` is now `{new}`")
            raise


def _refuse(text: str) -> None:
    write_line(f"error: {text}", sys.stderr)
    raise typer.Exit(2)
