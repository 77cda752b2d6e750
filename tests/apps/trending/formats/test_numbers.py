"""Recordings of ids and of counts alone."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from streamgauge.apps.trending.formats.numbers import COUNTS, IDS

from .rows import format_of, messages_of, rows_of


@pytest.mark.parametrize("name", ["Costa_Rica", "Guatemala"])
def test_ids_come_in_the_order_of_their_own_times(recordings: Path, name: str) -> None:
    path = recordings / "social" / f"2012_{name}_earthquake-tweetids_entire_period.csv"
    assert format_of(path) is IDS
    with path.open() as file:
        ids = sorted(int(record[1]) for record in list(csv.reader(file))[1:])
    messages = messages_of(IDS, path)
    assert [int(message.value) for message in messages] == ids
    assert [message.sent_ms for message in messages] == [(one >> 22) + 1_288_834_974_657 for one in ids]
    rows, account, _ = rows_of(IDS, [message.value for message in messages[:50]])
    assert [row["id"] for row in rows] == [str(one) for one in ids[:50]]
    assert account.counted == 50 and {row["about"] for row in rows} == {""}


def test_lines_without_an_id_are_dead_letters(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("247215201198436352\n247215243137257472\n\n247215201198436353\n")
    assert format_of(path) is IDS
    path.write_text("id\n247215201198436352\nnone\n")
    messages = messages_of(IDS, path)
    assert [message.value for message in messages] == [b"none", b"247215201198436352"]
    _, account, _ = rows_of(IDS, [message.value for message in messages])
    assert (account.counted, account.dead_lettered) == (1, 1)


def test_counts_stand_for_so_many_posts(recordings: Path) -> None:
    path = recordings / "social" / "Twitter_volume_AAPL.csv"
    assert format_of(path) is COUNTS
    messages = messages_of(COUNTS, path)
    with path.open() as file:
        wanted = [int(record[1]) for record in list(csv.reader(file))[1:]]
    rows, account, _ = rows_of(COUNTS, [message.value for message in messages])
    assert [row["n"] for row in rows] == wanted and account.dead_lettered == 0
    assert messages[0].sent_ms == 1_424_986_973_000
