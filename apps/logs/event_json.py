"""JSON events recognised by their shape: Kubernetes' audit, Suricata's EVE, Windows' event log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ..app import AppFormat, Feed, Message, Settings
from .columns import failed_status, in_columns
from .json_lines import is_object
from .lines import NOWHERE, first_lines, lines_of, mostly, timed
from .members import begun, first_of, member, moment, whole
from .web_requests import missing_paths, refused_requests

_K8S = (
    *("requestReceivedTimestamp", "stageTimestamp", "stage", "verb", "user.username", "sourceIPs"),
    *("objectRef.resource", "objectRef.namespace", "objectRef.subresource", "requestURI", "userAgent"),
    *("responseStatus.code", "responseStatus.message"),
)
_K8S_TIME = ("stageTimestamp", "requestReceivedTimestamp")


def _kubernetes(feed: Feed) -> Stream:
    return begun(feed, _K8S, moment(first_of(_K8S_TIME)))


def _kubernetes_rows(feed: Feed, settings: Settings) -> Stream:
    """Read rows. A request has an event for each stage; the response is in the last."""
    code, verb = member("responseStatus.code"), member("verb")
    is_last = member("stage").is_in(["ResponseComplete", "Panic"]).fill_null(False)
    resource = pl.concat_str(
        member("objectRef.resource"), member("objectRef.subresource"), ignore_nulls=True, separator="/"
    )
    what = pl.when(resource != "").then(resource).otherwise(member("requestURI").str.replace(r"\?.*", ""))
    operation = pl.concat_str(verb, what, ignore_nulls=True, separator=" ")
    return in_columns(
        _kubernetes(feed),
        settings,
        host=member("objectRef.namespace"),
        address=member("sourceIPs").str.extract(r'"([^"]+)"'),
        user=member("user.username"),
        operation=operation,
        status=pl.when(is_last).then(code),
        failed=is_last & failed_status(code, settings).fill_null(False),
        refused=is_last & (code == "401").fill_null(False),
        missing=is_last & code.is_in(["403", "404"]).fill_null(False),
        agent=member("userAgent"),
        message=pl.coalesce(member("responseStatus.message"), operation),
        term=pl.concat_str(operation, pl.when(is_last).then(code), ignore_nulls=True, separator=" "),
    )


_EVE = (
    *("timestamp", "event_type", "src_ip", "dest_ip", "dest_port", "proto", "host", "in_iface"),
    *("alert.signature", "alert.severity", "alert.action", "alert.category", "http.hostname", "http.url"),
    *("http.http_user_agent", "http.status", "http.http_method", "http.length", "dns.rrname", "dns.rcode"),
    *("tls.sni", "flow.bytes_toserver", "flow.bytes_toclient", "fileinfo.filename", "anomaly.event"),
)


def _eve(feed: Feed) -> Stream:
    return begun(feed, _EVE, moment(member("timestamp")))


def _eve_rows(feed: Feed, settings: Settings) -> Stream:
    kind, status = member("event_type"), member("http.status")
    path = member("http.url").str.replace(r"\?.*", "")
    rcode = member("dns.rcode")
    what = ("dns.rrname", "tls.sni", "anomaly.event", "fileinfo.filename")
    port = pl.concat_str(member("proto"), member("dest_port"), separator="/")
    operation = pl.coalesce(member("alert.signature"), path, *(member(one) for one in what), port)
    level = pl.concat_str(pl.lit("severity "), member("alert.severity"))
    moved = [whole(member(f"flow.bytes_{one}")) for one in ("toserver", "toclient")]
    bad_alert = (member("alert.severity").cast(pl.Int64, strict=False) <= 2).fill_null(False)
    return in_columns(
        _eve(feed),
        settings,
        host=pl.coalesce(member("host"), member("in_iface"), kind),
        address=member("src_ip"),
        operation=operation,
        status=pl.coalesce(status, level, rcode),
        failed=failed_status(status, settings).fill_null(False)
        | bad_alert
        | rcode.is_in(["SERVFAIL", "REFUSED"]).fill_null(False),
        refused=refused_requests(member("http.http_method"), path, status),
        missing=missing_paths(status),
        bytes=pl.coalesce(whole(member("http.length")), moved[0] + moved[1]),
        agent=member("http.http_user_agent"),
        message=pl.coalesce(member("alert.signature"), operation),
        term=pl.concat_str(
            kind,
            pl.coalesce(member("alert.signature"), member("http.http_method"), rcode),
            status,
            ignore_nulls=True,
            separator=" ",
        ),
    )


_IN_DATA = ("TargetUserName", "IpAddress", "Status", "SubStatus", "Workstation", "LogonType")
_DATA = {
    name: (f"winlog.event_data.{name}", f"Event.EventData.{name}", f"EventData.{name}", name)
    for name in _IN_DATA
}
_ID = ("winlog.event_id", "Event.System.EventID", "System.EventID", "EventID", "EventId", "event_id")
_WINDOWS_TIME = (
    "@timestamp",
    "Event.System.TimeCreated.#attributes.SystemTime",
    "System.TimeCreated.SystemTime",
    "TimeCreated",
    "EventTime",
    "EventReceivedTime",
)
_COMPUTER = ("winlog.computer_name", "Event.System.Computer", "System.Computer", "Computer", "Hostname")
_CHANNEL = ("winlog.channel", "Event.System.Channel", "System.Channel", "Channel", "LogName")
_LEVEL = ("log.level", "Event.System.Level", "System.Level", "Level", "SeverityValue", "Severity")
_TEXT = ("message", "Message")
_WINDOWS = tuple(
    dict.fromkeys(
        (
            *_ID,
            *_WINDOWS_TIME,
            *_COMPUTER,
            *_CHANNEL,
            *_LEVEL,
            *_TEXT,
            *(p for paths in _DATA.values() for p in paths),
        )
    )
)
_REFUSED = ("4625", "4771", "4776", "529", "530", "531", "532", "533", "534", "535", "539", "18456")
"""Failed logons: in general, by Kerberos, by NTLM; Windows 2003's events; SQL Server's."""
_ONLY_IF_WRONG = ("4776",)
_WORDS = {
    "1": "critical",
    "2": "error",
    "3": "warning",
    "4": "information",
    "5": "verbose",
    "0": "information",
}


def _windows(feed: Feed) -> Stream:
    return begun(feed, _WINDOWS, moment(first_of(_WINDOWS_TIME)))


def _windows_rows(feed: Feed, settings: Settings) -> Stream:
    data = {name: first_of(paths) for name, paths in _DATA.items()}
    # A number may be an object with attributes, and a status is 0x0 for success.
    number = first_of(_ID).str.extract(r"(\d+)\D*$")
    text, level = first_of(_TEXT).str.replace(r"(?s)\r?\n.*", ""), first_of(_LEVEL)
    word = level.replace(_WORDS).str.to_lowercase()
    wrong = (first_of(_DATA["Status"]) != "0x0").fill_null(True)
    refused = number.is_in(_REFUSED) & (~number.is_in(_ONLY_IF_WRONG) | wrong)
    of_server = first_of(_TEXT).str.extract(r"\[CLIENT: ([0-9A-Fa-f.:]+)\]\s*$")
    address = data["IpAddress"].str.strip_prefix("::ffff:")
    channel = first_of(_CHANNEL)
    return in_columns(
        _windows(feed),
        settings,
        host=first_of(_COMPUTER),
        address=pl.coalesce(address, pl.when(number == "18456").then(of_server)),
        user=data["TargetUserName"],
        operation=pl.concat_str(channel, number, ignore_nulls=True, separator=" "),
        status=word,
        failed=(word.is_in(["critical", "error"]) | refused).fill_null(False),
        refused=refused,
        message=pl.coalesce(text, number),
        term=pl.concat_str(channel, number, data["SubStatus"], ignore_nulls=True, separator=" "),
    )


def _format(
    name: str,
    summary: str,
    rows: Callable[[Feed, Settings], Stream],
    stream: Callable[[Feed], Stream],
    is_one: Callable[[bytes], bool],
) -> AppFormat:
    def messages(path: Path, settings: Settings) -> Iterator[Message]:
        yield from timed(stream(NOWHERE), lines_of(path))

    def recognises(path: Path, head: bytes) -> bool:
        return mostly(first_lines(head), lambda line: is_one(line) and is_object(line))

    return AppFormat(name, summary, rows, recognises, messages)


KUBERNETES_AUDIT = _format(
    "kubernetes-audit",
    "Kubernetes' audit events, an object a message",
    _kubernetes_rows,
    _kubernetes,
    lambda line: b'"audit.k8s.io/' in line,
)
"""By https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/."""

EVE = _format(
    "eve",
    "Suricata's EVE, an object a message",
    _eve_rows,
    _eve,
    lambda line: b'"event_type"' in line and b'"timestamp"' in line and b'"src_ip"' in line,
)
"""By Suricata's user guide, "Eve JSON Format"."""

WINDOWS = _format(
    "windows",
    "Windows' events in JSON, by Winlogbeat, NXLog, Fluent Bit or evtx_dump, an object a message",
    _windows_rows,
    _windows,
    lambda line: (
        b'"winlog"' in line or (b'"EventID"' in line and (b'"Channel"' in line or b'"Computer"' in line))
    ),
)
"""Event numbers are from Microsoft's "Appendix L: Events to Monitor", member names from log shippers."""
