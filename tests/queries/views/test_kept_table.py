"""A run that stores its closed windows, on a broker: a server has them beside the open ones, each once."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.table.stored import read_table
from streamgauge.queries.views.followed_groups import FollowedGroups, read_group
from streamgauge.queries.views.kept_windows import TableWithKept
from streamgauge.queries.views.view import TableView, rows_of

from ..views.test_table_follower import Posts

pytestmark = pytest.mark.kafka


class _Group:
    """A group's table, as a server follows it."""

    def __init__(self, name: str, followed: FollowedGroups) -> None:
        self.name, self._followed = name, followed

    def view(self) -> TableView:
        return self._followed.view(self.name)

    def describe(self) -> dict[str, Any]:
        return {}

    def watch(self, changed: Any) -> Any:
        return None

    def close(self) -> None:
        self._followed.close()


@pytest.mark.slow
@pytest.mark.parametrize("store", ["folder", "bucket"])
def test_open_and_closed_windows_are_one_table(
    store: str, kafka: Any, tmp_path: Path, s3: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3["endpoint_url"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3["secret"])
    posts, group = Posts(kafka, f"posts-{uuid.uuid4().hex[:8]}"), f"kept-{uuid.uuid4().hex[:8]}"
    folder = str(tmp_path / "windows") if store == "folder" else f"s3://streams/{group}"
    options = RunOptions(until="latest", group_id=group, table=folder, keep="30d", dead_letters=None)
    for _ in range(2):  # the second run resumes, and stores what it closes beside the first one's
        posts.send(10)
        run(posts.stream, options, progress=False)
    closed = read_table(folder).answers()
    table = TableWithKept(_Group(group, FollowedGroups(posts.config)), folder, 0)
    try:
        everything = rows_of(table.view().windows)
    finally:
        table.close()
    assert 0 < closed["posts"].sum() <= 400
    assert everything["posts"].to_pylist() and sum(everything["posts"].to_pylist()) == 400
    read = read_group(group, folder, posts.config["bootstrap.servers"]).answers()
    assert read["posts"].sum() == 400 and len(read) == 40
    groups = list(zip(everything["window_start"].to_pylist(), everything["lang"].to_pylist()))
    assert len(groups) == len(set(groups)) == 40
