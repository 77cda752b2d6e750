"""The set-up of a new clone: uv installs the packages, as pip is set, and pip where uv can't."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.apps import set_up


def test_it_stands_on_the_standard_library_alone() -> None:
    tree = ast.parse(Path(set_up.__file__).read_text())
    names = {
        (alias.name if isinstance(node, ast.Import) else str(node.module)).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names <= set(sys.stdlib_module_names)


def programs(folder: Path, **codes: int) -> Path:
    """An interpreter and a uv that write down what they were called with, and end with a code."""
    for name, code in codes.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $* $UV_DEFAULT_INDEX" >> {folder}/calls\nexit {code}\n')
        program.chmod(0o755)
    return folder / "python"


def calls(folder: Path) -> list[str]:
    lines = (folder / "calls").read_text().splitlines()
    return [line.strip() for line in lines if "config list" not in line]


def test_uv_installs_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://packages.example/simple")
    python = programs(tmp_path, python=3, uv=0)
    set_up.Installer(python).install("-e", ".[apps]")
    assert calls(tmp_path) == [f"uv pip install --python {python} -e .[apps] https://packages.example/simple"]


def test_pip_does_it_where_uv_fails_or_cannot_be_had(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fails").mkdir()
    installer = set_up.Installer(programs(tmp_path / "fails", python=0, uv=2))
    installer.install("one")
    installer.install("two")
    assert [call.split()[0] for call in calls(tmp_path / "fails")] == ["uv", "python", "python"]
    assert "pip tries" in capfd.readouterr().err
    (tmp_path / "none").mkdir()
    installer = set_up.Installer(programs(tmp_path / "none", python=3))
    with pytest.raises(SystemExit, match="3"):
        installer.install("one")
    assert [call.split()[4:] for call in calls(tmp_path / "none")] == [
        ["install", "-q", "uv"],
        ["install", "one"],
    ]


def test_uv_takes_over_the_settings_of_pip() -> None:
    printed = [
        "global.index-url='https://a.example/simple'",
        "install.extra-index-url='https://b.example/simple\\nhttps://c.example/simple'",
        ":env:.find-links='/wheels /more'",
        "global.cert='/etc/ca.pem'",
        "list.format='columns'",
    ]
    assert set_up.uv_settings(printed) == {
        "UV_DEFAULT_INDEX": "https://a.example/simple",
        "UV_INDEX": "https://b.example/simple https://c.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "SSL_CERT_FILE": "/etc/ca.pem",
    }


def test_what_fetches_the_jars_finds_the_package_before_it_is_installed(tmp_path: Path) -> None:
    code = "import streamgauge.operators.java as java; print(java.__file__)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=set_up.importable(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(ran.stdout.strip()).is_relative_to(tmp_path)


def test_java_is_installed_only_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = programs(tmp_path, python=0)
    for install, arguments in (("", ""), ("no", ""), ("yes", " --install")):
        monkeypatch.setenv("INSTALL", install)
        set_up.need_java(python, {})
        assert calls(tmp_path)[-1] == f"python -m streamgauge.operators.java{arguments}"
    monkeypatch.delenv("INSTALL")
    with pytest.raises(SystemExit, match="1"):
        set_up.need_java(programs(tmp_path, python=1), {})
    assert "INSTALL=yes" in capsys.readouterr().err


def test_modules_are_compiled_where_processes_do_not_keep_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    for name in ("room/deep", ".venv"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "one.py").write_text("x = 1")
    (tmp_path / "room" / "broken.py").write_text("x =")
    compiling = set_up.compiling(Path(sys.executable), {"PYTHONDONTWRITEBYTECODE": "1"})
    assert compiling.wait() == 0
    assert [path.parent.parent for path in tmp_path.rglob("one.*.pyc")] == [tmp_path / "room" / "deep"]
