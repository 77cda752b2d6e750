"""A candidate's page, made from recorded packets or fetched from a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from ...operators.testing import StreamTester
from ...sketches.core.errors import StreamgaugeError
from ..app import Feed, Message
from ..jobs.job import Job
from ..jobs.outcome import AlertList, events
from ..page.object_page import ShownObject, object_page
from ..running.recording import RecordedMessages
from ..tables.request import token_of
from .app import APP, OBJECT

_AT_ONCE = 1_000


class NoCandidate(StreamgaugeError, LookupError):
    """An object has no page; the message says why."""


def page_from_recording(
    paths: Sequence[Path], name: str, format: str | None, given: Mapping[str, str]
) -> str:
    """Make the page of an object by running the app over recorded packets.

    Raises `NoCandidate` for an object without an alert that passed, and `OSError` or `ValueError` for files
    and settings that can't be read.
    """
    job = Job.of(APP, format, given, recording=paths[0])
    part = next(one for one in job.parts if one.name == OBJECT.part)
    alerts = AlertList()
    alerting = job.alerting(part, [alerts])
    stream = job.streams(Feed("packets", "localhost:1"))[part.name]
    tester = StreamTester(stream, start=datetime.now(UTC), sinks=[] if alerting is None else [alerting])
    read = RecordedMessages(job, list(paths)).messages()
    while some := list(islice(read, _AT_ONCE)):
        _feed(tester, some)
    tester.finish()
    rows = [row for row in tester.windows().iter_rows(named=True) if row[OBJECT.each] == name]
    mine = [one for one in events(alerts.alerts) if name in (one["key"], *_parts(one["key"]))]
    assert part.at is not None
    shown = ShownObject.of(OBJECT, part.at, rows, name, mine[::-1])
    if shown is None:
        passed = sorted({str(alert.key[0]) for alert in alerts.alerts if alert.kind == "candidate"})
        known = f"the candidates are {', '.join(passed[:10])}" if passed else "no candidate passed"
        raise NoCandidate(f"no alert of {name!r} passed the cuts {job.settings['cuts']} here; {known}")
    return object_page(shown, APP.title)


def _parts(key: object) -> list[object]:
    return list(key) if isinstance(key, list) else []


def _feed(tester: StreamTester, messages: Sequence[Message]) -> None:
    times = [datetime.fromtimestamp((one.sent_ms or 0) / 1000, UTC) for one in messages]
    tester.feed_messages([one.value for one in messages], [one.key for one in messages], timestamps=times)


def page_of_server(url: str, name: str, token_file: Path | None) -> str:
    """Fetch the page of an object from a server. Raises `NoCandidate` with the server's message."""
    import httpx

    token = token_of(token_file)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    address = f"{url.rstrip('/')}/apps/{APP.name}/objects/{quote(name, safe='')}.html"
    try:
        response = httpx.get(address, headers=headers, timeout=60)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoCandidate(f"{url} can't be reached: {error}") from None
    if response.status_code != 200:
        raise NoCandidate(f"{url} has no page of {name!r}: {_detail(response.text)}")
    return response.text


def _detail(text: str) -> str:
    import json

    try:
        problem = json.loads(text)
        return str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return text[:200]
