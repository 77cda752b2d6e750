"""A query gets two shuffle partitions per core if the session sets no number; the session stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.spark_udafs.definitions import logged
from streamgauge.spark_udafs.streaming.run import on_spark, write
from streamgauge.spark_udafs.streaming.shuffle_partitions import few_partitions

PARTITIONS = "spark.sql.shuffle.partitions"


class Settings(dict[str, str]):
    """The settings of a session, as PySpark has them."""

    @property
    def getAll(self) -> dict[str, str]:
        return dict(self)

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        del self[name]


def inside(cores: int, **settings: str) -> str | None:
    """The number within `few_partitions`; the session must be as before after it, even if a query fails."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    session: Any = SimpleNamespace(
        conf=Settings(given), sparkContext=SimpleNamespace(defaultParallelism=cores)
    )
    with pytest.raises(KeyError), few_partitions(session):
        number = session.conf.get(PARTITIONS)
        raise KeyError
    assert session.conf == given
    return number


def test_there_are_two_for_each_core_up_to_sparks_own_number() -> None:
    assert [inside(cores) for cores in (1, 8, 100, 400)] == ["2", "16", "200", "200"]


def test_a_number_that_somebody_chose_stays() -> None:
    assert inside(8, spark_sql_shuffle_partitions="200") == "200"


def test_nothing_is_set_if_executors_come_and_go() -> None:
    assert inside(8, spark_dynamicAllocation_enabled="true") is None
    assert inside(8, spark_dynamicAllocation_enabled="false") == "16"


@pytest.fixture
def unset(spark: Any) -> Iterator[Any]:
    """The session without a number of its own."""
    number = spark.conf.get(PARTITIONS)
    spark.conf.unset(PARTITIONS)
    yield spark
    spark.conf.set(PARTITIONS, number)


@pytest.mark.kafka
@pytest.mark.spark
def test_a_query_has_them_from_its_first_micro_batch(
    unset: Any, kafka: Any, topic: Callable[..., str], send: Callable[..., None], tmp_path: Path
) -> None:
    name, address = topic(1), kafka.bootstrap_servers
    send(name, [b'{"at":"2026-01-01T00:00:00"}'])
    rows = Stream.from_kafka(
        name, value=json({"at": pl.Datetime("us")}), time="at", bootstrap_servers=address
    )
    table = on_spark(rows.tumbling("1m").agg(n=count()), unset, dead_letters=None)
    write(table, tmp_path, lambda table, batch: None, available_now=True).awaitTermination()
    assert logged(unset, str(tmp_path), 0)[0]["conf"][PARTITIONS] == "4"
    assert PARTITIONS not in unset.conf.getAll
