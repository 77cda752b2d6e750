"""Old names of commands and options are answered with the new ones."""

from __future__ import annotations

import pytest

from streamgauge.apps.cli.moved import COMMANDS, ELSEWHERE, OPTIONS

from ..command import Ran


@pytest.mark.parametrize("old", [*COMMANDS, *ELSEWHERE])
def test_an_old_command_says_in_one_line_where_it_went(ran: Ran, old: str) -> None:
    said = ran(old, "anything", "--to", "x", code=2)
    new = "make bench" if old in ELSEWHERE else f"streamgauge {COMMANDS[old]}"
    assert said.startswith(f"error: `streamgauge {old}` is now `{new}`") and said.count("\n") == 1


@pytest.mark.parametrize("old", COMMANDS)
def test_where_it_went_there_is_a_command(ran: Ran, old: str) -> None:
    words = [word for word in COMMANDS[old].split() if word not in ("TABLE", "describe")]
    assert f" {' '.join(words)} [OPTIONS] " in ran(*words, "--help")


@pytest.mark.parametrize(("command", "old"), OPTIONS, ids=" ".join)
def test_an_old_option_says_what_it_is_called_now(ran: Ran, command: str, old: str) -> None:
    said = ran(*command.split(), old, "x", code=2)
    assert said == f"error: `{old}` of `streamgauge {command}` is now `{OPTIONS[command, old]}`\n"
    assert f"{OPTIONS[command, old]} " in ran(*command.split(), "--help")


def test_an_option_that_is_an_argument_now_is_shown_as_one(ran: Ran) -> None:
    said = ran("alerts", "test", "outlets.toml", "--outlet", "ops", code=2)
    assert "is an argument now: `streamgauge alerts test FILE OUTLET`" in said and said.count("\n") == 1


def test_what_never_was_is_a_usage_error(ran: Ran) -> None:
    assert "No such command" in ran("topicz", code=2)
    assert "No such option" in ran("archive", "posts", "--folder", "x", code=2)
