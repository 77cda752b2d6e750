"""The page on answers over HTTP: its code runs, its paths and parameters are those of the server."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import httpx

from streamgauge.queries.question.question import KINDS
from streamgauge.queries.server.http.service import Service

from .queries.server.http.served import TOKEN, fed, serving

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "serving.md").read_text()


def test_the_code_runs(capsys) -> None:
    (text,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    with serving(Service({"by-minute": fed().table}), token=TOKEN) as server:
        names = {"token": TOKEN}
        exec(text.replace("http://127.0.0.1:8055", server.url), names)
    assert names["groups"].height == 4 and names["english"]["estimate"][0] > 50
    assert "estimate" in capsys.readouterr().out


def test_the_questions_are_answered() -> None:
    lines = [line for line in PAGE.replace("\\\n", "").splitlines() if line.startswith("curl ")]
    assert len(lines) == 5
    with serving(Service({"by-minute": fed().table})) as server:
        for line in lines:
            words = shlex.split(line, comments=True)
            body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
            url = words[-1].replace("localhost:8055", server.url)
            result = httpx.post(url, json=body, timeout=120) if body else httpx.get(url, timeout=120)
            assert result.status_code == 200 and result.json()["rows"], line
        live = "/tables/by-minute/live?question=top-k&last=5m&interval=500ms"
        assert live.replace("by-minute", "NAME") in PAGE
        with httpx.stream("GET", f"{server.url}{live}", timeout=120) as response:
            assert next(response.iter_lines()) == "event: answer"
    assert all(f"`{kind}`" in PAGE or f"/tables/NAME/{kind}`" in PAGE for kind in KINDS)
