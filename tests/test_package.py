"""What can be imported from the package's root, and what `import *` brings."""

from __future__ import annotations

import builtins
import inspect
import sys

import pytest

import streamgauge
from streamgauge.operators.consumer import runner


def test_import_star_hides_no_name_of_python_itself() -> None:
    brought = set(streamgauge.__all__)
    assert not brought & set(dir(builtins))
    assert not brought & set(sys.stdlib_module_names)
    assert {"Stream", "count", "distinct", "sketch", "StreamTester"} <= brought


def test_every_name_that_is_offered_can_be_had() -> None:
    for name in dir(streamgauge):
        assert getattr(streamgauge, name) is not None
    assert streamgauge.sum("x").name == "sum" and streamgauge.json({}).schema == {}
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = streamgauge.nope


@pytest.mark.parametrize("name", ["run", "start"])
def test_help_shows_all_options_of_a_run(name: str) -> None:
    """Without this, `help(Stream.run)` shows an option less, or another default, than the runner has."""
    shown = list(inspect.signature(getattr(streamgauge.Stream, name)).parameters.values())[1:]
    assert shown == list(inspect.signature(runner.start).parameters.values())[1:]
