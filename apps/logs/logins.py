"""Find refused logins in programs' lines: the address, the user, and the meaning of a line."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import polars as pl

from ...operators.formats.decode import Decoded, Decoder
from ...operators.formats.messages import Messages
from .daemon_texts import TEXTS, DaemonText

_REPEATED = r"^message repeated (\d{1,6}) times: \[ ?(.*?)\]?$"
_ANY_REFUSAL = (
    r"(?i)failed (?:password|login|logon|keyboard-interactive)|login (?:failed|incorrect)"
    r"|invalid (?:password|credentials)|(?:incorrect|bad|wrong) password|authentication failed"
    r"|authentication failure;"
)
"""Texts of unknown programs: they count, but without an address."""
_CUT = r"^auth(?:-worker)?\([^)]*$"
_A_PROCESS_EACH = r"^(?:sshd(?:-session|-auth)?|postgres(?:ql)?)$"
_SAID_AGAIN = r"^pam_\w+\(sshd:|^PAM \d+ more "

LOGIN_COLUMNS = {
    "login_address": pl.String(),
    "login_user": pl.String(),
    "login_sign": pl.String(),
    "login_times": pl.Int64(),
}
"""The address, the user, the kind of attempt, and how often the line reports it."""


def find_logins(program: pl.Series, message: pl.Series) -> pl.DataFrame:
    """Return the columns `LOGIN_COLUMNS` for programs' lines; null in lines that aren't about a login.

    >>> line = "Failed password for invalid user x from 192.0.2.66 from 198.51.100.7 port 22 ssh2"
    >>> find_logins(pl.Series(["sshd", "app"]), pl.Series([line, line])).rows()
    [('198.51.100.7', 'x from 192.0.2.66', 'failed', 1), (None, None, 'failed', 1)]
    """
    repeated = message.str.extract_groups(_REPEATED).struct
    times = repeated.field("1").cast(pl.Int64)
    texts = repeated.field("2").zip_with(times.is_not_null(), message)
    program = program.fill_null("")
    # Dovecot's own lines have colons between the brackets after the program's name.
    cut = program.str.contains(_CUT)
    if cut.any():
        texts = (program + ":" + texts).zip_with(cut, texts)
        program = program.set(cut, "auth")
    numbers = pl.int_range(len(message), dtype=pl.UInt32, eager=True)
    frame = pl.DataFrame({"row": numbers, "program": program, "text": texts, "times": times.fill_null(1)})
    left, parts = frame.filter(pl.col("text").is_not_null()), []
    for programs, some in _BY_PROGRAM:
        names = left["program"].unique()
        names = names.filter(names.str.contains(programs))
        if not len(names):
            continue
        of_program = pl.col("program").is_in(names.implode())
        mine, left = left.filter(of_program), left.filter(~of_program)
        for text in some:
            if not mine.height:
                break
            is_one = mine.select(text.matches(pl.col("text"))).to_series()
            if is_one.any():
                parts.append(_read(text, mine.filter(is_one)))
                mine = mine.filter(~is_one)
        left = pl.concat([left, mine])
    others = left.filter(
        pl.col("text").str.contains(_ANY_REFUSAL) & ~pl.col("text").str.contains(_SAID_AGAIN)
    )
    parts.append(_columns(others, pl.lit(None), pl.lit(None), "failed"))
    return frame.select("row").join(pl.concat(parts), on="row", how="left", maintain_order="left").drop("row")


def _read(text: DaemonText, lines: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of lines that match a text."""
    groups = pl.col("text").str.extract_groups(text.expression).struct
    address = groups.field("address") if "(?P<address>" in text.expression else pl.lit(None)
    user = groups.field("user") if "(?P<user>" in text.expression else pl.lit(None)
    if text.single:
        address = pl.when(pl.col("text").str.count_matches(text.single) == 1).then(address)
    return _columns(lines, address, user, text.sign)


def _columns(lines: pl.DataFrame, address: pl.Expr, user: pl.Expr, sign: str) -> pl.DataFrame:
    return lines.select(
        "row",
        login_address=address.cast(pl.String),
        login_user=user.cast(pl.String),
        login_sign=pl.lit(sign, pl.String),
        login_times=pl.col("times"),
    )


def _grouped(texts: tuple[DaemonText, ...]) -> list[tuple[str, list[DaemonText]]]:
    """Group texts by the programs that write them, in order."""
    groups: dict[str, list[DaemonText]] = {}
    for text in texts:
        groups.setdefault(text.programs, []).append(text)
    return list(groups.items())


_BY_PROGRAM = _grouped(TEXTS)


@dataclass(frozen=True)
class WithLogins:
    """A `Decoder` that adds `LOGIN_COLUMNS` to the columns of another decoder.

    The expressions return the program, its process, its host and the message of a row. `connection` names the
    process of a daemon that has one per connection: only one line of such a connection may contain the
    address.
    """

    inner: Decoder
    program: pl.Expr = field(default_factory=lambda: pl.col("program"))
    process: pl.Expr = field(default_factory=lambda: pl.col("process"))
    host: pl.Expr = field(default_factory=lambda: pl.col("host"))
    message: pl.Expr = field(default_factory=lambda: pl.col("message"))
    version: ClassVar[int] = 1
    """Increased whenever the known texts change."""

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return {**self.inner.schema, **LOGIN_COLUMNS, "connection": pl.String()}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        decoded = self.inner.decode(messages)
        each = pl.when(self.program.str.contains(_A_PROCESS_EACH)).then(self.process)
        said = decoded.frame.select(
            program=self.program,
            message=self.message,
            connection=pl.concat_str(self.host.fill_null(""), each, separator=" "),
        )
        logins = find_logins(said["program"], said["message"])
        return replace(decoded, frame=decoded.frame.hstack(logins).hstack([said["connection"]]))
