"""Archives of classes: made once, used if they hold something, made anew for other files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from streamgauge.apps.environment.class_archive import ClassArchive
from streamgauge.apps.environment.java import Java


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    """That of two files, in an empty cache folder."""
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    for name in ("java", "a.jar"):
        (tmp_path / name).write_text(name)
    return archive_of(tmp_path)


def archive_of(folder: Path) -> ClassArchive:
    return ClassArchive.of("program", Java(folder / "java", 17), [folder / "a.jar"])


def written(options: Sequence[str]) -> None:
    """What a JVM does at its end."""
    Path(options[0].partition("=")[2]).write_text("classes")


def test_it_is_made_once_and_used_from_then_on(archive: ClassArchive) -> None:
    rehearsals: list[Sequence[str]] = []
    assert archive.options() == []
    for _ in range(2):
        archive.make(lambda options: [rehearsals.append(options), written(options)])
    assert len(rehearsals) == 1
    assert archive.options()[0] == f"-XX:SharedArchiveFile={archive.file}"


def test_other_jars_have_another(archive: ClassArchive, tmp_path: Path) -> None:
    archive.make(written)
    (tmp_path / "a.jar").write_text("a newer one")
    other = archive_of(tmp_path)
    assert other.options() == []
    other.make(written)
    assert archive.options() != other.options() != []


@pytest.mark.parametrize("error", [None, RuntimeError("it can't")])
def test_where_none_comes_of_it_none_is_used_nor_made_again(
    archive: ClassArchive, error: Exception | None
) -> None:
    rehearsals = 0

    def rehearse(_: Sequence[str]) -> None:
        nonlocal rehearsals
        rehearsals += 1
        if error is not None:
            raise error

    if error is None:
        archive.make(rehearse)
    else:
        with pytest.raises(RuntimeError, match="it can't"):
            archive.make(rehearse)
    archive.make(rehearse)
    assert rehearsals == 1
    assert archive.options() == []


def test_an_interrupted_rehearsal_is_repeated(archive: ClassArchive) -> None:
    def interrupted(_: Sequence[str]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive.make(interrupted)
    archive.make(written)
    assert archive.options() != []


def test_while_another_process_makes_it_one_goes_on_without(archive: ClassArchive) -> None:
    def meanwhile(options: Sequence[str]) -> None:
        ClassArchive(archive.file).make(lambda _: pytest.fail("it is being made"))
        written(options)

    archive.make(meanwhile)
    assert archive.options() != []


def test_old_ones_are_removed(archive: ClassArchive, tmp_path: Path) -> None:
    for size in range(5):
        (tmp_path / "a.jar").write_text("a" * size)
        archive_of(tmp_path).make(written)
    assert len(list(archive.file.parent.glob("program-*.jsa"))) == 3


def test_a_folder_that_can_not_be_written_does_no_harm(archive: ClassArchive) -> None:
    archive.file.parent.write_text("a file where the folder was to be")
    archive.make(lambda _: pytest.fail("it can't be kept"))
    assert archive.options() == []
