"""User-defined message templates, in which text from outside can't be anything but text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ....sketches.core.extras import check_extra, naming_extras
from ...formats.jsonable import jsonable
from ...rendering.names import escaped
from ..alert import Alert
from .matchers import labels_of
from .page_links import time_in

NAMES = (
    *("app", "rule", "kind", "key", "keys", "state", "why", "at", "since"),
    *("value", "lower", "upper", "limit", "details", "link", "id"),
)
"""The names that a template can use; `keys` are the parts of the key by column, `link` leads to the page."""


class _Link(str):
    """A link of our own, which needs no escaping."""


@dataclass(frozen=True)
class AlertTemplate:
    """The line about an alert, by a Jinja2 template in its sandbox.

    What the template prints is escaped: by the outlet's `escape` for its kind of text, and so that control
    characters are visible. The template's own text is not changed, nor is `link`. Raises `ValueError` for a
    template that can't be parsed or uses an unknown name, `MissingExtraError` without the extra ``notify``.

    >>> template = AlertTemplate("*{{ rule }}* in {{ keys.room }}: {{ '%.1f' % value }}")
    >>> alert = Alert("hot", "", "fired", ("hall\\n",), 0, 0, 31.0, 31.0, 31.0, 30.0, "", key_names=("room",))
    >>> template.render(alert, "UTC", "")
    '*hot* in hall\\\\n: 31.0'

    Source: https://jinja.palletsprojects.com/en/stable/sandbox/
    """

    text: str
    escape: Callable[[str], str] = str

    def __post_init__(self) -> None:
        check_extra("jinja2")
        with naming_extras():
            from jinja2 import TemplateError, meta
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        try:
            parsed = ImmutableSandboxedEnvironment().parse(self.text)
            if unknown := sorted(meta.find_undeclared_variables(parsed) - {*NAMES, "range"}):
                raise ValueError(f"template: {unknown[0]!r} is not known; there are {', '.join(NAMES)}")
            self._compiled  # noqa: B018 - refused when it is made
        except TemplateError as error:
            raise ValueError(f"template: {error}") from None

    @cached_property
    def _compiled(self) -> Any:
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(finalize=self._printed, autoescape=False)
        return environment.from_string(self.text)

    def _printed(self, value: Any) -> str:
        if isinstance(value, _Link):
            return str(value)
        return self.escape("" if value is None else escaped(str(value)))

    def render(self, alert: Alert, zone: str, link: str) -> str:
        """The line about an alert, with times in a zone. Raises what the template's expressions raise."""
        labels = labels_of(alert)
        keys = dict(zip(alert.key_names, jsonable(list(alert.key))))
        names = {
            **{name: jsonable(getattr(alert, name)) for name in ("value", "lower", "upper", "limit")},
            "app": alert.app,
            "rule": alert.rule,
            "kind": alert.kind,
            "state": alert.state,
            "why": alert.why,
            "id": alert.id,
            "details": jsonable(dict(alert.details)),
            "key": labels.get("key", ""),
            "keys": keys,
            "link": _Link(link),
            "at": time_in(alert.at_us, zone),
            "since": time_in(alert.since_us, zone),
        }
        return str(self._compiled.render(names))
