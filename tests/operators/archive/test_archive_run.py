"""A stream over an archive gives what it gave live: windows, sketches and account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import streamgauge as sg
from streamgauge.agents.archive.archiver import Archiver
from streamgauge.operators.archive.archive_run import run_archive
from streamgauge.operators.archive.segment import ArchiveError
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run


def archived(posts: Any, folder: Path) -> str:
    Archiver(posts.stream.reading.kafka_source.settings, [posts.topic], LocalStore(folder)).run_once()
    return str(folder)


@pytest.mark.kafka
def test_an_archive_gives_what_the_live_run_gave(posts: Any, tmp_path: Path) -> None:
    topic = posts(3)
    topic.send(5_000)
    place = archived(topic, tmp_path)
    live = run(topic.stream, RunOptions(until="latest"))
    windows: list[sg.SketchTable] = []
    again = run_archive(topic.stream.over_archive(place), RunOptions(on_window=windows.append))
    assert again.account == live.account
    keys = ["window_start", *topic.stream.keys]
    assert again.table.merge().answers().sort(keys).equals(live.table.merge().answers().sort(keys))
    assert again.remarks and "messages can't be counted; the first is" in again.remarks[0]
    assert sum(table.num_rows for table in windows) >= again.table.merge().num_rows


def count(place: str, topic: str | None = None) -> sg.Stream:
    rows = sg.Stream.from_archive(place, topic, value=sg.json({"n": pl.Int64}))
    return rows.tumbling("1m").agg(n=sg.count())


def test_the_topic_is_named_or_in_the_path(tmp_path: Path) -> None:
    assert count("a/topic=posts").reading.kafka_source == count("a", "posts").reading.kafka_source
    with pytest.raises(TypeError, match="name the topic"):
        count("a")
    with pytest.raises(ArchiveError, match="is not an archive"):
        count(str(tmp_path), "posts").run()
    (tmp_path / "topic=others" / "partition=0").mkdir(parents=True)
    with pytest.raises(ArchiveError, match="holds the topics others, but none that the stream reads: posts"):
        count(str(tmp_path), "posts").run()


def test_what_needs_brokers_is_refused(tmp_path: Path) -> None:
    stream = count(str(tmp_path), "posts")
    with pytest.raises(TypeError, match=r"write \.run\(\.\.\.\)"):
        stream.start()
    with pytest.raises(TypeError, match=r"write \.run\(\.\.\.\)"):
        sg.run_together({"posts": stream})
    with pytest.raises(ValueError, match="group_id is for runs on brokers"):
        stream.run(group_id="mine")
    with pytest.raises(ValueError, match="a sink sends to the topic 'answers'"):
        stream.run(sinks=[sg.AnswersToKafka("answers")])
    rows = sg.Stream.from_archive(str(tmp_path), "posts", value=sg.json({"n": pl.Int64}))
    with pytest.raises(TypeError, match="sends its rows to a topic"):
        rows.rows_to_kafka("copy").run()
