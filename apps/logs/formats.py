"""The formats of logs, from those that are known by most to the one that takes any JSON."""

from __future__ import annotations

from .access import ACCESS
from .cloudtrail import CLOUDTRAIL
from .json_lines import JSON_LINES
from .otlp import OTLP
from .syslog import SYSLOG
from .text_lines import TEXT_LINES
from .zeek import ZEEK, ZEEK_JSON

FORMATS = (ACCESS, SYSLOG, ZEEK, OTLP, CLOUDTRAIL, ZEEK_JSON, JSON_LINES, TEXT_LINES)
