"""Patterns of daemons' messages about refused logins, from the first to the last character of a line.

An attacker chooses the user name that a daemon logs, and much else: a user such as ``x from 192.0.2.66 port
22 ssh2`` makes a line that names two addresses. So each pattern is a daemon's own text, anchored at both
ends; client-chosen text is matched greedily up to the last place where the daemon's own text continues. If
two interpretations remain, the line has no address (`DaemonText.single`).

The texts are those of the daemons' sources: OpenSSH's auth.c, auth2*.c, auth-pam.c, packet.c, kex.c and
sshd.c, pam_unix, Postfix's smtpd and postscreen, Dovecot's auth and login processes, Courier, Exim, Sendmail,
Cyrus, vsftpd, ProFTPD, Pure-FTPd, Dropbear, MySQL, PostgreSQL, nginx's and Apache's authentication.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import polars as pl

Sign = Literal["failed", "announced", "ended", "probe", "context"]
"""The meaning of a line.

``failed`` is a refused attempt. ``announced`` says in advance that one will fail (no such user), ``ended``
that a connection ended without a login: these are not additional attempts if the attempt is logged already.
``probe`` is a client that the daemon rejected before it tried to log in. ``context`` only names the address.
"""

SIGNS: tuple[Sign, ...] = ("failed", "announced", "ended", "probe", "context")

_NAME = r"[0-9A-Za-z_](?:[\w.-]*\w)?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*[0-9A-Fa-f](?:%\w+)?"
_IP = r"(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*[0-9A-Fa-f](?:%\w+)?"
_MAPPED = r"(?:::[fF]{4}:)?"
_PARTS = {
    "<exim>": r"(?: \S+)?(?: \(\S*\))? \[<ip>\](?::\d+)?(?: (?:I|Ci|TLS|X|CV|SNI|D|L)=\S+)*",
    "<address>": rf"{_MAPPED}(?P<address>{_NAME})",
    "<ip>": rf"{_MAPPED}(?P<address>{_IP})",
    "<user>": r"(?P<user>.*)",
    "<end>": r"(?: port \d+)?(?: on \S+)?(?: ssh\d?)?(?: \[preauth\])?\s*$",
}


@dataclass(frozen=True)
class DaemonText:
    """A daemon's message, from its first to its last character.

    `programs` matches the program's name, empty if a log has none. In `pattern`, ``<address>`` is an address
    or a host name, ``<ip>`` an address, ``<user>`` client-chosen text. A line that contains `unlike` is
    another message; in a line that contains `single` more than once, the address is not certain.
    """

    programs: str
    pattern: str
    sign: Sign
    single: str = ""
    unlike: str = ""

    @property
    def expression(self) -> str:
        """The pattern as a Rust regular expression, with the groups ``address`` and ``user``."""
        text = self.pattern
        for name, part in _PARTS.items():
            text = re.sub(rf"(?<!\?P){name}", part.replace("\\", r"\\"), text)
        return f"(?s){text}"

    def matches(self, text: pl.Expr) -> pl.Expr:
        """Whether a line matches this text."""
        is_one = text.str.contains(self.expression)
        return is_one & ~text.str.contains(self.unlike) if self.unlike else is_one


_SSHD = r"^(?:sshd(?:-session|-auth)?)?$"
_SSH = r"^(?:\[sshd\]:? )?(?:kernel:\[ *[\d.]+\]: )?(?:\[ID \d+ \w+\.\w+\] )?(?:(?:error|fatal): )?"
_OF_KEY = r" port \d+ ssh\d: "

_SSH_TEXTS = (
    # auth.c, auth_log(): a key's text, which includes a client-chosen comment, comes after the address.
    ("Failed (?:none|publickey) for [^ ]+ from <address>(?: port \\d+)?(?: ssh\\d?)?(?:: .*)?$", "context"),
    ("Failed \\S+ for (?:(?:invalid|illegal) user )?<user> from <address><end>", "failed", "", _OF_KEY),
    (
        "Failed \\S+ for (?:(?:invalid|illegal) user )?<user> from <address> port \\d+ ssh\\d: .*$",
        "failed",
        r" port \d+ ssh\d",
    ),
    ("(?:Accepted|Postponed|Partial) \\S+ for <user> from <address><end>", "context", "", _OF_KEY),
    (
        "(?:Accepted|Postponed|Partial) \\S+ for <user> from <address> port \\d+ ssh\\d: .*$",
        "context",
        r" port \d+ ssh\d",
    ),
    ("[Ii](?:nvalid|llegal) user <user> from <address><end>", "announced"),
    (
        "User <user> from <address> not allowed because (?:listed in DenyUsers|not listed in AllowUsers"
        "|not in any group|a group is listed in DenyGroups"
        "|none of user's groups are listed in AllowGroups)<end>",
        "announced",
    ),
    (
        "PAM: (?:[Aa]uthentication (?:failure|error|failed)|User not known to the underlying authentication"
        " module|Permission denied|(?:Have exhausted m|M)aximum number of (?:retries for service|tries"
        " exceeded)|User account has expired) for (?:(?:illegal|invalid) user )?<user> from <address>"
        "(?: via \\S+)?<end>",
        "announced",
    ),
    ("ROOT LOGIN REFUSED FROM <address><end>", "announced"),
    ("refused connect from .* \\(<address>\\)<end>", "probe"),
    ("maximum authentication attempts exceeded for (?:invalid user )?<user> from <address><end>", "ended"),
    # packet.c: the client-chosen name comes before the address.
    (
        "(?:Connection (?:closed|reset) by|Disconnected from|Connection from|Disconnecting)"
        " (?:authenticating|invalid) user <user> <address> port \\d+(?: timed out)?(?: \\[preauth\\])?\\s*$",
        "ended",
    ),
    (
        "Disconnecting (?:authenticating|invalid) user <user> <address> port \\d+: Too many authentication"
        " failures(?: \\[preauth\\])?$",
        "context",
    ),
    (
        "Disconnecting (?:authenticating|invalid) user <user> <address> port \\d+: Change of .*$",
        "ended",
        r" \S+ port \d+: ",
    ),
    ("Disconnecting: Too many authentication failures(?: for <user>)?<end>", "ended"),
    ("Received disconnect from <address>(?: port \\d+)?: ?3: .*: Auth (?:fail|cancel)<end>", "ended"),
    ("Received disconnect from <address>(?: port \\d+)?: ?14: No (?:supported )?authentication .*$", "ended"),
    ("Received disconnect from <address>(?: port \\d+)?: ?\\d+: .*\\[preauth\\]\\s*$", "ended"),
    ("(?:Connection (?:closed|reset) by|Disconnected from) <address>(?: port \\d+)? \\[preauth\\]$", "probe"),
    ("Timeout before authentication for (?:connection from )?<address>(?: port \\d+| to .*)?$", "probe"),
    ("Did not receive identification string from <address><end>", "probe"),
    ("Bad protocol version identification '.*' from <address><end>", "probe"),
    ("banner exchange: Connection from <address> port \\d+: .*$", "probe"),
    ("ssh_dispatch_run_fatal: Connection from <address> port \\d+: .*$", "probe"),
    ("Unable to negotiate with <address> port \\d+: no matching .*$", "probe"),
    ("Magic value check failed \\(\\d+\\) on obfuscated handshake from <address>.*$", "probe"),
    (
        "(?:Read from socket failed: Connection reset by peer|Unable to negotiate a .*"
        "|kex_exchange_identification: (?:client sent invalid protocol identifier.*"
        "|(?:read: )?Connection (?:closed by remote host|reset by peer))"
        "|no matching \\S+(?: \\S+)* found: client .*)<end>",
        "probe",
    ),
    ("Connection from <address> port \\d+(?: on .*)?$", "context"),
    ("Connection (?:closed|reset) by <address>(?: port \\d+)?$", "context"),
    ("SSH: Server;Ltype: \\w+;Remote: <address>-\\d+;.*$", "context"),
    ("Address <address> maps to .*$", "context"),
    ("reverse mapping checking getaddrinfo for \\S+ \\[<address>\\] failed.*$", "context"),
)

_PAM = r"(?:pam_\w+(?:\([^)]*\))?:?|\(pam_\w+\)) +authentication failure; "
_RHOST = r"(?:(?:logname|e?uid|tty)=\S* +)*(?:ruser=.* ?)?rhost=<address>(?:\s+user=(?P<user>\S*))?\s*$"
_FIRST_HOST = r"(?:(?:logname|e?uid|tty)=\S* +)*ruser= +rhost=<address>(?:\s+user=<user>)?\s*$"
_TWO_HOSTS = r"\suser=.*\brhost="
_MAIL = r"^postfix[^\s\[]*$"
_DOVECOT = r"^(?:dovecot(?:-auth)?|auth(?:-worker)?(?:\(.*\))?|(?:imap|pop3|managesieve|submission)-login)?$"
_LOGIN = r"^(?:(?:imap|pop3|managesieve|submission)-login: )?(?:Info: )?"
_REASONS = (
    r"(?:Login aborted|Aborted login|Disconnected|Remote closed connection|Client has quit the connection)"
)
_AUTH = (
    r"^(?:dovecot: )?(?:auth(?:-worker)?(?:\([^)]*\))?(?:<[^>]+>)?: )?(?:Info: )?"
    r"(?:conn \S+ \([^)]*\): auth(?:-worker)?<\d+>: )?"
)
_EXIM = r"^(?:exim4?)?$"
_EXIM_PID = r"^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d )?(?:\[\d+\] )?(?:[\w-]{16,23} )?"
_FTP = r"^(?:proftpd)?$"
_FTP_CLIENT = r"^(?:proftpd\[\d+\]:? )?\S+ \([^\[\]()]*\[<ip>\]\):?(?: -)? "
_ALL = r"^"

_STAMP = r"(?:(?:\d{6}|\d{4}-\d\d-\d\d)[ T]+\d{1,2}:\d\d:\d\d(?:\.\d+)?Z? (?:\d+ )?)?"
_NGINX = r"(?:\S+ nginx: )?(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] \d+#\d+: )?(?:\*\d+ )?"
_REFERRED = r', referrer: ".*, client: '
_APACHE_CLIENT = (
    r"(?:\[[\w-]*:?\w+\] )?(?:\[pid \d+(?::tid \d+)?\] )?"
    r"\[(?:client|remote) \[?<address>\]?(?::\d+)?\] "
)
_APACHE_TEXTS: tuple[tuple[str, Sign], ...] = tuple(
    (rf"(?:AH\d+: )?(?:Digest: )?{pattern}", sign)  # type: ignore[misc]
    for pattern, sign in (
        (
            r"user .*(?:: (?:password mismatch|authorization failure|authentication failure)\b.*"
            r"| not found(?:: .*)?)",
            "failed",
        ),
        (r"Authorization of user .* to access .* failed, reason: .*", "failed"),
        (r"client used wrong authentication scheme: .*", "failed"),
        (r"invalid qop `.*' received: .*", "failed"),
        (r"invalid nonce .* received - (?:length is not \d+|user attempted time travel)", "failed"),
        (r"realm mismatch - got `.*' but expected `.*'", "failed"),
        (r"unknown algorithm `.*' received: .*", "failed"),
        (r"client denied by server configuration: .*", "probe"),
        (r"(?:Hostname .* provided via SNI|No hostname was provided via SNI)\b.*", "probe"),
    )
)
_SENDMAIL = r"^(?:sendmail|sm-\w+)$"
_RELAY = r"(?:[^\[\]]* ?)?\[(?:IPv6:)?<ip>\](?: \(may be forged\))?"

TEXTS: tuple[DaemonText, ...] = (
    *(DaemonText(_SSHD, _SSH + pattern, sign, *more) for pattern, sign, *more in _SSH_TEXTS),  # type: ignore[arg-type]
    # sshd itself repeats PAM's message.
    DaemonText(
        _SSHD, rf"^pam_\w+\(sshd:auth\): +authentication failure; {_RHOST}", "context", "", _TWO_HOSTS
    ),
    DaemonText(_SSHD, rf"^PAM \d+ more authentication failures?; {_RHOST}", "context", "", _TWO_HOSTS),
    DaemonText(r"\(pam_\w+\)$|^vsftpd", rf"^authentication failure; {_RHOST}", "failed", "", _TWO_HOSTS),
    # Without a remote user before it, the first host is PAM's own, whatever the following user name is.
    DaemonText(_ALL, rf"^{_PAM}{_FIRST_HOST}", "failed", "", r"(?:logname|tty)=\S* .*\brhost=.*\bruser="),
    DaemonText(_ALL, rf"^{_PAM}{_RHOST}", "failed", "", _TWO_HOSTS),
    DaemonText(
        r"^vsftpd$|^$",
        r'^(?:\[pid \d+\] )?\[<user>\] FAIL LOGIN: Client "<ip>"(?:, ".*")?$',
        "failed",
        'Client "',
    ),
    DaemonText(
        r"^vsftpd$|^$",
        r'^(?:\[pid \d+\] )?\[<user>\] FTP response: Client "<ip>", '
        r'"530 (?:Permission denied|Login incorrect)\."$',
        "failed",
        'Client "',
    ),
    DaemonText(
        _MAIL,
        r"^warning: [^\[\]]*\[<ip>\](?::\d+)?: SASL (?i:LOGIN|PLAIN|CRAM-MD5|DIGEST-MD5|NTLM) "
        r"authentication failed: Connection lost to authentication server.*$",
        "context",
    ),
    DaemonText(_MAIL, r"^warning: [^\[\]]*\[<ip>\](?::\d+)?: SASL \S+ authentication failed:.*$", "failed"),
    DaemonText(_MAIL, r"^disconnect from [^\[\]]*\[<ip>\](?: \w+=\S+)* auth=0/[1-9].*$", "ended"),
    DaemonText(
        _MAIL,
        r"^(?:\w+: )?(?:milter-)?reject: [A-Z]{4,} from [^\[\]]*\[<ip>\](?::\d+)?: [45]\d\d .*$",
        "probe",
    ),
    DaemonText(
        _MAIL,
        r"^(?:\w+: )?(?:improper command pipelining|too many errors) after \S+ from "
        r"[^\[\]]*\[<ip>\].*$",
        "probe",
    ),
    DaemonText(
        _MAIL,
        r"^(?:\w+: )?lost connection after (?:CONNECT|STARTTLS|HELO|EHLO|RSET|NOOP|RCPT|MAIL|UNKNOWN|VRFY"
        r"|QUIT) from [^\[\]]*\[<ip>\].*$",
        "probe",
    ),
    DaemonText(_MAIL, r"^(?:PREGREET \d+|HANGUP|COMMAND \w+ LIMIT)(?: after \S+)? from \[<ip>\].*$", "probe"),
    DaemonText(_MAIL, r"^warning: [\w ]+ rate limit exceeded: \d+ from [^\[\]]*\[<ip>\].*$", "probe"),
    DaemonText(_MAIL, r"^warning: hostname \S+ does not resolve to address <ip>(?::.*)?$", "probe"),
    DaemonText(
        _DOVECOT,
        _LOGIN + _REASONS + r"\b.* ?\((?:auth failed, \d+ attempts(?: in \d+ secs)?|tried to use "
        r"(?:disabled|disallowed) \S+ auth|proxy dest auth failed)\)[^:]*:(?: user=<(?P<user>[^>]*)>,)?"
        r"(?: method=\S+,)? rip=<ip>(?:,.*)?\s*$",
        "failed",
        r"\brip=",
    ),
    DaemonText(
        _DOVECOT,
        _LOGIN + _REASONS + r"\b.* ?\((?:no auth attempts|disconnected before auth was ready,"
        r"|client didn't finish \S+ auth,|disconnected during TLS handshake)[^)]*\)[^:]*:"
        r"(?: user=<(?P<user>[^>]*)>,)?(?: method=\S+,)? rip=<ip>(?:,.*)?\s*$",
        "probe",
        r"\brip=",
    ),
    DaemonText(
        _DOVECOT,
        _AUTH + r"\w[\w-]*\((?P<user>.*),<ip>(?:,[^,()]*)?\): (?:pam_authenticate\(\) failed: "
        r"(?:User not known|Authentication failure|Permission denied).*|[Uu]nknown user.*"
        r"|[Ii]nvalid credentials.*|[Pp]assword mismatch.*)$",
        "announced",
        r",(?:\d{1,3}\.){3}\d{1,3}[,)]",
    ),
    DaemonText(
        _DOVECOT,
        r"^(?:dovecot: )?auth\((?P<user>.*),<ip>(?:,[^,()]*)?\)(?:<[^>]+>)?: (?:Info: )?\w+: "
        r"(?:[Uu]nknown user|[Ii]nvalid credentials|[Pp]assword mismatch).*$",
        "announced",
        r"\)(?:<[^>]+>)?: ",
    ),
    DaemonText(
        r"^(?:imapd|pop3d)(?:-ssl)?$|^courier\w+$",
        r"^LOGIN FAILED, (?:user|method)=<user>, ip=\[<ip>\]"
        r"(?:, port=\[\d+\])?$",
        "failed",
    ),
    DaemonText(
        r"^courieresmtpd$",
        r'^error,relay=<ip>(?:,port=\d+)?,msg="535 Authentication failed\.",cmd:.*$',
        "failed",
    ),
    DaemonText(r"^courieresmtpd$", r"^error,relay=<ip>,.*: 550 User .*$", "probe"),
    DaemonText(
        _EXIM,
        _EXIM_PID + r"\w+ authenticator failed for<exim>: 535 Incorrect authentication data"
        r"(?: \(set_id=.*\)|: \d+ Time\(s\))?\s*$",
        "failed",
        r" authenticator failed for",
    ),
    DaemonText(
        _EXIM,
        _EXIM_PID + r"(?:SMTP call from|no MAIL in SMTP connection from|SMTP connection from)<exim>"
        r"(?: dropped: too many .*| closed by DROP in ACL| C=\S+)*\s*$",
        "probe",
    ),
    DaemonText(
        _EXIM,
        _EXIM_PID + r"H=(?:\S+ )?(?:\(\S*\) )?\[<ip>\](?::\d+)? (?:\w+=\S+ )*(?:sender verify fail for "
        r"|rejected RCPT |dropped by '[^']+' ACL: ).*$",
        "probe",
    ),
    DaemonText(
        _EXIM,
        _EXIM_PID + r'SMTP protocol error in ".*" H=(?:\S+ )?(?:\(\S*\) )?\[<ip>\](?::\d+)?(?: \w+=\S+)* '
        r"[A-Z]+ (?:command used when not advertised|authentication mechanism not supported)\s*$",
        "probe",
    ),
    DaemonText(
        _EXIM,
        _EXIM_PID + r"SMTP protocol synchronization error \([^)]*\): rejected "
        r'(?:connection from|"[^"]*")(?: H=(?:\S+)?)?(?: \(\S*\))? ?\[<ip>\](?::\d+)?(?: \w+=\S+)* .*$',
        "probe",
    ),
    DaemonText(_EXIM, _EXIM_PID + r"no host name found for IP address <ip>\s*$", "probe"),
    DaemonText(
        _EXIM,
        _EXIM_PID + r"no IP address found for host \S+ \(during SMTP connection from \[<ip>\][^\[\]()]*"
        r"(?:\[[^\[\]()]*\](?::\d+)?)?\)\s*$",
        "probe",
    ),
    # The sender's name comes before or after the host; if it looks like a host, there are two.
    DaemonText(
        _EXIM,
        _EXIM_PID + r"(?:F=\S* )?H=(?:\S+ )?(?:\(\S*\) )?\[<ip>\](?::\d+)? (?:\w+=\S+ )*"
        r"rejected (?:by local_scan\(\)|after DATA): .*$",
        "probe",
        r"\bH=",
    ),
    DaemonText(
        _EXIM,
        _EXIM_PID + r"SA: Action: (?:flagged as Spam but accepted|silently tossed message"
        r"|(?:permanently|temporarily) rejected message): score=.*\. From <[^<>]*> "
        r"\(host=\S* ?\[<ip>\]\) for .*$",
        "probe",
        r"\(host=",
    ),
    DaemonText(
        _FTP,
        _FTP_CLIENT + r"(?:USER <user>(?: \(Login failed\)|: no such user)|SECURITY VIOLATION:|Maximum "
        r"login attempts).*$",
        "failed",
    ),
    DaemonText(
        r"^pure-ftpd$", r"^\(\S*@<address>\) \[WARNING\] Authentication failed for user \[<user>\]$", "failed"
    ),
    DaemonText(
        r"^(?:sendmail|sm-\w+)$",
        r"^\w+: (?:[^\[\]]* )?\[<ip>\](?: \(may be forged\))?: possible SMTP attack: "
        r"command=AUTH, count=\d+$",
        "failed",
    ),
    DaemonText(
        r"^(?:sendmail|sm-\w+)$",
        r"^\w+: AUTH failure \(\S+\): .* relay=(?:[^\[\]]* )?\[<ip>\]"
        r"(?: \(may be forged\))?$",
        "failed",
    ),
    DaemonText(
        _SENDMAIL,
        rf"^(?:\w+: )?ruleset=check_\w+, arg1=.*, relay={_RELAY}, reject=[45]\d\d .*$",
        "probe",
        ", relay=",
    ),
    DaemonText(
        _SENDMAIL,
        r"^\w+: from=.*, size=\d+, class=-?\d+, nrcpts=0, (?:bodytype=\w+, )?proto=\w+, daemon=\S+, "
        rf"relay={_RELAY}$",
        "probe",
        ", relay=",
    ),
    *(
        DaemonText(_SENDMAIL, rf"^(?:\w+: )?{pattern}$", "probe")
        for pattern in (
            rf"rejecting commands from {_RELAY} due to pre-greeting traffic after \d+ seconds",
            rf"{_RELAY}: (?i:expn|vrfy) .* \[rejected\]",
            rf"{_RELAY} did not issue MAIL/EXPN/VRFY/ETRN during connection to \S+",
            rf"lost input channel from {_RELAY} to \S+ after \w+",
        )
    ),
    DaemonText(
        r"^(?:cyrus/)?(?:imap|pop3|imaps|pop3s|imapd|lmtp|sieve)$",
        r"^badlogin: [^\[\]]*\[<ip>\] .*SASL\(-13\).*$",
        "failed",
    ),
    DaemonText(
        r"^dropbear$",
        r"^(?:\[\d+\] \w+ +\d+ [\d:]+ )?(?:[Bb]ad (?:PAM )?password attempt for '.*'"
        r"|[Ll]ogin attempt for nonexistent user(?: '.*')?) from <ip>:\d+$",
        "failed",
    ),
    DaemonText(
        r"^dropbear$", r"^(?:\[\d+\] \w+ +\d+ [\d:]+ )?Exit before auth from <<ip>:\d+>: .*$", "ended"
    ),
    DaemonText(
        r"^dropbear$",
        r"^(?:\[\d+\] \w+ +\d+ [\d:]+ )?Exit before auth \(user '.*', \d+ fails\): Max auth tries "
        r"reached - user '.*' from <ip>:\d+$",
        "ended",
    ),
    DaemonText(
        r"^(?:mysqld?|mariadbd?)?$",
        rf"^{_STAMP}(?:\[(?:Note|Warning)\] (?:\[[\w-]+\] )*)?Access denied for user '<user>'@'<address>'"
        r"(?: to database '.*')? ?(?:\(using password: (?:YES|NO)\))?$",
        "failed",
        "'@'",
    ),
    *(
        DaemonText(r"^postgres(?:ql)?$", rf"^{pattern}$", sign)  # type: ignore[arg-type]
        for pattern, sign in (
            (r'(?:FATAL: +)?\w+(?: \w+)? authentication failed for user "<user>"', "failed"),
            (r'(?:FATAL: +)?no pg_hba\.conf entry for host "<ip>", user ".*', "probe"),
            (r"(?:LOG: +)?connection received: host=<ip> port=\d+", "context"),
        )
    ),
    # A user name may contain ", client: ", so the last one counts, which the server wrote. A referrer is
    # client-chosen as well, so in lines with a referrer the first one counts, if the name has no colon:
    # ngx_http_auth_basic_module cuts names there.
    *(
        DaemonText(r"^nginx$", rf"^{_NGINX}{pattern}, client: <ip>, server: .*$", "failed", "", unlike)
        for user, unlike in (("<user>", _REFERRED), ("(?P<user>[^:]*)", ""))
        for pattern in (
            rf'user "{user}"(?:: password mismatch|:? was not found in "[^"]*")',
            rf"PAM: user '{user}' - not authenticated: [^,]*",
        )
    ),
    DaemonText(
        r"^nginx$",
        rf'^{_NGINX}(?:PAM: )?user ["\'].*, client: .*(?:password mismatch|was not found in|not auth)',
        "failed",
    ),
    DaemonText(
        r"^nginx$",
        rf"^{_NGINX}SSL_(?:do_handshake|read)\(\) failed \(SSL: [^,]*\) while "
        r"(?:SSL handshaking|waiting for request), client: <ip>(?:, server: [^,]*)?\s*$",
        "probe",
    ),
    # The client is named before the message by the server (`layouts`) or in the syslog line.
    *(DaemonText(r"^apache$", rf"^{pattern}$", sign) for pattern, sign in _APACHE_TEXTS),
    *(
        DaemonText(r"^(?:apache2?|httpd)(?:/\S*)?$", rf"^{_APACHE_CLIENT}{pattern}$", sign)
        for pattern, sign in _APACHE_TEXTS
    ),
)
