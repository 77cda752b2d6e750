"""``streamgauge serve``: a server that is queried, stopped, and says why it can't begin."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ..command import Ran

TOKEN = "0123456789abcdef0123456789abcdef"


def test_it_serves_files_to_the_command_line_until_it_is_stopped(
    ran: Ran, tables: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "posts").symlink_to(tables)
    program = [sys.executable, "-c", "from streamgauge.apps.cli.program import main; main()", "serve"]
    server = subprocess.Popen(
        [*program, str(tmp_path / "posts"), "--port", "0", "--token-file", str(tmp_path / "token")],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        said = server.stderr.readline()
        result = re.search(r"(http://127\.0\.0\.1:\d+);", said)
        assert result is not None, said
        url = result[1]
        assert httpx.get(f"{url}/health", timeout=120).json()["status"] == "alive"
        shown = httpx.get(f"{url}/tables", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=120)
        name = shown.json()["tables"][0]["table"]
        with_token = ("--token-file", tmp_path / "token", "--json")
        for kind in (
            ("top-k", "-k", "2"),
            ("rows", "--every", "span", "--by", "none"),
            ("distinct", "--by", "lang"),
        ):
            wanted = ran("query", tables, *kind, "--json")
            assert ran("query", f"{url}/tables/{name}", *kind, *with_token) == wanted
            assert ran("query", url, *kind, *with_token) == wanted  # it has one table only
        assert "token is missing" in ran("query", url, code=1)
        assert "there are" in ran("query", f"{url}/tables/nope", *with_token, code=1)
        server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0
        rest = server.stderr.read()
        assert TOKEN not in said + rest and "Traceback" not in rest
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name what to serve"),
        (("nowhere",), "no such file or folder"),
        (("--group", "g", "--host", "0.0.0.0"), "give a token"),
        (("--group", "g", "--config", "secret"), "setting 1 of --config"),
        (("--group", "g", "--config", "sasl.pasword=x"), "sasl.password"),
        (("--group", "g", "--keep", "long"), "not a duration"),
        (("--table", "windows"), "--table is for the closed windows of a group"),
        (("--group", "a", "--group", "b", "--table", "windows"), "serve groups one by one"),
    ],
)
def test_it_says_why_it_can_not_begin(ran: Ran, monkeypatch, arguments: tuple[str, ...], said: str) -> None:
    monkeypatch.delenv("STREAMGAUGE_TOKEN", raising=False)
    assert said in ran("serve", *arguments, code=1)


def test_a_token_that_could_be_guessed_is_refused_and_not_repeated(ran: Ran, monkeypatch) -> None:
    monkeypatch.setitem(os.environ, "STREAMGAUGE_TOKEN", "tr0ut")
    reported = ran("serve", "--group", "g", code=1)
    assert "at least 16 characters" in reported and "tr0ut" not in reported
