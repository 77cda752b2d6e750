"""A rolling upgrade: members of an earlier release and of this one share a group, and no count is wrong.

UPGRADE_FROM names the commit of the earlier release; by default it is the last one that is a day old.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..faulty_proxy import ProxiedKafka
from .episode import Episode, Shape

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

ROOT = Path(__file__).resolve().parents[2]


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: Any) -> Path:
    """The folder with the package of the earlier release."""
    commit = os.environ.get("UPGRADE_FROM") or git("log", "-1", "--before=1 day ago", "--format=%H")
    if not commit:
        pytest.skip("this clone has no commit that is a day old")
    folder: Path = tmp_path_factory.mktemp("earlier")
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    (folder / "streamgauge").mkdir()
    subprocess.run(["tar", "-x", "-C", folder / "streamgauge"], input=archive, check=True)
    print(f"UPGRADE_FROM={commit}", flush=True)
    return folder


@pytest.mark.parametrize("shared", [False, True], ids=["one stream", "two streams"])
@pytest.mark.parametrize("delivery", ["exactly_once", "effectively_once"])
def test_members_are_replaced_one_by_one(tmp_path: Path, earlier: Path, delivery: str, shared: bool) -> None:
    if shared and delivery != "exactly_once":
        pytest.skip("streams that run together are exactly once")
    shape = Shape(delivery, seed=7, shared=shared)
    with ProxiedKafka(data=tmp_path / "kafka") as kafka, Episode(kafka, tmp_path, shape, earlier) as episode:
        episode.wait_until_read()
        episode.group.release = None
        for number, old in enumerate(list(episode.group.alive)):
            episode.group.join()
            episode.group.begun()
            episode.wait_until_read()
            # The first leaves in order, the second as by a power cut.
            old.stop() if number == 0 else old.kill()
            episode.wait_until_read()
        episode.finish()
        assert episode.checked["windows, account and dead letters"] == (2 if shared else 1)


def test_going_back_is_possible_while_the_form_is_the_same(tmp_path: Path, earlier: Path) -> None:
    with (
        ProxiedKafka(data=tmp_path / "kafka") as kafka,
        Episode(kafka, tmp_path, Shape("exactly_once", seed=8)) as episode,
    ):
        episode.wait_until_read()
        episode.group.release = earlier
        for new in list(episode.group.alive):
            episode.group.join()
            episode.group.begun()
            new.stop()
            episode.wait_until_read()
        episode.finish()
