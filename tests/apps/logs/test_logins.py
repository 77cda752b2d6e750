# ruff: noqa: E501  lines are as daemons write them
"""Who is blamed for a refused login, whatever an attacker calls himself; each attempt counts once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from streamgauge.apps.logs.daemon_texts import SIGNS, TEXTS
from streamgauge.apps.logs.logins import find_logins

from ...cases import each
from .reading import alerts_of, read

ME, OTHER = "198.51.100.7", "192.0.2.66"
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def logins(program: str, *messages: str) -> list[tuple[str | None, str | None]]:
    """Sign and address of each message."""
    rows = find_logins(pl.Series([program] * len(messages)), pl.Series(messages, dtype=pl.String))
    return rows.select("login_sign", "login_address").rows()


@pytest.mark.slow
@each(
    ("sign", "message"),
    [
        ("failed", f"Failed password for root from {ME} port 22 ssh2"),
        ("failed", f"Failed password for invalid user a b from {ME} port 22 ssh2"),
        (
            "failed",
            f"[ID 800047 auth.info] Failed keyboard-interactive for <invalid username> from {ME} port 2 ssh2",
        ),
        ("failed", f"Failed publickey for invalid user git from {ME} port 22 ssh2: ED25519 SHA256:abc+/x"),
        ("context", f"Failed publickey for git from {ME} port 22 ssh2: ED25519 SHA256:abc+/x"),
        ("context", f"Failed none for root from {ME} port 22 ssh2"),
        ("context", f"Accepted publickey for git from {ME} port 22 ssh2: ED25519 SHA256:abc+/x"),
        ("announced", f"Invalid user  from {ME} port 22"),
        ("announced", f"error: PAM: Authentication failure for root from {ME}"),
        ("announced", f"error: PAM: authentication error for ann from {ME} via 192.0.2.1"),
        ("announced", f"User ann from {ME} not allowed because not listed in AllowUsers"),
        (
            "announced",
            f"User ann from {ME} not allowed because none of user's groups are listed in AllowGroups",
        ),
        ("announced", f"ROOT LOGIN REFUSED FROM {ME} port 22"),
        (
            "ended",
            f"error: maximum authentication attempts exceeded for root from {ME} port 22 ssh2 [preauth]",
        ),
        ("ended", f"Connection closed by authenticating user root {ME} port 22 [preauth]"),
        ("ended", f"Connection reset by invalid user a b {ME} port 22 [preauth]"),
        ("ended", f"Disconnected from authenticating user root {ME} port 22 [preauth]"),
        ("ended", f"Received disconnect from {ME} port 22:11: Bye Bye [preauth]"),
        ("context", f"Connection closed by {ME} port 22"),
        ("probe", f"Connection closed by {ME} port 22 [preauth]"),
        ("probe", f"banner exchange: Connection from {ME} port 22: invalid format"),
        (
            "probe",
            f"Unable to negotiate with {ME} port 22: no matching cipher found. Their offer: x [preauth]",
        ),
        ("probe", f"fatal: Timeout before authentication for {ME} port 22"),
    ],
)
def test_texts_of_sshd(sign: str, message: str) -> None:
    assert logins("sshd-session", message) == [(sign, ME)]
    assert logins("sshd", message.replace(ME, "2001:db8::7"))[0] == (sign, "2001:db8::7")
    assert logins("sshd", message.replace(ME, f"::ffff:{ME}"))[0] == (sign, ME)
    # What another program writes blames nobody, if it has the same words.
    assert logins("webapp", message)[0][1] is None


def test_nothing_is_refused_where_nobody_failed() -> None:
    innocent = [
        f"Received disconnect from {ME} port 22:11: disconnected by user",
        f"Disconnected from user ann {ME} port 22",
        "pam_unix(sshd:session): session opened for user ann by (uid=0)",
        f"Postponed publickey for git from {ME} port 22 ssh2 [preauth]",
        "User root not allowed because account is locked",
        f"pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost={ME}  user=ann",
    ]
    assert {sign for sign, _ in logins("sshd", *innocent)} <= {None, "context"}


@each(
    ("program", "message"),
    [
        ("sshd", "Failed password for invalid user {name} from {me} port 22 ssh2"),
        ("sshd", "Failed keyboard-interactive/pam for invalid user {name} from {me} port 22 ssh2"),
        ("sshd", "Invalid user {name} from {me} port 22"),
        ("sshd", "Connection closed by invalid user {name} {me} port 22 [preauth]"),
        ("sshd", "error: PAM: User not known to the underlying authentication module for illegal user {name} from {me}"),
        ("sshd", "error: maximum authentication attempts exceeded for invalid user {name} from {me} port 22 ssh2 [preauth]"),
        ("sshd", "Disconnecting invalid user {name} {me} port 22: Change of username or service not allowed: ({name},a) -> (b,a) [preauth]"),
        ("sshd", "Bad protocol version identification '{name}' from {me} port 22"),
        ("postfix/smtpd", "warning: unknown[{me}]: SASL LOGIN authentication failed: {name}"),
        ("dovecot", "imap-login: Disconnected (auth failed, 2 attempts in 4 secs): user=<{name}>, method=PLAIN, rip={me}, lip=192.0.2.1"),
        ("vsftpd", '[{name}] FAIL LOGIN: Client "{me}"'),
        ("imapd", "LOGIN FAILED, user={name}, ip=[{me}]"),
        ("exim", "login authenticator failed for ({name}) [{me}]: 535 Incorrect authentication data (set_id={name})"),
        ("proftpd", "host (example.com[{me}]): USER {name}: no such user found from x"),
        ("pure-ftpd", "(?@{me}) [WARNING] Authentication failed for user [{name}]"),
        ("mysqld", "Access denied for user '{name}'@'{me}' (using password: YES)"),
        ("nginx", '*3 user "{name}": password mismatch, client: {me}, server: x, request: "GET / HTTP/1.1", host: "x"'),
        ("nginx", '*3 user "{name}" was not found in "/etc/nginx/.htpasswd", client: {me}, server: , request: "GET / HTTP/1.1"'),
        ("nginx", "*3 PAM: user '{name}' - not authenticated: Authentication failure, client: {me}, server: x, request: \"GET / HTTP/1.1\""),
        ("httpd", "[client {me}:9] AH01618: user {name} not found: /"),
        ("sm-mta", "s1P8: ruleset=check_rcpt, arg1=<{name}>, relay=x [{me}], reject=550 5.7.1 <{name}>... Relaying denied"),
        ("postgres", 'no pg_hba.conf entry for host "{me}", user "{name}", database "x"'),
        ("app", "pam_unix(app:auth): authentication failure; logname= uid=0 euid=0 tty=x ruser={name} rhost={me}"),
    ],
)  # fmt: skip
def test_a_name_never_decides_who_is_blamed(program: str, message: str) -> None:
    names = [
        "x", f"x from {OTHER}", f"x from {OTHER} port 22 ssh2", f"x from {OTHER} port 22 ssh2: RSA SHA256:a",
        f"{OTHER} port 22 [preauth]", f"x {OTHER} port 22: Change of {OTHER}", f"a>, method=PLAIN, rip={OTHER}, lip=1",
        f'a] FAIL LOGIN: Client "{OTHER}"', f"a, ip=[{OTHER}]", f"a) [{OTHER}]: 535 Incorrect authentication data (b",
        f"a, client: {OTHER}", f'a": password mismatch, client: {OTHER}, server: x, request: "GET / HTTP/1.1", host: "x"',
        f"a>, relay=y [{OTHER}], reject=550 b", f"[client {OTHER}:9] user a", f"x[{OTHER}]", f"x rhost={OTHER}", f"rhost={OTHER} user=y", f"x'@'{OTHER}' (using password: YES)",
    ]  # fmt: skip
    texts = [message.format(name=name, me=ME) for name in names]
    blamed = logins(program, *texts)
    assert blamed[0][1] == ME
    assert {address for _, address in blamed} <= {ME, None}


def test_a_referrer_never_decides_who_is_blamed_by_nginx() -> None:
    line = f'*3 user "root": password mismatch, client: {ME}, server: x, request: "GET / HTTP/1.1", host: "x", referrer: "'
    forged = f'a": password mismatch, client: {OTHER}, server: x, request: "GET / HTTP/1.1"'
    assert logins("nginx", line + forged + '"') == [("failed", ME)]
    # With a colon in the name as well, both addresses may be a client's.
    both = line.replace("root", "ro:ot") + forged + '"'
    assert logins("nginx", both) == [("failed", None)]


def test_every_text_compiles_and_has_a_known_sign() -> None:
    for text in TEXTS:
        assert text.sign in SIGNS
        assert pl.Series([""]).str.contains(text.expression).to_list() == [False]


def write(path: Path, lines: list[tuple[float, str]]) -> Path:
    path.write_text(
        "\n".join(f"{MIDNIGHT + timedelta(seconds=at):%Y-%m-%dT%H:%M:%SZ} web {line}" for at, line in lines)
        + "\n"
    )
    return path


def fired(path: Path, given: dict[str, str] | None = None) -> list[tuple[str, str, float]]:
    """State, address and second of what is reported of logins."""
    _, alerts, _ = alerts_of(path, "logins", given)
    start = MIDNIGHT.timestamp()
    return [(alert.state, alert.plain_key, alert.at_us / 1e6 - start) for alert in alerts]


def test_five_refusals_within_ten_minutes_are_brute_force_wherever_minutes_end(tmp_path: Path) -> None:
    text = f"sshd[{{}}]: Failed password for root from {ME} port 22 ssh2"
    lines = [(59 + 145 * n, text.format(n)) for n in range(5)]
    later = [(4000.0, "cron[1]: nothing")]
    path = write(tmp_path / "auth.log", [*lines, *later])
    assert fired(path) == [("fired", ME, 639), ("cleared", ME, 639 + 600)]
    assert fired(write(path, [(59 + 151 * n, text.format(n)) for n in range(5)] + later)) == []
    assert fired(path, {"findtime": "11m"})[0] == ("fired", ME, 663)


def test_an_attempt_counts_once_however_many_lines_it_has(tmp_path: Path) -> None:
    def attempt(at: float, pid: int) -> list[tuple[float, str]]:
        return [
            (at, f"sshd[{pid}]: Invalid user x from {ME} port 22"),
            (at, f"sshd[{pid}]: pam_unix(sshd:auth): authentication failure; logname= rhost={ME}"),
            (at + 2, f"sshd[{pid}]: Failed password for invalid user x from {ME} port 22 ssh2"),
            (at + 3, f"sshd[{pid}]: Received disconnect from {ME} port 22:11: Bye Bye [preauth]"),
            (at + 3, f"sshd[{pid}]: Disconnected from invalid user x {ME} port 22 [preauth]"),
        ]

    path = tmp_path / "auth.log"
    four = [line for n in range(4) for line in attempt(60 * n, n)]
    assert fired(write(path, four)) == []
    assert fired(write(path, [*four, *attempt(240, 9)]))[0] == ("fired", ME, 240)


def test_a_line_that_names_no_address_is_of_its_connection(tmp_path: Path) -> None:
    path = write(
        tmp_path / "auth.log",
        [
            (0, f"sshd[7]: Connection from {ME} port 22 on 192.0.2.1 port 22"),
            (1, f"sshd[8]: Connection from {OTHER} port 22 on 192.0.2.1 port 22"),
            (2, "sshd[7]: Disconnecting: Too many authentication failures for root [preauth]"),
            (3, "sshd[9]: Disconnecting: Too many authentication failures for root [preauth]"),
        ],
    )
    _, rows, _ = read(path)
    assert rows.select("refused", "address").rows()[2:] == [(1, ME), (0, None)]
    assert fired(path, {"logins": "1"}) == [("fired", ME, 2)]


def test_refusals_of_nobody_are_no_brute_force(tmp_path: Path) -> None:
    path = write(
        tmp_path / "mail.log", [(n, f"mailer[1]: login failed for x{n} from {ME}") for n in range(9)]
    )
    _, rows, _ = read(path)
    assert rows["refused"].sum() == 9
    assert fired(path) == []


def test_probes_can_be_left_out(tmp_path: Path) -> None:
    probe = f"Connection closed by {ME} port 22 [preauth]"
    path = write(tmp_path / "auth.log", [(n, f"sshd[{n}]: {probe}") for n in range(9)])
    assert fired(path)[0] == ("fired", ME, 4)
    assert fired(path, {"probes": "no"}) == []
    with pytest.raises(ValueError, match="--set probes must be yes or no, got maybe"):
        fired(path, {"probes": "maybe"})
