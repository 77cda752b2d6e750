"""Files for containers and services: what they start is a command that there is, with options that it has."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from streamgauge.apps.cli.commands import app

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"


def check(arguments: list[str]) -> None:
    """Parse a command line as the program does, without running it. Raises what a user would see."""
    command: Any = typer.main.get_command(app)
    name, *rest = arguments
    assert name in command.commands, name
    command.commands[name].make_context(name, rest)


def documents(path: Path) -> list[Any]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in (DEPLOY / "kubernetes").glob("*.yaml"):
        for one in documents(path):
            if one.get("kind") == "Deployment":
                yield path.name, one["spec"]["template"]["spec"]


def test_the_commands_of_compose_are_the_programs() -> None:
    (compose,) = documents(DEPLOY / "compose.yaml")
    commands = [one["command"] for one in compose["services"].values() if "command" in one]
    assert len(commands) == 3
    for command in commands:
        check(command)
    (dashboards,) = [one for one in compose["services"].values() if "entrypoint" in one]
    check(shlex.split(dashboards["entrypoint"][-1].partition(" > ")[0])[1:])
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).is_file(), volume
    scraped = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
    assert all(re.search(rf"{name}:9400", scraped) for name in ("trending", "ingest"))


def test_the_image_has_what_its_apps_and_feeds_need() -> None:
    """Trending recognises languages, feeds come over WebSockets, and the server serves /docs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    *_, last = re.findall(r'"/src\[([\w,]+)\]"', (DEPLOY / "Dockerfile").read_text())
    packages = {re.split(r"[<>=\[]", one)[0] for extra in last.split(",") for one in project[extra]}
    assert {"icu4py", "py3langid", "websockets", "swagger-ui-bundle"} <= packages


def test_the_commands_of_pods_are_the_programs_and_their_pods_are_restricted() -> None:
    names = []
    for name, pod in pods():
        (container,) = pod["containers"]
        check([one.replace("$(BROKERS)", "kafka:9092") for one in container["args"]])
        allowed = container["securityContext"]
        assert allowed["capabilities"] == {"drop": ["ALL"]} and not allowed["allowPrivilegeEscalation"]
        assert pod["securityContext"]["runAsNonRoot"] and allowed["readOnlyRootFilesystem"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        ports = {one["name"] for one in container["ports"]}
        probes = [value["httpGet"] for key, value in container.items() if key.endswith("Probe")]
        assert {probe["path"] for probe in probes} == {"/health", "/ready"}
        assert {probe["port"] for probe in probes} <= ports
        mounted = {one["name"] for one in container["volumeMounts"]}
        assert mounted == {one["name"] for one in pod["volumes"]}
        names.append(name)
    assert sorted(names) == ["run.yaml", "serve.yaml"]


def test_the_manifests_belong_together() -> None:
    (whole,) = documents(DEPLOY / "kubernetes" / "kustomization.yaml")
    assert all((DEPLOY / "kubernetes" / name).is_file() for name in whole["resources"])
    generated = {one["name"] for one in [*whole["configMapGenerator"], *whole["secretGenerator"]]}
    used = set()
    for _, pod in pods():
        for volume in pod["volumes"]:
            used |= {volume.get("secret", {}).get("secretName"), volume.get("configMap", {}).get("name")}
        used |= {
            one["valueFrom"]["configMapKeyRef"]["name"] for c in pod["containers"] for one in c.get("env", ())
        }
    assert used - {None} == generated
    if shutil.which("kubectl"):
        built = subprocess.run(
            ["kubectl", "kustomize", DEPLOY / "kubernetes"], capture_output=True, text=True, check=True
        )
        kinds = [one["kind"] for one in yaml.safe_load_all(built.stdout)]
        assert kinds.count("Deployment") == 2 and kinds.count("Secret") == 2


def test_the_unit_starts_what_the_page_says(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / "streamgauge@.service").read_text()
    page = (ROOT / "docs" / "deployment.md").read_text()
    for text in (unit, page):
        (arguments,) = re.findall(r"ARGS=([^'\n]*)", text)
        check(shlex.split(arguments))
    if shutil.which("systemd-analyze"):
        path = tmp_path / "streamgauge@sensors.service"
        path.write_text(unit.replace("/opt/streamgauge/bin/streamgauge", "/bin/true"))
        verified = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
        assert "streamgauge@sensors" not in verified.stderr, verified.stderr


def test_the_image_installs_extras_that_there_are_and_compiles_kernels() -> None:
    lines = (DEPLOY / "Dockerfile").read_text()
    named = {extra for group in re.findall(r"/src\[([\w,]+)\]", lines) for extra in group.split(",")}
    project = (ROOT / "pyproject.toml").read_text()
    assert named == {"apps", "agents", "languages", "postgres", "registry", "serve"}
    assert all(re.search(rf"^{extra} = \[", project, re.M) for extra in named)
    assert lines.count("streamgauge env warm") == 2 and lines.count("USER 10001") == 2
