"""A table's rows as of a time, against plain Python, through deletions and late versions."""

from __future__ import annotations

import json as plain_json
import random

import numpy as np
import polars as pl
import pytest

import streamgauge as sg
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.steps import table_versions
from streamgauge.operators.steps.table_versions import TableVersions


def as_of(times: list[int | None]) -> pl.Series:
    return pl.Series(times, dtype=pl.Int64).cast(pl.Datetime("us"))


def order(version: tuple[int, int, int | None]) -> tuple[int, int]:
    return version[:2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_key_has_the_version_of_a_moment(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_versions, "_FEW", 16)
    rng = random.Random(seed)
    keep = 60
    contents, versions, newest = (
        TableVersions({"n": pl.Int64}, keep),
        dict[str, list[tuple[int, int, int | None]]](),
        0,
    )
    refused = answered = 0
    for count in range(400):
        key, at, n = rng.choice("abcdef"), count + rng.randrange(-4, 5), None if rng.random() < 0.2 else count
        newest = max(newest, at)
        contents.update(
            [pl.Series([key])],
            pl.DataFrame({"n": [] if n is None else [n]}, schema={"n": pl.Int64}),
            np.array([-1 if n is None else 0]),
            np.array([at]),
        )
        versions.setdefault(key, []).append((at, count, n))
        wanted, moment = rng.choice("abcdefg"), newest - rng.randrange(-3, 150)
        before = [one for one in versions.get(wanted, []) if one[0] <= moment]
        try:
            numbers = contents.find_as_of([pl.Series([wanted])], as_of([moment]))
        except ValueError as error:
            assert "are not held any more" in str(error) and moment < newest - keep
            refused += 1
            continue
        answered += 1
        assert contents.gather(numbers)["n"].to_list() == [max(before, key=order)[2] if before else None]
        latest = max(versions.get(wanted, [(0, 0, None)]), key=order)[2]
        assert contents.gather(contents.find([pl.Series([wanted])]))["n"].to_list() == [latest]
    assert refused > 20 and answered > 200
    assert contents.versions < 2 * (keep + 20) + 16
    assert len(contents) == sum(max(own, key=order)[2] is not None for own in versions.values())


def test_nulls_have_no_version() -> None:
    contents = TableVersions({"n": pl.Int64}, 10)
    none = contents.find_as_of([pl.Series([None, "a"], dtype=pl.String)], as_of([1, 1]))
    contents.update([pl.Series(["a"])], pl.DataFrame({"n": [1]}), times=np.array([0]))
    keys = [pl.Series([None, "a", "a"], dtype=pl.String)]
    assert none.tolist() == [-1, -1]
    assert contents.find_as_of(keys, as_of([5, None, 5])).tolist() == [-1, -1, 0]


RATES = sg.LookupTable.from_kafka(
    "rates",
    value=sg.json({"rate": pl.Float64, "since": pl.Int64}),
    versions="1d",
    time=pl.from_epoch("since"),
)


def orders() -> sg.Stream:
    value = sg.json({"id": pl.Int64, "currency": pl.String, "at": pl.Int64})
    stream = sg.Stream.from_kafka("orders", value=value, time=pl.from_epoch("at"))
    return stream.with_columns(moment=pl.from_epoch("at"))


def test_a_stream_is_joined_with_the_version_of_its_rows_time() -> None:
    day = 1_767_225_600
    joined = orders().join(RATES, on="currency", how="left", as_of="moment")
    tester = sg.StreamTester(joined.select("id", "rate").rows_to_kafka("out"))
    reported = [("eur", 1.1, 0), ("eur", 1.2, 60), ("usd", 1.0, 30), ("eur", 9.9, 7 * 86_400)]
    values = [plain_json.dumps({"rate": rate, "since": day + at}).encode() for _, rate, at in reported]
    keys = [key.encode() for key, _, _ in reported]
    tester.feed_lookup_messages("rates", Messages.of(values[:3], keys[:3], topic="rates"))
    sent = [("eur", 59), ("eur", 60), ("usd", 29), ("usd", 30), ("gbp", 99), ("eur", -1)]
    tester.feed([{"id": n, "currency": key, "at": day + at} for n, (key, at) in enumerate(sent)])
    rows = [plain_json.loads(one.value or b"") for one in tester.sent()]
    assert [row["rate"] for row in rows] == [1.1, 1.2, None, 1.0, None, None]
    tester.feed_lookup("rates", {"eur": {"rate": 2.0, "since": day + 120}})
    tester.feed([{"id": 9, "currency": "eur", "at": day + at} for at in (119, 120)])
    assert [plain_json.loads(one.value or b"")["rate"] for one in tester.sent()] == [1.2, 2.0]


def test_a_row_whose_version_was_dropped_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_versions, "_FEW", 1)
    day = 1_767_225_600
    joined = (
        orders()
        .join(RATES, on="currency", as_of="moment")
        .group_by("currency")
        .tumbling("1h", max_ahead=None)
    )
    tester = sg.StreamTester(joined.agg(n=sg.count()))
    for at in range(8):
        tester.feed_lookup("rates", {"eur": {"rate": at, "since": day + at * 86_400}})
    account = tester.feed([{"id": n, "currency": "eur", "at": day + n * 86_400} for n in range(8)])
    assert (account.counted, account.dead_lettered) == (2, 6)
    assert "versions of 2026-01-01 00:00:00 are not held any more" in tester.refused[0].reason


def test_wrong_versions_are_refused() -> None:
    value, stream = sg.json({"country": pl.String, "at": pl.String}), orders()
    plain = sg.LookupTable.from_kafka("users", value=value)
    with pytest.raises(ValueError, match='time is for a table that keeps versions: write versions="7d"'):
        sg.LookupTable.from_kafka("users", value=value, time="at")
    with pytest.raises(ValueError, match="versions must be longer than 0"):
        sg.LookupTable.from_kafka("users", value=value, versions="0s")
    with pytest.raises(TypeError, match="is not a column of country, at"):
        sg.LookupTable.from_kafka("users", value=value, versions="1d", time="since")
    with pytest.raises(ValueError, match=r"join: as_of= needs the versions of 'users'"):
        stream.join(plain, on="currency", as_of="moment")
    with pytest.raises(TypeError, match=r"join: as_of must name a column of times .*'at' is Int64"):
        stream.join(RATES, on="currency", as_of="at")
    with pytest.raises(ValueError, match="join: no column 'when' in"):
        stream.join(RATES, on="currency", as_of="when")
    with pytest.raises(ValueError, match="join: as_of= is for a table"):
        stream.join(stream, on="currency", within="1m", as_of="moment")


def test_versions_are_part_of_a_definition() -> None:
    plain = sg.LookupTable.from_kafka("rates", value=RATES.source.value)
    assert "versions" not in plain.definition()
    assert 'versions=1d, time=(col("since") * 1000000)' in RATES.definition()
    joined = orders().join(RATES, on="currency", as_of="moment")
    assert 'as_of="moment"' in joined.steps[-1].definition()
