"""Lines of engines, which write to the process's own standard error, are not those of a demo."""

from __future__ import annotations

import subprocess
import sys

import pytest

from streamgauge.apps.demo.quiet import quiet


def test_what_engines_write_is_dropped_and_afterwards_errors_are_seen(capfd: pytest.CaptureFixture) -> None:
    write = [sys.executable, "-c", "import sys; print('WARNING: Java', file=sys.stderr)"]
    with pytest.raises(RuntimeError), quiet():
        subprocess.run(write, check=True)
        raise RuntimeError
    subprocess.run(write, check=True)
    assert capfd.readouterr().err == "WARNING: Java\n"
