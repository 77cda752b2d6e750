"""The program ends quietly on request before a command has begun, however far it has come."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

AWAY = ("--bootstrap-servers", "127.0.0.1:1")
COMMANDS = {
    "run": ("run", "iot", "--topic", "readings", *AWAY),
    "serve": ("serve", "--group", "by-minute", "--port", "0", *AWAY),
    "ingest": ("ingest", "tail", "readings.csv", "--topic", "readings", *AWAY),
    "archive": ("archive", "readings", "--output", "archive", *AWAY),
}
# The signal comes as a module is looked for, whose import turns the interrupt into an error of its own.
INTERRUPTED_IMPORT = """
import signal, sys

number, wanted = int(sys.argv[1]), sys.argv[2]
for each in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)

class Requested:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            try:
                signal.raise_signal(number)
            except KeyboardInterrupt:
                raise RuntimeError("interrupted") from None

sys.meta_path.insert(0, Requested())
from streamgauge.apps.cli.program import main

sys.argv = ["streamgauge", *sys.argv[3:]]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("run", "streamgauge.apps.cli.commands"),
        ("run", "streamgauge.apps.running.watching"),
        ("serve", "streamgauge.queries.server.http.server"),
        ("ingest", "streamgauge.agents.ingest.agent"),
        ("archive", "streamgauge.agents.archive.archiver"),
    ],
)
def test_a_request_during_an_import_ends_the_program_quietly(
    command: str, module: str, number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "readings.csv").write_text("")
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, str(int(number)), module, *COMMANDS[command]],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
