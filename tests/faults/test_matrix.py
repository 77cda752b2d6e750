"""Some of the faults for each delivery, side by side on a broker; `test_soak.py` has all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import pytest

from streamgauge.operators.consumer.options import DeliveryName

from ..faulty_proxy import ProxiedKafka
from .episode import Episode, Shape
from .injections import matrix
from .report import table

pytestmark = pytest.mark.kafka

SOME = {
    "exactly_once": ["kill -9 of a worker, after the offsets", "transactions aborted in the input"],
    "at_least_once": ["kill -9 of a worker, before the offsets", "a snapshot truncated or with flipped bits"],
    "effectively_once": ["input delivered twice by rewinding"],
    "at_most_once": ["kill -9 of a worker, after the offsets"],
}
EVERYWHERE = ["poison messages of every kind", "connections reset"]
BROKER = "kill -9 of the broker"


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[ProxiedKafka]:
    """A broker to be killed: one with the topics of many tests would need minutes to recover all logs."""
    with ProxiedKafka(data=tmp_path / "kafka") as broker:
        yield broker


@pytest.mark.slow
def test_no_fault_makes_a_count_wrong(kafka: ProxiedKafka, tmp_path: Path, record_property: Any) -> None:
    faults = matrix()
    shapes = [
        Shape(delivery, seed, transaction_ms=2_000) for seed, delivery in enumerate(get_args(DeliveryName))
    ]
    with ExitStack() as stack, ThreadPoolExecutor(len(shapes)) as side_by_side:

        def each(do: Callable[[Any], Any], many: Any) -> list[Any]:
            return list(side_by_side.map(do, many))

        def suffer(episode: Episode) -> None:
            for name in [*SOME[episode.shape.delivery], *EVERYWHERE]:
                episode.suffer(name, faults[name])

        episodes: list[Episode] = []
        for shape in shapes:
            episodes.append(Episode(kafka, tmp_path, shape))
            stack.push(episodes[-1].__exit__)
        each(Episode.__enter__, episodes)
        each(suffer, episodes)
        for episode in episodes:
            episode.group.begun()
        kafka.kill()
        kafka.start()
        each(Episode.wait_until_read, episodes)
        for episode in episodes:
            episode.injected[BROKER] += 1
        each(Episode.finish, episodes)
    injected = {episode.shape.delivery: episode.injected for episode in episodes}
    record_property("table", table(injected))
