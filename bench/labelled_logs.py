"""How many labelled failure lines of others' own samples the logs app blames on the labelled address.

``python -m bench.labelled_logs [FOLDER…]`` prints a table of files × right, wrong, missed, refused for each
folder, a clone of https://github.com/fail2ban/fail2ban or https://github.com/crowdsecurity/hub; without one,
it clones both. It is not among the benchmarks that ``python -m bench`` runs, because it needs the network.
Files are of daemons that docs/logs.md names.

fail2ban's labels are the ``# failJSON: {…}`` lines before the line they are about, CrowdSec's the addresses
that its parsers' tests assert.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.logs.app import APP
from streamgauge.operators.formats.messages import Messages

SOURCES = ("https://github.com/fail2ban/fail2ban", "https://github.com/crowdsecurity/hub")
FILES = (
    *("sshd", "sshd-journal", "pam-generic", "postfix", "dovecot", "courier-auth", "courier-smtp", "exim"),
    *("exim-spam", "sendmail-auth", "sendmail-reject", "cyrus-imap", "vsftpd", "proftpd", "pure-ftpd"),
    *("dropbear", "mysqld-auth", "nginx-http-auth", "apache-auth", "haproxy-http-auth", "traefik-auth"),
)
COLUMNS = ("right", "wrong", "missed", "refused", "harmless", "blamed")
TESTS = (
    *("sshd-logs", "exim-logs", "vsftpd-logs", "proftpd-logs", "pureftpd-logs", "dropbear-logs"),
    *("mysql-logs", "mariadb-logs", "pgsql-logs", "supabase-docker-pgsql-logs"),
)
_ASSERTED = re.compile(
    r'results\["s01-parse"\]\["([^"]+)"\]\[(\d+)\]\.Evt\.(?:Meta|Parsed)\["(source_ip|message|log_type)"\]'
    r' == ("(?:[^"\\]|\\.)*")'
)
_LABEL = re.compile(r"# ?failJSON: (\{.*\})\s*$")
_NO_TIME = re.compile(r"[a-z]\S* [\w/-]+\[\d+\]: ")
_BEGAN = "Jan  1 00:00:00"
"""Lines of the journal are without a time there, because journald has it beside them."""
_SENT_MS = 1_900_000_000_000
"""After every line, so that times without a year get one."""


def labelled(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """The lines of a file with their labels."""
    label = None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if match := _LABEL.match(line):
            label = json.loads(match[1])
        elif label is not None and line and not line.startswith("#"):
            yield label, line
            label = None


def judged(lines: list[tuple[dict[str, Any], str]]) -> Iterator[tuple[str, dict[str, Any], str, Any]]:
    """The outcome of each line, its label, its text, and the row that the app made of it."""
    job = Job.of(APP, "lines")
    stream = job.form.source(Feed("bench", "localhost:9092"), job.settings)
    values = [(f"{_BEGAN} {line}" if _NO_TIME.match(line) else line).encode() for _, line in lines]
    decoded = stream.reading.kafka_source.value.decode(
        Messages.of(values, timestamps=[_SENT_MS] * len(values))
    )
    rows = stream.reading.transform(decoded.frame.lazy()).collect().to_dicts()
    numbers = list(range(len(values))) if decoded.rows is None else decoded.rows.tolist()
    by_number = dict(zip(numbers, rows))
    for number, (label, line) in enumerate(lines):
        row = by_number.get(number)
        counted = row is not None and row["refused"] > 0 and row["address"] is not None
        if not label.get("match") or "host" not in label:
            outcome = "blamed" if counted else "harmless"
        elif row is None:
            outcome = "refused"
        elif not counted:
            outcome = "missed"
        else:
            outcome = "right" if row["address"] == label["host"] else "wrong"
        yield outcome, label, line, row


def of_crowdsec(folder: Path) -> list[tuple[dict[str, Any], str]]:
    """The lines of a test of CrowdSec's hub, with the address that its parser finds in each."""
    lines = [line for path in folder.glob("*.log") for line in path.read_text(errors="replace").splitlines()]
    values: dict[tuple[str, str], dict[str, str]] = {}
    for match in map(_ASSERTED.match, (folder / "parser.assert").read_text(errors="replace").splitlines()):
        if match:
            values.setdefault((match[1], match[2]), {})[match[3]] = json.loads(match[4])
    labels = {
        one["message"]: one["source_ip"]
        for one in values.values()
        if one.get("source_ip") and one.get("message") and "fail" in one.get("log_type", "fail")
    }
    pairs = ((line, address) for line in lines for text, address in labels.items() if text in line)
    return [({"match": True, "host": address}, line) for line, address in dict(pairs).items()]


def table_of(files: dict[str, list[tuple[dict[str, Any], str]]], shown: bool) -> Table:
    """The outcome of the lines of each file."""
    table, sums = Table("file", *COLUMNS), Counter[str]()
    for name, lines in files.items():
        counts = Counter[str]()
        for outcome, label, line, row in judged(lines):
            counts[outcome] += 1
            if shown and outcome in ("wrong", "missed", "refused", "blamed"):
                signs = row and (row["sign"], row["address"])
                print(name, outcome, label.get("host"), signs, line, sep=" | ")
        sums += counts
        table.add_row(name, *(str(counts[column]) for column in COLUMNS))
    table.add_section()
    table.add_row("all", *(str(sums[column]) for column in COLUMNS))
    return table


def main(arguments: list[str]) -> int:
    """Print the tables, and with ``--lines`` the lines that are not right."""
    shown, folders = "--lines" in arguments, [Path(one) for one in arguments if one != "--lines"]
    with tempfile.TemporaryDirectory() as scratch:
        if not folders:
            folders = [Path(scratch) / source.rsplit("/", 1)[1] for source in SOURCES]
            for source, folder in zip(SOURCES, folders):
                subprocess.run(["git", "clone", "--depth", "1", source, str(folder)], check=True)
        for folder in folders:
            logs, tests = folder / "fail2ban" / "tests" / "files" / "logs", folder / ".tests"
            if logs.is_dir():
                files = {name: list(labelled(logs / name)) for name in FILES}
            else:
                files = {name: of_crowdsec(tests / name) for name in TESTS}
            Console().print(table_of(files, shown))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
