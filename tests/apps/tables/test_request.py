"""A token's file is read, and remarked on if others can read it as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.apps.tables.request import token_of


def test_a_token_that_others_can_read_is_remarked_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("tr0ut\n")
    for mode in (0o600, 0o400, 0o640, 0o604):
        caplog.clear()
        file.chmod(mode)
        assert token_of(file) == "tr0ut"
        assert bool(caplog.messages) == (mode in (0o640, 0o604)), oct(mode)
    assert f"chmod 600 {file}" in caplog.text and "tr0ut" not in caplog.text
