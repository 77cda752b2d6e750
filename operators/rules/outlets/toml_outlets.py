"""Outlets and silences as tables of a TOML file, with errors that name the table and the field.

[[outlet]]
kind = "slack"
url = "${SLACK_WEBHOOK}"          # from the environment
match = ['rule!="new term"']
group_by = ["rule"]
group_wait = "30s"
group_interval = "5m"

[[silence]]
match = ['key=~"hall.*"']
until = 2026-06-01T18:00:00Z
why = "painters"

They may also be in the rules file, whose ``[[rule]]`` tables are ignored here.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from .alertmanager import AlertsToAlertmanager
from .apprise import AlertsToApprise
from .mail import AlertsToEmail
from .mqtt import AlertsToMqtt
from .ntfy import AlertsToNtfy
from .outlet import NotifyingOutlet, Silences
from .silences import AlertSilence, SilenceFile
from .slack import AlertsToMattermost, AlertsToSlack
from .webhook import AlertsToWebhook

KINDS: Mapping[str, type[NotifyingOutlet]] = {
    kind.kind: kind
    for kind in (
        *(AlertsToAlertmanager, AlertsToSlack, AlertsToMattermost, AlertsToEmail, AlertsToNtfy),
        *(AlertsToMqtt, AlertsToWebhook, AlertsToApprise),
    )
}
"""The kinds of outlets that a file can name."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_TABLES = ("outlet", "silence", "rule")


def read_outlets(path: str | Path) -> list[NotifyingOutlet]:
    """The outlets of a TOML file, one ``[[outlet]]`` each, with its silences, one ``[[silence]]`` each.

    The fields of an outlet are the options of its `kind`: alertmanager, slack, mattermost, email, ntfy, mqtt,
    webhook, apprise. In strings, ``${NAME}`` is replaced by the environment variable, which is the place for
    passwords. Silences are reread when the file has changed. Raises `ValueError`, naming the file, the table
    and the field, for anything else, and `OSError` for a file that can't be read.

    >>> from tempfile import NamedTemporaryFile
    >>> import streamgauge as sg
    >>> with NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('[[outlet]]\\nkind = "ntfy"\\nurl = "https://ntfy.example.org/ops"\\n')
    ...     file.flush()
    ...     [outlet.title for outlet in sg.rules.read_outlets(file.name)]
    ['ntfy ntfy.example.org']
    """
    path = Path(path)
    document = _document(path)
    outlets: list[NotifyingOutlet] = []
    silences = SilenceFile(path, read_silences)
    for number, entry in enumerate(_tables(document, "outlet", path), 1):
        outlet = _outlet(entry, f"{path}: outlet {number}", silences)
        if outlet.title in [other.title for other in outlets]:
            raise ValueError(
                f"{path}: outlet {number}: there is another outlet {outlet.title!r}; give it another name"
            )
        outlets.append(outlet)
    return outlets


def outlet_of(text: str) -> NotifyingOutlet:
    """An outlet from the fields of an ``[[outlet]]`` on one line, separated by commas, as in options.

    It has no silences, which need a file. Raises `ValueError` for anything else.

    >>> outlet_of('kind = "ntfy", url = "https://ntfy.example.org/ops", priority = 5').title
    'ntfy ntfy.example.org'
    """
    try:
        document = tomllib.loads(f"outlet = {{ {text} }}")
    except tomllib.TOMLDecodeError:
        document = {}
    if document.keys() != {"outlet"}:
        # The input may contain a password, so it isn't shown.
        raise ValueError(
            'an outlet must be TOML fields separated by commas, such as \'kind = "ntfy", url = '
            '"https://ntfy.sh/hall"\''
        )
    return _outlet(document["outlet"], "--outlet", ())


def read_silences(path: str | Path) -> list[AlertSilence]:
    """The silences of a TOML file. Raises `ValueError` and `OSError` as `read_outlets` does."""
    path = Path(path)
    silences = []
    for number, entry in enumerate(_tables(_document(path), "silence", path), 1):
        known = [field.name for field in fields(AlertSilence)]
        if unknown := [name for name in entry if name not in known]:
            raise ValueError(
                f"{path}: silence {number}: {unknown[0]!r} is not known; it has {', '.join(known)}"
            )
        try:
            silences.append(AlertSilence(**entry))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: silence {number}: {error}") from None
    return silences


def _document(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not TOML: {error}") from None
    if unknown := sorted(document.keys() - set(_TABLES)):
        raise ValueError(f"{path}: {unknown[0]!r} is not known; write [[outlet]], [[silence]] or [[rule]]")
    return document


def _tables(document: Mapping[str, Any], name: str, path: Path) -> Sequence[dict[str, Any]]:
    tables = document.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
        raise ValueError(f"{path}: {name!r} is not a list; write each as [[{name}]], with two brackets")
    return tables


def _outlet(entry: Mapping[str, Any], where: str, silences: Silences) -> NotifyingOutlet:
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{where}: kind must be one of {', '.join(KINDS)}, got {kind!r}")
    known = [field.name for field in fields(KINDS[kind]) if field.init and field.name != "silences"]
    given = {name: _expanded(value, f"{where}: {name}") for name, value in entry.items() if name != "kind"}
    if unknown := [name for name in given if name not in known]:
        raise ValueError(
            f"{where}: {unknown[0]!r} is not a field of {kind}; it has {', '.join(sorted(known))}"
        )
    try:
        return KINDS[kind](**given, silences=silences)
    except TypeError as error:
        missing = re.findall(r"'(\w+)'", str(error).partition("missing")[2])
        raise ValueError(f"{where}: {kind} needs {', '.join(missing) or error}") from None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _expanded(value: Any, where: str) -> Any:
    """A value with environment variables replaced in its strings. Raises `ValueError` for an unset one."""
    if isinstance(value, dict):
        return {name: _expanded(part, where) for name, part in value.items()}
    if isinstance(value, list):
        return [_expanded(part, where) for part in value]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise ValueError(f"{where}: the environment has no variable {match[1]!r}")
        return os.environ[match[1]]

    return _VARIABLE.sub(variable, value)
