"""Set up the project's environment, as `make` does in a new clone: ``python apps/set_up.py .venv apps``.

The second argument is one of the project's extras, or several separated by commas. Java is only searched for,
and installed if the variable INSTALL is ``yes``. This only imports the standard library. uv installs the
packages, several times faster than pip, which is used if uv isn't available or fails.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_UV_SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
}
"""pip's settings, with uv's variable for each, and the separator of several values."""


def uv_settings(pip_config: Iterable[str]) -> dict[str, str]:
    """Convert the output of ``pip config list`` to uv's variables, because uv doesn't read pip's settings.

    >>> uv_settings(["global.index-url='https://packages.example/simple'", ":env:.no-color='1'"])
    {'UV_DEFAULT_INDEX': 'https://packages.example/simple'}
    """
    settings = {}
    for line in pip_config:
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in ("global", "install", ":env:") and key in _UV_SETTINGS:
            variable, separator = _UV_SETTINGS[key]
            settings[variable] = separator.join(str(ast.literal_eval(value)).split())
    return settings


class Installer:
    """Installs packages into the environment of an interpreter."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        uv = python.with_name("uv")
        got = uv.exists() or not subprocess.run([*self._pip, "install", "-q", "uv"], check=False).returncode
        self._uv = [str(uv), "pip", "install", "--python", str(python)] if got else []

    def install(self, *requirements: str) -> None:
        """Install requirements, showing the output of uv or pip. Exits with pip's code if both fail."""
        if self._uv:
            listed = subprocess.run([*self._pip, "config", "list"], capture_output=True, text=True)
            settings = uv_settings(listed.stdout.splitlines())
            # Like pip, use the best version of all indexes; compile bytecode once and not in each process.
            defaults = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_COMPILE_BYTECODE": "1"}
            environment = {**defaults, **settings, **os.environ}
            if not subprocess.run([*self._uv, *requirements], cwd=ROOT, env=environment).returncode:
                return
            print("uv could not install them; pip tries", file=sys.stderr)
            self._uv = []
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        if code := subprocess.run(
            [*self._pip, "install", *requirements], cwd=ROOT, env=environment
        ).returncode:
            raise SystemExit(code)


def importable(folder: Path) -> dict[str, str]:
    """Return an environment in which the package can be imported before it is installed."""
    # The root is the package, under a name other than its folder's.
    package = folder / "src" / "streamgauge"
    package.parent.mkdir(exist_ok=True)
    if not package.is_symlink():
        package.symlink_to(ROOT, target_is_directory=True)
    return {**os.environ, "PYTHONPATH": str(package.parent)}


def fetching_jars(python: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Begin to fetch Kafka's jars. Later commands fetch the missing ones, and report why they can't."""
    return quietly(
        python, environment, "from streamgauge.apps.dev.kafka.jars import kafka_jars; kafka_jars()"
    )


def compiling(python: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start compiling the package's modules to bytecode, as installers do for every other package.

    If PYTHONDONTWRITEBYTECODE is set, as in many containers, each process would compile them again.
    """
    folders = [str(path) for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"]
    code = f"import compileall\nfor folder in {folders}: compileall.compile_dir(folder, quiet=2)"
    return quietly(python, environment, code)


def quietly(python: Path, environment: Mapping[str, str], code: str) -> subprocess.Popen[bytes]:
    """Begin to run code of the package, without output."""
    return subprocess.Popen(
        [python, "-c", code],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def need_java(python: Path, environment: Mapping[str, str]) -> None:
    """Find Java, or with INSTALL=yes install it. Exits with the advice of `operators.java` otherwise."""
    may_install = os.environ.get("INSTALL") == "yes"
    command = [str(python), "-m", "streamgauge.operators.java", *(["--install"] if may_install else [])]
    if code := subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode:
        if not may_install:
            print("as root on Debian, make installs it with INSTALL=yes", file=sys.stderr)
        raise SystemExit(code)


def main(folder: Path, extra: str) -> None:
    """Create the environment if missing, and install the project with an extra into it."""
    begin = time.monotonic()
    new = not (folder / "bin" / "python").exists()
    if new:
        print(
            f"setting up {folder}, once: this downloads about 700 MB, 400 of them for Spark",
            file=sys.stderr,
        )
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder.absolute() / "bin" / "python"
    package = importable(folder.absolute())
    need_java(python, package)
    installer = Installer(python)
    modules = compiling(python, package)
    installer.install("-e", f".[{extra}]")
    if new:
        print("downloading Kafka's jars, about 45 MB", file=sys.stderr)
        fetching_jars(python, package).wait()
    modules.wait()
    print(f"✓ {folder} is set up for {extra} ({time.monotonic() - begin:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.returncode) from None
