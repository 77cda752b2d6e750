"""Runs the steps that arrive pickled over standard input: ``python -m streamgauge.operators.warm_up.worker``.

Each finished step is reported by a byte over the pipe that was its standard output. When the input closes,
because everything is done or its parent is gone, it ends at once.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
import traceback
from queue import SimpleQueue

from .steps import Step


def main() -> None:
    """Run steps until the input ends."""
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.getLogger("streamgauge").setLevel(logging.ERROR)  # its compile messages are expected
    waiting: SimpleQueue[Step] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                waiting.put(pickle.load(sys.stdin.buffer))
        except BaseException:
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            waiting.get().run()
        except BaseException:
            traceback.print_exc()
            os._exit(1)  # a regular exit would wait for the thread that reads its input
        os.write(out, b".")


if __name__ == "__main__":
    main()
