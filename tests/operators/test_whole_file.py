"""Files that are there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.operators.whole_file import whole_file


def test_readers_see_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("old")
    with whole_file(path) as unfinished:
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_what_could_not_be_written_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "state.json"
    path.write_text("old")
    with pytest.raises(type(error)), whole_file(path) as unfinished:
        unfinished.write_text("half")
        raise error
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"), whole_file(tmp_path / "nowhere" / "x") as file:
        file.write_text("")
