"""Log records say which run they are about, in JSON on request, and no secret."""

from __future__ import annotations

import io
import json
import logging
import threading
from typing import Any

import pytest

from streamgauge.operators.watching.logs import about, log_to


def lines(written: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_record_has_the_fields_of_its_thread_and_its_own() -> None:
    log, written = logging.getLogger("streamgauge.kafka"), io.StringIO()
    undo = log_to(written, format="json")
    try:
        with about(group="g", topic="posts"):
            log.info("one", extra={"partition": 3, "offset": 17})
            with about(topic="trades"):
                log.info("two")
            other = threading.Thread(target=lambda: log.info("three"))
            other.start()
            other.join()
        log.info("four")
    finally:
        undo()
    log.warning("not written any more")
    result = lines(written)
    assert [
        (reported["message"], reported.get("group"), reported.get("topic"), reported.get("offset"))
        for reported in result
    ] == [
        ("one", "g", "posts", 17),
        ("two", "g", "trades", None),
        ("three", None, None, None),
        ("four", None, None, None),
    ]
    assert {"time", "level", "logger"} <= result[0].keys() and result[0]["partition"] == 3


@pytest.mark.parametrize("format", ["json", "text"])
def test_a_traceback_and_its_message_hide_logins(format: Any) -> None:
    log, written = logging.getLogger("streamgauge.kafka"), io.StringIO()
    undo = log_to(written, format=format)
    try:
        try:
            raise ValueError("no answer from https://me:tr0ut@box/token")
        except ValueError:
            log.exception("failed at %s", "https://me:tr0ut@box")
    finally:
        undo()
    reported = str(lines(written)[0]["error"]) if format == "json" else written.getvalue()
    assert "ValueError: no answer from https://…@box/token" in reported
    assert "failed at https://…@box" in written.getvalue() and "tr0ut" not in written.getvalue()


def test_another_format_and_another_level_are_refused() -> None:
    before = logging.getLogger("streamgauge").handlers[:]
    with pytest.raises(ValueError, match="format must be 'text' or 'json', got 'xml'"):
        log_to(format="xml")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="LOUD"):
        log_to(level="LOUD")
    assert logging.getLogger("streamgauge").handlers == before
