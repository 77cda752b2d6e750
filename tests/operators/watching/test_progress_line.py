"""The line that a run shows in a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watching.figures import Figures, InputFigures
from streamgauge.operators.watching.progress_line import ProgressLine, in_foreground

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()


def figures(read: int, **others: object) -> Figures:
    reported = {
        "account": Account(read, read - 1_234, 0, 1_200, 34),
        "inputs": {("posts", 0): InputFigures(lag=20_500)},
        "watermark_us": int((NOON - 3) * 1e6),
        "now": NOON,
        "open_windows": 12,
    }
    return Figures(group="g", **{**reported, **others})


def test_all_of_it_fits_into_80_columns_of_a_busy_run() -> None:
    line = ProgressLine("posts")
    line.text(figures(10_000_000), 0.0, 79)
    result = line.text(figures(12_000_000), 2.0, 79)
    assert result == ("posts  12.0 M read  1.0 M/s  34 dead  1,200 late  20.5 k wait  at 11:59:57")
    wide = line.text(figures(12_000_000), 2.0, 200)
    assert wide == f"{result}  12 windows open"


def test_what_is_left_out_of_a_narrow_terminal_matters_least() -> None:
    line = ProgressLine("posts")
    result = [line.text(figures(12_000_000), 0.0, width) for width in range(1, 100)]
    assert all(len(text) <= width for width, text in enumerate(result, 1))
    assert result[5] == "posts " and result[30] == "posts  12.0 M read  34 dead"


def test_the_rate_is_that_of_the_last_seconds() -> None:
    line = ProgressLine("posts")
    for second in range(20):
        result = line.text(figures(100_000 * second**2), float(second), 79)
    assert f"{(19**2 - 14**2) / 50:.1f} M/s" in result
    assert "  0/s" in [line.text(figures(36_100_000), 24.0 + second, 79) for second in range(3)][-1]


def test_another_day_is_named() -> None:
    assert "at 2013-07-04 21:31" in ProgressLine("posts").text(
        figures(5_000, watermark_us=int(datetime(2013, 7, 4, 21, 31, tzinfo=UTC).timestamp() * 1e6)), 0.0, 99
    )


def test_no_terminal_gets_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_foreground()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not in_foreground()
    monkeypatch.setattr(sys, "stderr", None)
    assert not in_foreground()


PROGRAM = """
import sys, time
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watching.figures import Figures
from streamgauge.operators.watching.progress_line import in_foreground, progress_lines

assert in_foreground()
with progress_lines({"posts": lambda: Figures(group="g", account=Account(read=7, counted=7))},
time.monotonic):
    print("a window", flush=True)
    sys.stdin.readline()
print("the end", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a Unix terminal")
def test_the_line_is_there_while_the_block_runs_and_gone_after_it() -> None:
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    said = b""
    while b"7 read" not in said:
        said += os.read(ours, 4096)
    os.write(ours, b"\n")
    with suppress(OSError):  # the terminal is gone once nobody has it
        while part := os.read(ours, 4096):
            said += part
    assert child.wait(120) == 0
    os.close(ours)
    assert b"a window\r\n" in said
    _, after = said.rsplit(b"7 read", 1)
    assert b"\x1b[2K" in after.partition(b"the end")[0]  # the line is erased
