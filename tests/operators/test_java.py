"""Every way of finding a Java, or of not finding one, with programs that only say a version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamgauge.operators import java
from streamgauge.operators.java import JavaError, find_java

# What each Java prints for `-version`, on stderr.
SAID = {
    8: 'openjdk version "1.8.0_392"',
    11: 'openjdk version "11.0.21" 2023-10-17',
    17: 'openjdk version "17.0.15" 2025-04-15',
    21: 'java version "21" 2023-09-19 LTS',
}


def make_java(home: Path, version: int, status: int = 0) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{SAID[version]}' >&2\nexit {status}\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java at all, until a test makes one."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(java, "_FOLDERS", ())


def on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), "/usr/bin", "/bin"]))


@pytest.mark.parametrize("version", [17, 21])
def test_java_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    program = make_java(tmp_path / "jdk", version)
    on_path(monkeypatch, program.parent)
    assert find_java() == java.Java(program, version)
    assert find_java().home == tmp_path / "jdk"


def test_java_home_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(monkeypatch, make_java(tmp_path / "a", 17).parent)
    make_java(tmp_path / "b", 21)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "b"))
    assert find_java().version == 21


def test_an_old_or_broken_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "home", 11)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    on_path(monkeypatch, make_java(tmp_path / "stub", 21, status=1).parent)
    make_java(tmp_path / "usual" / "jdk-8", 8)
    fitting = make_java(tmp_path / "usual" / "jdk-17", 17)
    monkeypatch.setattr(java, "_FOLDERS", (str(tmp_path / "usual" / "*"),))
    assert find_java().program == fitting


def test_no_java_says_what_installs_one() -> None:
    with pytest.raises(JavaError, match=r"Java 17 or newer is needed, and none was found.*JAVA_HOME"):
        find_java()


def test_java_too_old_names_each_one_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "home", 8)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    on_path_11 = make_java(tmp_path / "path", 11)
    monkeypatch.setenv("PATH", str(on_path_11.parent))
    with pytest.raises(JavaError) as raised:
        find_java()
    message = str(raised.value)
    assert f"Java 8 at {tmp_path / 'home' / 'bin' / 'java'}" in message
    assert f"Java 11 at {on_path_11}" in message


def make_apt(folder: Path, packages: str, installs: Path | None) -> Path:
    """apt programs that know some packages and, for an install, put a Java 17 on the path."""
    folder.mkdir()
    make = f"cp {make_java(installs.parent / 'packed', 17)} {installs}" if installs else "exit 100"
    scripts = {"apt-cache": f"printf '{packages}'", "apt-get": f'if [ "$1" = install ]; then {make}; fi'}
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def test_on_debian_as_root_a_runtime_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.os, "geteuid", lambda: 0)
    known = "openjdk-11-jre-headless\\nopenjdk-17-jre-headless\\nopenjdk-21-jre-headless\\nopenjdk-17-jre\\n"
    folder = make_apt(tmp_path / "apt", known, installs=tmp_path / "apt" / "java")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(
        java, "_candidates", lambda: iter([folder / "java"] if (folder / "java").exists() else [])
    )
    with pytest.raises(JavaError):
        find_java()
    assert find_java(install=True).version == 17


@pytest.mark.parametrize(
    ("packages", "says"),
    [
        ("openjdk-11-jre-headless\\n", "apt knows no openjdk"),
        ("openjdk-17-jre-headless\\n", "could not install"),
    ],
)
def test_an_installation_that_fails_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: str, says: str
) -> None:
    monkeypatch.setattr(java.os, "geteuid", lambda: 0)
    monkeypatch.setattr(java, "_candidates", lambda: iter([]))
    on_path(monkeypatch, make_apt(tmp_path / "apt", packages, installs=None))
    with pytest.raises(JavaError, match=says):
        find_java(install=True)
