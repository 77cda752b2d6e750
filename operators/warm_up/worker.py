"""Takes the steps that come pickled over standard input: ``python -m streamgauge.operators.warm_up.worker``.

Each one done is reported by a byte over the pipe that its standard output was. When the input closes, because
all is done or its parent is gone, it ends at once.
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
    """Take steps until there are no more to come."""
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.getLogger("streamgauge").setLevel(logging.ERROR)  # that it compiles is known
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
            os._exit(1)  # in order, the interpreter would wait for the thread that reads its input
        os.write(out, b".")


if __name__ == "__main__":
    main()
