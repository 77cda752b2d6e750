"""Names of which every character is seen."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.operators.rendering.names import visible_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("", "''"),
        (" ", "' '"),
        ("a ", "'a '"),
        ("\u2800", "'\\u2800'"),
        ("\u3000", "'\\u3000'"),
        ("a b", "a b"),
        (3, "3"),
    ],
)
def test_a_name_that_is_empty_or_blank_can_be_seen(name: Any, shown: str) -> None:
    assert visible_name(name) == shown
