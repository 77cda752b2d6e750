"""The public `sql`: SQL statements as streams and frames.

Like `stream`, this stands above the definition and the engine, and only delegates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .stream import Stream

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from .queries.sql.plan.selection import AnswerSelection


@dataclass(frozen=True, eq=False)
class SqlStream(Stream):
    """The stream of a query, which runs like any other; `answers` returns the query's own rows.

    >>> import streamgauge as sg
    >>> counts = sg.sql(
    ...     "CREATE STREAM posts (at TIMESTAMP, lang VARCHAR) WITH (KAFKA_TOPIC='posts', TIMESTAMP='at');"
    ...     "SELECT lang, COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY lang"
    ...     " HAVING COUNT(*) > 1 EMIT FINAL"
    ... )
    >>> tester = sg.StreamTester(counts)
    >>> message = b'{"at": "2026-01-01T00:00:01", "lang": "%s"}'
    >>> _ = tester.feed_messages([message % lang for lang in (b"en", b"fi", b"en")])
    >>> counts.answers(tester.finish().tables()).rows()
    [('en', 2)]
    """

    selection: AnswerSelection | None = None
    sinks: tuple[Any, ...] = ()

    def answers(self, table: pa.Table) -> pl.DataFrame:
        """The query's columns for closed windows for which HAVING holds.

        `table` is a table of this stream's sketches, for example `Summary.table` or the argument of
        `on_window`. Raises `TypeError` for a query of rows, which has no windows.
        """
        if self.selection is None:
            raise TypeError("answers: the query has no windows, and its rows are sent on one by one")
        return self.selection.rows(table)


def sql(
    text: str,
    *,
    bootstrap_servers: str = "localhost:9092",
    config: Mapping[str, Any] | None = None,
) -> SqlStream | pl.DataFrame:
    """Return the result of the last statement: a stream for either engine, or a frame of rows.

    A query of a topic, and a CREATE … AS SELECT or INSERT INTO … SELECT, gives a `SqlStream`: nothing is read
    before it runs, and with its `sinks` a run writes its windows to the topic. A query of a stored table, and
    SHOW, PRINT and DESCRIBE, give a frame. Earlier statements only define names; none of them is run.
    `bootstrap_servers` and `config` are as in `Stream.from_kafka`.

        counts = sg.sql(open("counts.sql").read())
        counts.run(until="latest", sinks=counts.sinks)

    Raises `SqlError`, with line and column, for errors in a statement:

    >>> import streamgauge as sg
    >>> sg.sql("SELECT lnag FROM posts EMIT CHANGES")
    Traceback (most recent call last):
    streamgauge.queries.sql.errors.SqlError: line 1, column 18: no stream or table is called posts; ...
    """
    from .queries.sql.run.python_api import run_last

    return run_last(text, bootstrap_servers, config, SqlStream)
