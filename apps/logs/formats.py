"""The formats of logs, from those that are known by most to the one that takes any JSON."""

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
"""In the order in which they are tried on a recording; a live run takes the first unless you name another."""
