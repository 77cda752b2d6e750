# ruff: noqa: E501  lines are as programs write them
"""Lines of many programs: each is read by its shape, or refused by what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.logs.by_shape import LinesByShape
from streamgauge.operators.formats.messages import Messages

from .reading import alerts_of, read

ME = "198.51.100.7"
AT_MS = 1_767_225_600_000

HAPROXY = f'{ME}:33317 [01/Jan/2026:12:14:14.655] web~ app/srv1 10/0/30/69/109 401 2750 - - ---- 1/1/1/1/0 0/0 {{a|b}} {{}} "POST /login?a=1 HTTP/1.1"'
W3C = f"2026-01-01 12:00:00 192.0.2.1 POST /login a=1 443 - {ME} Mozilla/5.0+(X11) - 401 0 0 93"
ACCESS = f'{ME} - - [01/Jan/2026:12:14:14 +0000] "POST /login?a=1 HTTP/1.1" 401 17 "-" "curl/8"'
TRAEFIK = f'{ACCESS} 502 "test@docker" "http://192.0.2.3:80" 12ms'
INGRESS = f"{ACCESS} 80 0.012 [default-web-80] [] 10.244.0.9:80 13 0.012 401 c99400"
AUDIT = f'type=USER_AUTH msg=audit(1767269654.243:24287): pid=12 uid=0 auid=1 ses=2 msg=\'op=PAM:authentication grantors=? acct="root" exe="/usr/sbin/sshd" hostname={ME} addr={ME} terminal=ssh res=failed\''
CEF = rf"CEF:0|Acme|Gate|1.0|100|Login failed|8|rt=1767269654000 src={ME} duser=root act=blocked msg=a \= b outcome=failure"
LEEF = f"LEEF:1.0|Acme|Gate|1.0|Login failed|devTime=1767269654000\tsrc={ME}\tusrName=root\toutcome=failure\tsev=8"
NGINX = f'2026/01/01 12:14:14 [error] 7#7: *3 user "root": password mismatch, client: {ME}, server: x, request: "GET / HTTP/1.1", host: "x"'
SSHD = f"Failed password for root from {ME} port 22 ssh2"

CADDY = {
    "level": "info",
    "ts": 1767269654.5,
    "logger": "http.log.access",
    "msg": "handled request",
    "request": {
        "remote_ip": ME,
        "method": "POST",
        "uri": "/login?a=1",
        "headers": {"User-Agent": ["curl/8"]},
    },
    "duration": 0.012,
    "size": 17,
    "status": 401,
}
TRAEFIK_JSON = {
    "ClientHost": ME,
    "ClientUsername": "-",
    "DownstreamStatus": 401,
    "DownstreamContentSize": 17,
    "Duration": 12_000_000,
    "RequestHost": "x",
    "RequestMethod": "POST",
    "RequestPath": "/login",
    "time": "2026-01-01T12:14:14Z",
    "level": "info",
    "msg": "",
}
KUBERNETES = {
    "kind": "Event",
    "apiVersion": "audit.k8s.io/v1",
    "stage": "ResponseComplete",
    "requestURI": "/api",
    "verb": "list",
    "user": {"username": "ann"},
    "sourceIPs": [ME, "10.0.0.1"],
    "objectRef": {"resource": "secrets", "namespace": "prod"},
    "responseStatus": {"code": 401},
    "stageTimestamp": "2026-01-01T12:14:14.5Z",
}
EVE = {
    "timestamp": "2026-01-01T12:14:14.500000+0000",
    "event_type": "http",
    "src_ip": ME,
    "dest_ip": "192.0.2.1",
    "http": {"hostname": "x", "url": "/login?a", "http_method": "POST", "status": 401, "length": 17},
}
WINLOGBEAT = {
    "@timestamp": "2026-01-01T12:14:14.5Z",
    "winlog": {
        "event_id": 4625,
        "channel": "Security",
        "computer_name": "dc1",
        "event_data": {
            "TargetUserName": "root",
            "IpAddress": f"::ffff:{ME}",
            "Status": "0xc000006d",
            "SubStatus": "0xc000006a",
        },
    },
    "message": "An account failed to log on.\n\nSubject:",
}
NXLOG = {
    "EventTime": "2026-01-01T12:14:14Z",
    "Hostname": "dc1",
    "EventID": 4625,
    "Channel": "Security",
    "TargetUserName": "root",
    "IpAddress": ME,
}
EVTX = {
    "Event": {
        "System": {
            "EventID": 4625,
            "Channel": "Security",
            "Computer": "dc1",
            "Level": 0,
            "TimeCreated": {"#attributes": {"SystemTime": "2026-01-01T12:14:14.5Z"}},
        },
        "EventData": {"TargetUserName": "root", "IpAddress": ME},
    }
}
JOURNAL = {
    "__REALTIME_TIMESTAMP": "1767269654500000",
    "_HOSTNAME": "web",
    "SYSLOG_IDENTIFIER": "sshd",
    "_PID": "9",
    "PRIORITY": "6",
    "MESSAGE": SSHD,
}
POSTGRES = {
    "timestamp": "2026-01-01 12:14:14.500 UTC",
    "user": "root",
    "remote_host": ME,
    "pid": 9,
    "error_severity": "FATAL",
    "backend_type": "client backend",
    "message": 'password authentication failed for user "root"',
}

LINES = {
    "haproxy": HAPROXY,
    "haproxy in syslog": f"<134>Jan  1 12:14:14 lb haproxy[9]: {HAPROXY}",
    "iis": W3C,
    "access": ACCESS,
    "access in syslog": f"Jan  1 12:14:14 web nginx[9]: {ACCESS}",
    "traefik": TRAEFIK,
    "ingress-nginx": INGRESS,
    "auditd": AUDIT,
    "audit in the journal": f"Jan  1 12:14:14 web audit[9]: {AUDIT}",
    "cef": CEF,
    "cef in syslog": f"Jan  1 12:14:14 gate {CEF}",
    "leef": LEEF,
    "nginx": NGINX,
    "apache of IPv6": f"[Thu Jan 01 12:14:14.5 2026] [auth_basic:error] [pid 9] [client {ME}:9] AH01618: user root not found: /",
    "apache in syslog": f"Jan  1 12:14:14 web httpd[9]: [auth_basic:error] [pid 9] [client {ME}:9] AH01618: user root not found: /",
    "mysql": f"2026-01-01T12:14:14.5Z 9 [Note] [MY-010926] [Server] Access denied for user 'root'@'{ME}' (using password: YES)",
    "mariadb": f"2026-01-01  8:14:14 9 [Warning] Access denied for user 'root'@'{ME}'",
    "mysql 5.5": f"260101  8:14:14 [Warning] Access denied for user 'root'@'{ME}' (using password: YES)",
    "mysql in syslog": f"Jan  1 12:14:14 db mysqld: 260101  8:14:14 [Warning] Access denied for user 'root'@'{ME}' (using password: YES)",
    "postgres": f'2026-01-01 12:14:14.5 UTC [9] {ME} root@db FATAL:  password authentication failed for user "root"',
    "postgres on rds": f'2026-01-01 12:14:14 UTC:{ME}(5432):root@db:[9]:FATAL:  password authentication failed for user "root"',
    "proftpd": f"2026-01-01 12:14:14,5 web proftpd[9] web (x[{ME}]): USER root (Login failed): Incorrect password",
    "multilog": f"@400000006956650030000000 imap-login: Info: Aborted login (auth failed, 1 attempts): user=<root>, method=PLAIN, rip={ME}, lip=192.0.2.1",
    **{name: json.dumps(one) for name, one in {"caddy": CADDY, "traefik json": TRAEFIK_JSON, "kubernetes": KUBERNETES, "eve": EVE, "winlogbeat": WINLOGBEAT, "nxlog": NXLOG, "evtx": EVTX, "journald": JOURNAL, "postgres json": POSTGRES}.items()},
}  # fmt: skip


def decoded(*lines: str) -> tuple[list[dict[str, Any]], list[str]]:
    messages = Messages.of([line.encode() for line in lines], timestamps=[AT_MS + 86_400_000] * len(lines))
    result = LinesByShape().decode(messages)
    return result.frame.to_dicts(), result.reasons


def docker(line: str) -> str:
    whole = {"log": line + "\n", "stream": "stderr", "time": "2026-01-01T12:14:14.5Z"}
    return json.dumps(whole, separators=(",", ":"))


def test_a_refused_login_in_any_shape_and_out_of_containers() -> None:
    wholes = {
        (name, container): whole
        for name, line in LINES.items()
        for container, whole in (
            ("", line),
            ("docker", docker(line)),
            ("CRI", f"2026-01-01T12:14:14.5Z stderr F {line}"),
        )
    }
    rows, reasons = decoded(*wholes.values())
    assert reasons == []
    wrong = []
    for which, row in zip(wholes, rows, strict=True):
        address = (row["address"] or "").removeprefix("::ffff:")
        in_time = "2026-01-01 08" <= str(row["time"]) < "2026-01-01 13"
        if (address, row["refused"], in_time) != (ME, 1, True):
            wrong.append((which, row))
    assert not wrong


def test_what_a_request_was_for() -> None:
    for name in ("haproxy", "iis", "access", "traefik", "ingress-nginx", "caddy", "traefik json", "eve"):
        row = decoded(LINES[name])[0][0]
        assert (name, row["operation"], row["status"]) == (name, "/login", "401")
        assert (
            row["term"].replace("info ", "").replace("handled request ", "").replace("http ", "")
            == "POST 401"
        )
        if name not in ("iis", "haproxy", "eve", "access"):
            assert (name, row["seconds"]) == (name, 0.012)


def test_windows_events_count_only_logons_that_failed() -> None:
    def event(number: int, **data: str) -> str:
        return json.dumps({**NXLOG, "EventID": number, **data})

    rows, _ = decoded(
        event(4624), event(4771), event(4776, Status="0x0"), event(4776, Status="0xc000006a"), event(7036)
    )
    assert [row["refused"] for row in rows] == [0, 1, 0, 1, 0]


def test_stages_of_a_kubernetes_request_count_once() -> None:
    rows, _ = decoded(
        *(json.dumps({**KUBERNETES, "stage": stage}) for stage in ("RequestReceived", "ResponseComplete"))
    )
    assert [row["refused"] for row in rows] == [0, 1]


def test_a_field_that_stands_twice_has_no_value() -> None:
    rows, _ = decoded(CEF.replace("msg=a", "msg=x src=192.0.2.66 y"))
    assert rows[0]["address"] is None and rows[0]["refused"] == 1


def test_what_is_not_read_is_refused_by_name() -> None:
    lines = {
        "2026-01-01T12:14:14.5Z stderr P half of": "a part of a longer line (CRI's P)",
        '<Event xmlns="http://schemas.microsoft.com/win/2004/08/events/event"><System/></Event>': "Windows' event in XML",
        '{"resourceLogs":[]}': "a batch of OpenTelemetry's: run it by --format otlp",
        "#Fields: date time": "a header, not a record",
        "hello": "a line of no shape",
        '{"msg":"no time"}': "no time in ",
    }  # fmt: skip
    rows, reasons = decoded(*lines)
    assert not rows
    assert [reason.startswith(start) for reason, start in zip(reasons, lines.values())] == [True] * len(lines)


def test_a_container_has_a_time_for_what_has_none() -> None:
    rows, reasons = decoded(docker('{"msg":"no time"}'), docker("warning: disk is full"), docker("hello"))
    assert not reasons and [row["status"] for row in rows] == [None, "warning", None]
    assert {str(row["at"])[:19] for row in rows} == {"2026-01-01 12:14:14"}


def test_bytes_of_the_journal_are_text() -> None:
    rows, _ = decoded(json.dumps({**JOURNAL, "MESSAGE": list(SSHD.encode())}))
    assert (rows[0]["address"], rows[0]["refused"]) == (ME, 1)


@pytest.mark.slow
def test_recordings_are_recognised(tmp_path: Path) -> None:
    known = {
        "haproxy": "haproxy", "auditd": "auditd", "cef": "cef", "leef": "cef", "kubernetes": "kubernetes-audit",
        "eve": "eve", "winlogbeat": "windows", "nxlog": "windows", "traefik": "access", "ingress-nginx": "access",
        "caddy": "json", "nginx": "text", "mysql in syslog": "syslog",
    }  # fmt: skip
    formats = {}
    for name in known:
        path = tmp_path / "a.log"
        path.write_text(f"{LINES[name]}\n" * 3)
        form, rows, reasons = read(path)
        assert (rows.height, rows["refused"].sum(), reasons) == (3, 3, [])
        formats[name] = form
    assert formats == known
    path.write_text(
        f"#Version: 1.0\n#Fields: time date c-ip cs-method cs-uri-stem sc-status\n12:00:00 2026-01-01 {ME} GET /a 404\n"
    )
    form, rows, _ = read(path)
    assert (form, rows["address"].to_list(), rows["missing"].to_list()) == ("w3c", [ME], [1])
    path.write_text(f"{docker(ACCESS)}\n" * 3)
    assert read(path)[0] == "lines"


def test_five_refusals_out_of_a_container_are_brute_force(tmp_path: Path) -> None:
    path = tmp_path / "container.log"
    path.write_text("".join(f"2026-01-01T12:14:{n:02}.5Z stderr F {SSHD}\n" for n in range(10, 16)))
    _, alerts, _ = alerts_of(path, "logins")
    assert [(alert.state, alert.plain_key) for alert in alerts][:1] == [("fired", ME)]
