"""A long campaign: random faults at random points, whatever the delivery, and nothing is ever counted wrong.

``make soak ARGS=tests/faults`` runs it. FAULTS says how many (500), SEED repeats a campaign.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

from streamgauge.operators.consumer.options import DeliveryName

from ..faulty_proxy import ProxiedKafka
from .endings import ENDINGS
from .episode import JOINED, SHARED, Episode, Shape
from .injections import matrix, suits
from .report import table

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

FAULTS = int(os.environ.get("FAULTS", 500))
SEED = int(os.environ.get("SEED", random.randrange(1_000_000)))
AN_EPISODE = 20
"""Faults that one group suffers."""


def test_no_fault_makes_a_count_wrong(tmp_path: Path, record_property: Any) -> None:
    print(f"SEED={SEED} FAULTS={FAULTS}", flush=True)
    kinds = [*get_args(DeliveryName), JOINED, SHARED]
    injected: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    checked: Counter[str] = Counter()
    faults, number = matrix(), 0
    while (done := sum(counts.total() for counts in injected.values())) < FAULTS:
        kind = kinds[number % len(kinds)]
        shape = Shape.drawn(kind, SEED + number)
        number += 1
        # Those that came least so far come first.
        names = [name for name in faults if suits(name, shape)]
        random.Random(shape.seed).shuffle(names)
        names.sort(key=lambda name: injected[kind][name])
        folder = tmp_path / str(number)
        with ProxiedKafka(data=folder / "kafka") as kafka, Episode(kafka, folder, shape) as episode:
            for name in names[: min(AN_EPISODE, FAULTS - done)]:
                print(f"{done + episode.injected.total()}: {kind}: {name}", flush=True)
                episode.suffer(name, faults[name])
            episode.finish()
        injected[kind] += episode.injected
        checked += episode.checked
        shutil.rmtree(folder)
    reported = ", ".join(f"{what} {times} times" for what, times in sorted(checked.items()))
    record_property("table", f"seed {SEED}; compared: {reported}\n{table(injected)}")


@pytest.mark.parametrize("delivery", get_args(DeliveryName))
@pytest.mark.parametrize("name", ENDINGS)
def test_what_no_count_survives_ends_the_run_by_name(tmp_path: Path, name: str, delivery: Any) -> None:
    shape = Shape(delivery, SEED)
    with ProxiedKafka(data=tmp_path / "kafka") as kafka, Episode(kafka, tmp_path, shape) as episode:
        for _ in range(5):
            episode.wait_until_read()
        ENDINGS[name](episode)
