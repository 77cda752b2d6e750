"""An option means the same in every command: what it takes has one type and one word in all helps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from typer.main import get_command

from streamgauge.apps.cli.commands import app

PAGE = Path(__file__).resolve().parents[3] / "docs" / "command_line.md"
SYNONYMS = {
    "--until",
    "--start",
    "--begin",
    "--folder",
    "--dir",
    "--file",
    "--dest",
    "--destination",
    "--count",
}
"""Words for what other options are called: no command has them."""


class Use(NamedTuple):
    """An option of a command: the word for what it takes, and the type."""

    command: str
    metavar: str
    type: str


def type_of(hint: Any) -> str:
    """The type of a single value. For a list, this is the type of its items; all choices have one type."""
    if get_origin(hint) is Literal or isinstance(hint, EnumType):
        return "choice"
    if hint is Path:
        return "str"  # an archive's may be a URL
    inner = [one for one in get_args(hint) if one is not NoneType]
    return type_of(inner[0]) if inner else str(hint.__name__)


def uses(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Use]]:
    """All options of a command and of those below it."""
    for name, below in getattr(command, "commands", {}).items():
        yield from uses(below, (*path, name))
    hints = get_type_hints(command.callback) if command.callback is not None else {}
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name in hints:
            kind = type_of(hints[parameter.name])
            metavar = "" if kind == "bool" else "choice" if kind == "choice" else parameter.metavar
            for name in parameter.opts:
                yield name, Use(" ".join(path), metavar, kind)


def by_name() -> dict[str, list[Use]]:
    options = defaultdict(list)
    for name, use in uses(get_command(app)):
        options[name].append(use)
    return options


def test_an_option_takes_the_same_in_every_command() -> None:
    different = {
        name: sorted({(one.metavar, one.type) for one in own})
        for name, own in by_name().items()
        if len({(one.metavar, one.type) for one in own}) > 1
    }
    assert different == {}


def test_an_option_that_takes_a_value_has_a_word_for_it() -> None:
    assert [
        (name, one.command) for name, own in by_name().items() for one in own if one.metavar is None
    ] == []


def test_the_page_says_what_options_take() -> None:
    page, options = PAGE.read_text(encoding="utf-8").partition("## Options")[2], by_name()
    shown = re.findall(r"`(--[a-z-]+)(?: (\S+))?`", page.partition("```")[0])
    assert len(shown) > 15
    assert [(name, options[name][0].metavar) for name, _ in shown] == shown


def test_the_page_names_all_commands() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## Commands")[2].partition("## Options")[0]
    words = {word for shown in re.findall(r"`([^`]+)`", page) for word in shown.split()}
    commands = {word for own in by_name().values() for one in own for word in one.command.split()}
    assert commands <= words


def test_one_meaning_has_one_name() -> None:
    assert SYNONYMS & by_name().keys() == set()


def test_options_are_counted_in_all_commands() -> None:
    commands = {one.command for own in by_name().values() for one in own}
    assert {"", "run", "kafka groups reset", "env warm", "alerts candidate", "demo apps"} <= commands
