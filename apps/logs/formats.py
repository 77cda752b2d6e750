"""The formats of logs, from the most specific to those for any JSON and any text."""

from __future__ import annotations

from .access import ACCESS
from .auditd import AUDITD
from .by_shape import LINES
from .cef import CEF
from .cloudtrail import CLOUDTRAIL
from .event_json import EVE, KUBERNETES_AUDIT, WINDOWS
from .haproxy import HAPROXY
from .json_lines import JSON_LINES
from .otlp import OTLP
from .syslog import SYSLOG
from .text_lines import TEXT_LINES
from .w3c import W3C
from .zeek import ZEEK, ZEEK_JSON

_IN_JSON = (OTLP, KUBERNETES_AUDIT, EVE, WINDOWS, CLOUDTRAIL, ZEEK_JSON, JSON_LINES)
FORMATS = (ACCESS, HAPROXY, AUDITD, CEF, W3C, LINES, SYSLOG, ZEEK, *_IN_JSON, TEXT_LINES)
"""A recording is tried against them in this order. A live run defaults to the first."""
