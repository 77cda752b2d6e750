"""The program `streamgauge`: its command line, which Ctrl-C and SIGTERM end quietly while it loads, too."""

from __future__ import annotations

import atexit
import signal

from ..ending import at_once, leave_at_once, quietly


def main() -> None:
    """Run the command line; see `apps.cli.commands`."""
    # Last of all Python gives a signal with a handler back its default, which is to be killed by it.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with at_once():
        from .commands import main as command_line
    try:
        with quietly():
            command_line()
    finally:
        # Python's own end takes a moment, and shows a traceback where it is interrupted.
        leave_at_once()
