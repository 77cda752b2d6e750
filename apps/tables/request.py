"""Ask a question about a table, which is answered here from files, or by a query server."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from ...queries.answers.answers import Answer

log = logging.getLogger("streamgauge.serving")

TOKEN = "STREAMGAUGE_TOKEN"
"""The environment variable that may hold a server's token."""


def answered(table: str, question: str, given: Mapping[str, Sequence[Any]], token: Path | None) -> Answer:
    """Return the answer about a file, a folder or an address ``http://HOST:PORT/tables/NAME``.

    The name is optional if a server has only one table. Raises `SketchError` and `OSError` for tables that
    can't be read, `BadQuestion` and `QueryError` for refused questions.
    """
    if table.startswith(("http://", "https://")):
        return _by_server(table, question, given, token_of(token))
    from ...operators.table.stored_files import stored_at
    from ...queries.answers.answers import answer, is_timeless
    from ...queries.question.question import question as read
    from ...queries.views.file_table import FileTable
    from ...queries.views.merge_cache import MergeCache

    view = FileTable(stored_at(table).name, table, look=None).view()
    answer_ = answer(view, read(question, given), MergeCache())
    if view.windows and not answer_.windows and not is_timeless(view):
        first, last = view.windows[0].start, max(window.end for window in view.windows)
        raise ValueError(
            f"{table}: no window lies in that span; there are windows from {_time_text(first)} "
            f"to {_time_text(last)}"
        )
    return answer_


def token_of(file: Path | None) -> str | None:
    """Read the token from a file, or else from the environment, if any. Raises `OSError`; never shows the
    token.

    Warns of a file that other users of this machine can read.
    """
    if file is not None:
        if os.name == "posix" and (mode := file.stat().st_mode & 0o777) & 0o077:
            log.warning("other users can read the token in %s (mode %o): chmod 600 %s", file, mode, file)
        return file.read_text().strip()
    return os.environ.get(TOKEN) or None


def _by_server(address: str, question: str, given: Mapping[str, Sequence[Any]], token: str | None) -> Answer:
    from ...queries.client import Client

    parts = urlsplit(address)
    base, _, name = parts.path.partition("/tables")
    with Client(f"{parts.scheme}://{parts.netloc}{base.rstrip('/')}", token) as client:
        table = unquote(name.strip("/"))
        if not table:
            known = [one["table"] for one in client.tables()]
            if len(known) != 1:
                raise ValueError(
                    f"{address}: name one of its tables, as in {address.rstrip('/')}/tables/NAME; it has "
                    f"{', '.join(known) or 'none'}"
                )
            table = known[0]
        return client.get(question, table, given)


def _time_text(time_us: int) -> str:
    from datetime import UTC, datetime, timedelta

    return str(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us))
