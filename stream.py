"""The public `Stream`: a definition that can also be run.

The definition (`operators.definition.stream.Stream`) is independent of engines, and each engine accepts it as
an argument. This module stands above both and only delegates: no engine is imported before it is needed, and
nothing in the package imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from .operators.consumer.options import RunKeywords, RunOptions, with_run_options
from .operators.definition.foreign_words import answers_in_our_words
from .operators.definition.sources import FrameSource
from .operators.definition.stream import Stream as Definition

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from .operators.consumer.run import Run
    from .operators.consumer.summary import Summary
    from .operators.files.local_run import LocalTable


@answers_in_our_words
class Stream(Definition):
    """A stream: what to read, how to transform rows, what to count; with methods to run it.

    Begin with `from_kafka`, or with `from_schema` to try something out. Each further method returns a new
    stream, so you can derive several from one. Nothing is read before `run`, `start` or `on_spark`.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> schema = {"user": pl.String, "lang": pl.String}
    >>> posts = sg.Stream.from_kafka("posts", value=sg.json(schema)).group_by("lang").tumbling("1m")
    >>> by_language = posts.agg(posts=sg.count(), users=sg.distinct("user"))
    >>> tester = sg.StreamTester(by_language)
    >>> rows = [{"user": user, "lang": "en"} for user in ("ann", "bob", "ann")]
    >>> tester.feed(rows).counted, tester.finish().windows()["posts"].to_list()
    (3, [3])
    """

    @classmethod
    def from_frame(cls, frame: Any, *, time: str | pl.Expr | None = None) -> Self:
        """A stream of the rows of a frame of Polars (lazy or not) or pandas, or of an Arrow table.

        `run` reads it in this process. `time` is as for `from_kafka`; without it there are no windows, and
        `agg` gives one row for each group. Raises `TypeError` for anything but a frame, and for a time that
        is not a column or not a time.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> posts = sg.Stream.from_frame(pl.DataFrame({"lang": ["en", "de", "en"], "user": [1, 2, 3]}))
        >>> posts.group_by("lang").agg(users=sg.count()).run().windows().rows()
        [('de', 1), ('en', 2)]
        """
        from .operators.files.local_run import stream_of

        return stream_of(cls, frame, time)

    @classmethod
    def from_files(cls, files: Any, *, time: str | pl.Expr | None = None) -> Self:
        """A stream of the rows of files: Parquet, CSV, lines of JSON or Arrow IPC, by their extensions.

        `files` is a file, a folder, a pattern such as ``"posts/*.parquet"``, an address that Polars reads, or
        a list of these. The first file determines the columns, and the others must have the same ones. `run`
        reads the files one after another, so they may be larger than memory. `time` is as for `from_frame`.

        Raises `InputError` for files that are missing or can't be read, and `TypeError` for a time that is
        not a column or not a time.
        """
        from .operators.files.local_run import stream_of

        return stream_of(cls, files, time)

    @with_run_options
    def run(self, *, progress: bool = True, **options: Unpack[RunKeywords]) -> Summary:
        """Run as a Kafka consumer until the end, and return the result.

        With ``until="latest"`` it ends when all messages that exist now are counted. Otherwise it runs until
        Ctrl-C, SIGTERM or SIGHUP end it cleanly, unless the program handles these itself; the summary is then
        marked `interrupted`. In a terminal it shows a progress line, unless ``progress=False``. It accepts
        all other options of `start`, and raises what `start` and `Run.wait` raise. A stream that reads an
        archive ends at the archive's end, and accepts `on_window` and sinks that need no broker.

            posts.run(until="latest", workers=2).windows()
            posts.run(on_window=lambda table: print(table.answers()))

        Options are checked before a broker is contacted:

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> posts = sg.Stream.from_kafka("posts", value=sg.json({"user": pl.String})).tumbling("1m")
        >>> posts.agg(n=sg.count()).run(until="latest", workers=0)
        Traceback (most recent call last):
        ValueError: workers must be an integer ≥ 1, got 0
        """
        if isinstance(self.source, FrameSource):
            from .operators.files.local_run import run_over_data

            return run_over_data(self, RunOptions(**options), progress)
        if self.reading.reads_archive:
            from .operators.archive.archive_run import run_archive

            return run_archive(self.complete(), RunOptions(**options))
        from .operators.consumer import runner

        return runner.run(self, RunOptions(**options), progress)

    def over(self, data: Any, *, threads: int | None = None, progress: bool = True) -> LocalTable:
        """Return the table of sketches of a frame or of files, computed in this process on all cores.

        `data` is a Polars frame (lazy or not), a pandas frame, or anything else with an Arrow stream; a file,
        a folder or a pattern of Parquet, CSV, lines of JSON or Arrow IPC (``"posts/*.parquet"``), read piece
        by piece; or a list of these. This needs neither Kafka nor Java. The definition is the same as on a
        topic, so the tables of both can be merged and compared. The data must have the columns that the
        decoder produces; for a stream `from_kafka`, lines of ``.jsonl`` and ``.ndjson`` files pass through
        its decoder.

        The input is complete, so its order doesn't matter: no row is late, and windows close at the end.
        Deduplication, `fill_forward` and count windows depend on earlier rows; they read files in the order
        of their names, on one thread. `threads` is the number of threads, by default one for each core. In a
        terminal a progress bar is shown, unless ``progress=False``.

        The table's `account` counts the outcome of all rows; a logged warning explains why rows were refused.
        Raises `InputError` for files that can't be read and for columns of other types, and `TypeError` for
        streams that read several topics, are joined with a table, or forward their rows.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"lang": pl.String, "user": pl.Int64})
        >>> frame = pl.DataFrame({"lang": ["en", "de", "en"], "user": [1, 2, 3]})
        >>> table = rows.group_by("lang").agg(n=sg.count(), users=sg.distinct("user")).over(frame)
        >>> table.answers().select("lang", "n").rows(), table.account
        ([('de', 1), ('en', 2)], Account(read=3, counted=3, filtered=0, late=0, dead_lettered=0))
        """
        from .operators.files.local_run import table_over

        return table_over(self, data, threads, progress)

    @with_run_options
    def start(self, **options: Unpack[RunKeywords]) -> Run:
        """Start as a Kafka consumer, and return the running stream immediately.

            run = posts.start(group_id="trends", on_window=lambda table: print(table.answers()))
            run.table().answers()  # the answers so far, those of windows that still fill included
            run.summary()          # the outcome of the messages, and how many wait
            run.stop()             # in order; run.wait() gives the last summary

        `operators.consumer.options.RunOptions` describes each option and its values. The most common are:
        `on_window` gets the table of sketches of each window as it closes; a window that only silence has
        closed may be emitted again, complete, with the rows that followed: replace the earlier one by its
        `window_start` and keys. Runs of the same `group_id` share the work, and a later run resumes where the
        last one ended; without a group the run is independent, reads from the start and leaves nothing
        behind. With more than one of `workers`, each is a process. `dead_letters` names the topic for
        messages that can't be counted (``"<topic>.dead-letters"`` by default; None drops them). `sinks` get
        the closed windows, each exactly once:
        ``[AnswersToKafka("answers"), SketchesToParquet("out"), SketchesToKafka()]``. ``metrics=9400`` serves
        Prometheus's metrics and the run's health.

        Raises `TopicError` if the topic doesn't exist or was recreated since the group began,
        `DefinitionChanged` if the group has a different definition, with the difference, and `ValueError` or
        `TypeError` for invalid options and for streams that can't run:

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Datetime("us")}, time="at").tumbling("1m")
        >>> rows.agg(n=sg.count()).start()
        Traceback (most recent call last):
        TypeError: this stream's rows come from frames; only Stream.from_kafka(...) can be run
        """
        from .operators.consumer import runner

        return runner.start(self, RunOptions(**options))

    def on_spark(
        self,
        spark: SparkSession,
        *,
        streaming: bool = True,
        start: Literal["earliest", "latest"] | Mapping[str, Mapping[str, int]] = "earliest",
        max_per_trigger: int | None = None,
        dead_letters: str | None = "",
        late: str | None = None,
        idle_seconds: float = 5.0,
        close_at_end: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """Return the table of sketches as a DataFrame, merged in Spark, with windows closed by event time.

            write(posts.on_spark(session()), "checkpoint", AnswersToConsole()).awaitTermination()
            posts.on_spark(session(), streaming=False).show()      # what is in the topic now, read once

        `start` is where a new query begins, `max_per_trigger` the largest number of offsets per micro-batch.
        `dead_letters` names the topic for messages that can't be counted (``"<topic>.dead-letters"`` by
        default; None drops them), `late` the topic for messages whose windows are all over
        (``"<topic>.late-messages"`` if empty; None only counts them). Partitions that are silent for
        `idle_seconds` don't hold windows open. With the trigger ``availableNow``, incomplete windows stay
        open for the next run; ``close_at_end=True`` closes them for good at the end of a run. `options` are
        further options of the source, with the names of Spark's own. `spark_udafs.streaming.run.on_spark`
        describes the promises for windows, and the exceptions:

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Datetime("us")}, time="at").tumbling("1m")
        >>> rows.agg(n=sg.count()).on_spark(None)
        Traceback (most recent call last):
        TypeError: this stream's rows come from frames; only Stream.from_kafka(...) can be run
        """
        from .spark_udafs.streaming.run import on_spark

        return on_spark(
            self,
            spark,
            streaming=streaming,
            start=start,
            max_per_trigger=max_per_trigger,
            dead_letters=dead_letters,
            late=late,
            idle_seconds=idle_seconds,
            close_at_end=close_at_end,
            options=options,
        )
