"""`streamgauge archive`: topics kept as Parquet files that can be replayed and asked again."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...operators.rendering.names import amount
from ...operators.watching.terminal import write_json, write_line
from ..ending import at_once
from .settings import Config, ConfigFile, Servers, kafka_settings

if TYPE_CHECKING:
    from ...agents.archive.archiver import Archiver
    from ...operators.archive.segment import Segment
    from ...operators.formats.decode import Decoder

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_RETENTION_SECONDS = 60.0


def archive(
    topics: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC | verify PATH", help="Topics to archive; or an archive to check."),
    ],
    output: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Folder to write to, or a URL such as s3://bucket/archive."),
    ] = None,
    bootstrap_servers: Servers = "localhost:9092",
    size: Annotated[
        str, typer.Option(metavar="BYTES", help="Write a file once its messages reach this size …")
    ] = "128MiB",
    interval: Annotated[
        str, typer.Option(metavar="LENGTH", help="… or this long after its first message, if sooner.")
    ] = "10m",
    keep: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="Remove files with only older messages, such as 30d.")
    ] = None,
    group: Annotated[
        str, typer.Option(metavar="GROUP", help="Group whose archivers share the partitions.")
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="Stop after the data that exists now.")] = False,
    offset: Annotated[
        str, typer.Option(metavar="POSITION", help="earliest or latest: where to start topics without files.")
    ] = "earliest",
    skip_lost: Annotated[
        bool, typer.Option("--skip-lost", help="Skip messages that the topic has already removed.")
    ] = False,
    decode: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="CREATE STREAM statements, or a file: adds decoded columns."),
    ] = None,
    delta: Annotated[
        bool, typer.Option("--delta", help="Make each topic's files a Delta table as well.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Store topics as Parquet files, each message exactly once.

    It runs until Ctrl-C, or with `--once` until the end of the data. Files are named
    PATH/topic=TOPIC/partition=P/OFFSET.parquet after their first offset, and have the columns offset,
    timestamp, timestamp_type, key, value and headers. Spark, DuckDB, Polars and others read them. The next
    run resumes where the files end; no offset is committed, and nothing is stored elsewhere. `streamgauge
    replay PATH` sends an archived topic again, and `Stream.from_archive` counts over it. With `--delta`,
    PATH/topic=TOPIC is a Delta table of the same files.

    `verify PATH` checks the hash, the pages and the offsets of every file, and that no file is missing. If
    one is damaged or missing, it is reported and the exit code is 1.

        streamgauge archive posts trades --output archive

        streamgauge archive posts --output archive --once --json

        streamgauge archive posts --output s3://bucket/archive --interval 1m --keep 30d

        streamgauge archive posts --output archive --decode posts.sql

        streamgauge archive posts --output archive --delta

        streamgauge archive verify archive
    """
    if output is None:
        kind, *places = topics
        if kind != "verify" or len(places) != 1:
            raise ValueError("--output is missing: name the folder or URL of the archive")
        verify_archive(places[0], as_json)
        return
    if offset not in ("earliest", "latest"):
        raise ValueError(f"--offset must be earliest or latest, got {offset}")
    size_bytes, seconds = bytes_of(size), seconds_of("--interval", interval)
    kept = None if keep is None else seconds_of("--keep", keep)
    with at_once():
        from ...agents.archive.archiver import ArchiveOptions, Archiver
        from ...operators.archive.store import store_of
        from ...operators.kafka.topics import admin
        from ..topics.known import known_topics

    settings = kafka_settings(bootstrap_servers, config, config_file)
    known_topics(admin(settings))
    store = store_of(output)
    options = ArchiveOptions(
        size_bytes=size_bytes,
        interval_seconds=seconds,
        start="latest" if offset == "latest" else "earliest",
        skip_lost=skip_lost,
        delta=delta,
    )

    def published(segment: Segment) -> None:
        if not as_json:
            write_line(
                f"{segment.range_text}: {amount(segment.rows, 'message')} in {segment.path}", sys.stderr
            )

    name = group or f"{'-'.join(sorted(topics))[:150]}.archive"
    decoders = {} if decode is None else decoders_of(decode, topics)
    archiver = Archiver(settings, topics, store, options, None if once else name, published, decoders)
    begun = time.monotonic()
    removed = _run(archiver, once, kept, output)
    account: dict[str, Any] = {**asdict(archiver.account), "removed_files": removed}
    if as_json:
        write_json({"topics": sorted(topics), "to": output, **account})
        return
    messages, files = amount(account["messages"], "message"), amount(account["files"], "file")
    write_line(
        f"{messages} in {files} in {time.monotonic() - begun:.1f} s",
        sys.stderr,
    )


def _run(archiver: Archiver, once: bool, keep_seconds: float | None, to: str) -> int:
    """Archive, and remove what is old meanwhile; how many files were removed."""
    from ...agents.archive.retention import remove_older
    from ...operators.archive.chain import topics_of
    from ...operators.archive.segment import ArchiveError
    from ...operators.archive.store import store_of
    from ...operators.consumer.signals import as_interrupt

    removed, stop, failed = 0, threading.Event(), list[BaseException]()
    ended = threading.Event()

    def remove_old() -> int:
        if keep_seconds is None:
            return 0
        store = store_of(to)
        try:
            topics = topics_of(store)
        except ArchiveError:  # nothing is archived yet
            return 0
        return len(remove_older(store, topics, int((time.time() - keep_seconds) * 1000)))

    if once:
        with as_interrupt():
            archiver.run_once()
        return remove_old()

    def run() -> None:
        try:
            archiver.run(stop)
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=run, name="archiver")
    with as_interrupt():
        thread.start()
        try:
            # In place of the thread: an interrupted join() believes the thread has finished (3.11).
            while not ended.is_set():
                removed += remove_old()
                ended.wait(_RETENTION_SECONDS)
        except KeyboardInterrupt:
            write_line("writing the messages read so far …", sys.stderr)
        finally:
            stop.set()
            ended.wait()
            thread.join()
    if failed:
        raise failed[0]
    return removed


def verify_archive(place: str, as_json: bool) -> None:
    """Check an archive and print what was found; exits with 1 if anything is damaged or missing.

    Raises `ArchiveError` if there is no archive.
    """
    with at_once():
        from ...operators.archive.chain import topics_of
        from ...operators.archive.store import store_of
        from ...operators.archive.verify import file_count, verify
        from ...operators.watching.progress_bar import progress_bar

    head, _, last = place.rstrip("/").rpartition("/")
    topic = last.removeprefix("topic=") if last.startswith("topic=") else None
    store = store_of(place if topic is None else head or ".")
    topics = topics_of(store)
    if topic is not None:
        topics = {topic: topics[topic]} if topic in topics else {}
        if not topics:
            raise ValueError(f"{place}: there is no such topic in {store.name}")
    with progress_bar("verifying", file_count(store, topics), "files") as advance:
        checks = list(verify(store, topics, advance))
    problems = [problem for check in checks for problem in check.problems]
    if as_json:
        total = {name: sum(getattr(one, name) for one in checks) for name in ("files", "messages", "bytes")}
        write_json({"archive": place, **total, "problems": problems, "partitions": list(map(asdict, checks))})
    else:
        for check in checks:
            where = f"{check.topic}[{check.partition}]"
            if check.first_offset is not None and check.next_offset is not None:
                where += f" {check.first_offset} to {check.next_offset - 1}"
            state = _counted(len(check.problems), "problem") if check.problems else "whole"
            lost = sum(following - first for first, following in check.lost)
            more = f", {lost:,} offsets were lost before they were archived" if lost else ""
            size = f"{_counted(check.messages, 'message')} in {_counted(check.files, 'file')}"
            write_line(f"{where}: {size}, {state}{more}")
        for problem in problems:
            write_line(problem, sys.stderr)
    if problems:
        raise typer.Exit(1)


def _counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> _counted(1, "file"), _counted(2_000, "file")
    ('1 file', '2,000 files')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def decoders_of(declarations: str, topics: Sequence[str]) -> dict[str, Decoder]:
    """What decodes topics, by statements of SQL or a file of them. Raises `SqlError` and `ValueError`.

    >>> text = "CREATE STREAM posts (author VARCHAR) WITH (KAFKA_TOPIC='posts', VALUE_FORMAT='JSON')"
    >>> decoders_of(text, ["posts"])["posts"].schema
    {'author': String}
    """
    from ...queries.sql.parse.dialect import statements_of
    from ...queries.sql.parse.statements import CreateSource
    from ...queries.sql.plan.catalog import relation_of

    text = Path(declarations).read_text() if " " not in declarations else declarations
    nodes = [one.node for one in statements_of(text) if isinstance(one.node, CreateSource)]
    declared = {relation.topic: relation for relation in (relation_of(node, text) for node in nodes)}
    if unknown := [topic for topic in declared if topic not in topics]:
        raise ValueError(f"--decode declares the topic {unknown[0]!r}, which is not archived here")
    if not declared:
        raise ValueError("--decode must hold a CREATE STREAM … WITH (KAFKA_TOPIC='…', …) for a topic")
    return {topic: relation.decoder() for topic, relation in declared.items()}


def bytes_of(text: str) -> int:
    """A number of bytes with its unit. Raises `ValueError` for anything else.

    >>> bytes_of("128MiB"), bytes_of("5 GB"), bytes_of("4096")
    (134217728, 5000000000, 4096)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    unit = None if match is None else _UNITS.get(match[2].upper() or "B")
    if match is None or unit is None or not float(match[1]) > 0:
        raise ValueError(f"--size must be a number of bytes above 0, such as 128MiB or 500MB, got {text}")
    return int(float(match[1]) * unit)


def seconds_of(option: str, text: str) -> float:
    """A duration such as ``30s``, ``10m`` or ``7d`` in seconds. Raises `ValueError` for anything else.

    >>> seconds_of("--interval", "10m"), seconds_of("--keep", "30d")
    (600.0, 2592000.0)
    """
    from ...operators.windows.durations import microseconds

    try:
        if length_us := microseconds(text):
            return length_us / 1e6
        raise ValueError
    except ValueError:
        raise ValueError(f"{option} must be a duration such as 30s, 10m or 7d, got {text}") from None
