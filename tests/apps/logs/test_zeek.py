"""Zeek's logs as tables and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from streamgauge.apps.logs.zeek import ZeekTable
from streamgauge.operators.formats.messages import Messages

from .reading import alerts_of, job_of, read

FIELDS = {
    "http": "ts uid id.orig_h id.resp_p method uri user_agent status_code response_body_len",
    "conn": "ts uid id.orig_h id.resp_p proto service duration orig_bytes resp_bytes conn_state",
    "dns": "ts uid id.orig_h query qtype_name rcode_name rtt",
    "ssh": "ts uid id.orig_h auth_success client",
    "kerberos": "ts uid id.orig_h request_type client service success error_msg",
}
RECORDS = [
    ("http", "1767225600.5 C1 192.0.2.9 80 GET /a curl/8 503 17"),
    ("http", "1767225601.5 C1 192.0.2.9 80 GET /a curl/8 401 -"),
    ("conn", "1767225602.5 C2 192.0.2.9 443 tcp - 0.25 10 7 SF"),
    ("conn", "1767225603.5 C2 192.0.2.9 53 udp dns - - - S0"),
    ("dns", "1767225604.5 C3 192.0.2.9 example.org A NXDOMAIN 0.25"),
    ("dns", "1767225605.5 C3 192.0.2.9 example.org A SERVFAIL -"),
    ("ssh", "1767225606.5 C4 192.0.2.9 F SSH-2.0"),
    ("kerberos", "1767225607.5 C5 192.0.2.9 AS ann/EX krbtgt/EX F KDC_ERR_PREAUTH_REQUIRED"),
    ("kerberos", "1767225608.5 C5 192.0.2.9 AS ann/EX krbtgt/EX F KDC_ERR_PREAUTH_FAILED"),
]
WANTED = [  # host, user, operation, status, failed, refused, bytes, seconds, term
    ("http", None, "/a", "503", 1, 0, 17, None, "http GET 503"),
    ("http", None, "/a", "401", 0, 1, None, None, "http GET 401"),
    ("conn", None, "tcp/443", "SF", 0, 0, 17, 0.25, "conn tcp SF"),
    ("conn", None, "dns", "S0", 1, 0, None, None, "conn dns S0"),
    ("dns", None, "example.org", "NXDOMAIN", 0, 0, None, 0.25, "dns A NXDOMAIN"),
    ("dns", None, "example.org", "SERVFAIL", 1, 0, None, None, "dns A SERVFAIL"),
    ("ssh", "SSH-2.0", None, None, 1, 1, None, None, "ssh"),
    ("kerberos", "ann/EX", "krbtgt/EX", "KDC_ERR_PREAUTH_REQUIRED", 0, 0, None, None, None),
    ("kerberos", "ann/EX", "krbtgt/EX", "KDC_ERR_PREAUTH_FAILED", 1, 1, None, None, None),
]


def head(log: str) -> str:
    names = "\t".join(FIELDS[log].split())
    return (
        f"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\t{log}\n"
        f"#open\t2026-01-01-00-00-00\n#fields\t{names}\n#types\t…\n"
    )


def as_tables(path: Path) -> Path:
    """All logs one after the other, each with its own header, as `cat` puts them together."""
    text, before = "", ""
    for log, record in RECORDS:
        text += (head(log) if log != before else "") + "\t".join(record.split()) + "\n"
        before = log
    path.write_text(text + "#close\t2026-01-01-01-00-00\n")
    return path


def as_json(path: Path) -> Path:
    lines = []
    for log, record in RECORDS:
        cells = {name: cell for name, cell in zip(FIELDS[log].split(), record.split()) if cell != "-"}
        typed = {"ts": float(cells["ts"]), **({"success": False} if "success" in cells else {})}
        lines.append(json.dumps({**cells, **typed}))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_both_forms_of_any_log_are_the_same_rows(tmp_path: Path) -> None:
    columns = ["host", "user", "operation", "status", "failed", "refused", "bytes", "seconds", "term"]
    for form, path in (("zeek", as_tables(tmp_path / "a.log")), ("zeek-json", as_json(tmp_path / "b.log"))):
        name, rows, reasons = read(path)
        assert (name, reasons) == (form, []) and set(rows["address"]) == {"192.0.2.9"}
        result = rows.select(columns).rows()
        assert result[:6] == WANTED[:6]
        assert [row[:8] for row in result[6:]] == [row[:8] for row in WANTED[6:]]
        job = job_of(path)
        sent = [message.sent_ms for message in job.form.messages(path, job.settings)]
        assert sent == [1_767_225_600_500 + 1000 * number for number in range(9)]
        assert alerts_of(path, "days")[0].counted == 9


def test_records_that_their_header_does_not_fit_are_refused() -> None:
    top = head("dns").encode()
    row = b"1.5\tC\t::1\texample.org\tA\tNOERROR\t-"
    values = [
        top + row,
        top + b"1.5\tC",
        row,
        b"#separator ,\n#path,dns\n#fields,ts,query\n2.5,a",
        None,
        b"\xff",
    ]
    decoded = ZeekTable().decode(Messages.of(values)).checked(len(values), ZeekTable().schema)
    assert decoded.frame.select("_path", "ts", "query", "rtt").rows() == [
        ("dns", "1.5", "example.org", None),
        ("dns", "2.5", "a", None),
    ]
    assert decoded.refused.tolist() == [1, 2, 4, 5] and decoded.reasons == [
        "2 fields, where its header names 7: '1.5\\tC'",
        "no #fields before it: '1.5\\tC\\t::1\\texample.org\\tA\\tNOERROR\\t-'",
        "no value (a tombstone)",
        "not UTF-8 text",
    ]
