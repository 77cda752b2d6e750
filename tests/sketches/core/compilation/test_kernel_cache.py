"""What is kept of compiled kernels: never stale, never another's, from folders that can only be read too."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config
from numba.core.serialize import dumps

from streamgauge.sketches.core.compilation import jit, kernel_cache
from streamgauge.sketches.core.sorting.sort import copy

LOWER = """
from streamgauge.sketches.core.compilation.jit import kernel

STEP = 1

@kernel
def plus(x):
    return x + STEP
"""
MIDDLE = "from . import lower"
UPPER = """
from streamgauge.sketches.core.compilation.jit import kernel
from .lower import (
    plus,
)
from .middle import lower

@kernel
def twice(x):
    return plus(plus(x))
"""
ASK = """
from rooms.upper import twice
print(*(twice(x) for x in ({values})), sum(twice.stats.cache_hits.values()), twice.stats.cache_path)
"""


def _heed_permissions() -> None:
    """Take from root, as which tests may run, the right to write where nobody may."""
    drop_from_bounding_set, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override)


class Rooms:
    """A package whose kernel in one module calls that of another, and a process that calls it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, folder / "kept"
        self.user = folder / "user"
        (folder / "rooms").mkdir()
        for name, source in {"__init__": "", "lower": LOWER, "middle": MIDDLE, "upper": UPPER}.items():
            self.write(name, source)

    def write(self, name: str, source: str) -> None:
        (self.folder / "rooms" / f"{name}.py").write_text(source)

    def start(self, values: str, **env: str) -> subprocess.Popen[str]:
        places = {
            "NUMBA_CACHE_DIR": str(self.kept),
            "XDG_CACHE_HOME": str(self.user),
            # Python takes a source of the same size that was written within the same second for the same.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.Popen(
            [sys.executable, "-c", ASK.format(values=values)],
            cwd=self.folder,
            env={**os.environ, **places, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_permissions,
        )

    def ask(self, values: str = "1,", **env: str) -> list[str]:
        """The answers, how many kernels were found compiled, and the warnings."""
        with self.start(values, **env) as process:
            reported, said = process.communicate()
        assert process.returncode == 0, said
        return [*reported.split()[:-1], *filter(None, [said.strip()])]

    @staticmethod
    def seal(*folders: Path) -> None:
        """Let nobody write below these folders."""
        for folder in folders:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o555 if path.is_dir() else 0o444)

    def files(self) -> list[Path]:
        return sorted(self.folder.rglob("*twice*.kernel"))


@pytest.fixture
def rooms(tmp_path: Path) -> Rooms:
    return Rooms(tmp_path)


@pytest.mark.slow
def test_a_change_of_what_a_kernel_calls_is_noticed(rooms: Rooms) -> None:
    assert rooms.ask() == ["3", "0"]
    rooms.write("lower", LOWER.replace("STEP = 1", "STEP = 5"))
    assert rooms.ask() == ["11", "0"]
    rooms.write("lower", LOWER)
    assert rooms.ask() == ["3", "1"], "what the older source was compiled to is still there"


@pytest.mark.slow
def test_processes_that_compile_at_once_leave_all_of_it(rooms: Rooms) -> None:
    started = [rooms.start(values) for values in ("1,", "1.5, 1")]
    for process in started:
        process.communicate()
        assert process.returncode == 0
    assert rooms.ask("1, 1.5") == ["3", "3.5", "2"]
    assert len(rooms.files()) == 2 and not list(rooms.kept.rglob("*.part"))


def test_checked_kernels_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make bounds` finds no kernel that was compiled without checks, nor do others find its own."""
    made = kernel_cache.KernelCache(copy.py_func, jit.__name__)
    plain = made._made_from()
    monkeypatch.setattr(config, "BOUNDSCHECK", not config.BOUNDSCHECK)
    assert made._made_from() != plain


def test_what_is_damaged_is_not_there(tmp_path: Path) -> None:
    path, whole = tmp_path / "kept" / "one.kernel", kernel_cache._sealed(dumps(("key", ["code"])))
    for content, result in {
        whole: ["code"],
        whole[:-1]: None,
        b"": None,
        whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]: None,
        kernel_cache._sealed(dumps(("another", ["code"]))): None,
    }.items():
        assert kernel_cache._written(path, content)
        assert kernel_cache._read(path, "key") == result
    assert [*path.parent.iterdir()] == [path]
    assert kernel_cache._read(tmp_path / "none", "key") is None


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_read(rooms: Rooms) -> None:
    """What an image brings, for a user who may not add to it: the rest goes to a folder of the user's own."""
    assert rooms.ask() == ["3", "0"]
    rooms.seal(rooms.kept)
    assert rooms.ask("1, 1.5") == ["3", "3.5", "1"]
    assert [path.is_relative_to(rooms.user) for path in rooms.files()] == [False, True]
    image = rooms.folder / "image"
    assert rooms.ask("1.5,", NUMBA_CACHE_DIR=str(image)) == ["3.5", "1"]
    assert len([*image.rglob("*twice*.kernel")]) == 1, "a new folder gets what the user's own has already"


def test_where_nothing_can_be_kept_it_says_so_and_works(rooms: Rooms) -> None:
    rooms.user.mkdir()
    rooms.kept.mkdir()
    rooms.seal(rooms.kept, rooms.user)
    *answers, said = rooms.ask("1, 1.5")
    assert answers == ["3", "3.5", "0"]
    assert (
        said.count("compiled kernels can't be kept") == 1
        and str(rooms.kept) in said
        and "NUMBA_CACHE_DIR" in said
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "mode"), [("folder", 0o775), ("folder", 0o757), ("file", 0o664), ("file", 0o646)]
)
def test_what_others_may_write_is_not_read(rooms: Rooms, which: str, mode: int) -> None:
    assert rooms.ask() == ["3", "0"]
    (file,) = rooms.files()
    path = file.parent if which == "folder" else file
    path.chmod(mode)
    answer, kept, said = rooms.ask()
    assert (answer, kept) == ("3", "0"), "it compiles again"
    assert said.count("runs code") == 1 and str(path) in said and f"mode {mode:o}" in said
    assert "NUMBA_CACHE_DIR" in said
    path.chmod(0o755 if which == "folder" else 0o644)
    assert rooms.ask() == ["3", "1"]


def test_only_this_user_and_root_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "one.kernel"
    content = kernel_cache._sealed(dumps(("key", ["code"])))
    assert kernel_cache._written(file, content) and kernel_cache._read(file, "key") == ["code"]
    owner = os.geteuid()
    if owner == 0:
        os.chown(file, 4711, 4711)
        assert kernel_cache._read(file, "key") is None
        os.chown(file, 0, 0)
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert kernel_cache._read(file, "key") == ["code"], "what root compiled serves other users"
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        assert kernel_cache._read(file, "key") is None


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_folders_made_are_trusted_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    file = tmp_path / "above" / "kernels" / "one.kernel"
    before = os.umask(mask)
    try:
        assert kernel_cache._written(file, kernel_cache._sealed(dumps(("key", ["code"]))))
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (file.parent.parent, file.parent, file)] == [
        0o755,
        0o755,
        0o644,
    ]
    assert kernel_cache._read(file, "key") == ["code"]
