"""Refused logins in what programs wrote: who came, as whom, and what a line is a sign of."""

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
"""What programs write whose texts aren't known: it counts, but nobody is blamed for it."""
_CUT = r"^auth(?:-worker)?\([^)]*$"
_A_PROCESS_EACH = r"^(?:sshd(?:-session|-auth)?|postgres(?:ql)?)$"
_SAID_AGAIN = r"^pam_\w+\(sshd:|^PAM \d+ more "

LOGIN_COLUMNS = {
    "login_address": pl.String(),
    "login_user": pl.String(),
    "login_sign": pl.String(),
    "login_times": pl.Int64(),
}
"""Who came, as whom, what the line is a sign of, and how often it says so."""


def find_logins(program: pl.Series, message: pl.Series) -> pl.DataFrame:
    """The columns `LOGIN_COLUMNS` of lines that programs wrote; null in those that are about no login.

    >>> line = "Failed password for invalid user x from 192.0.2.66 from 198.51.100.7 port 22 ssh2"
    >>> find_logins(pl.Series(["sshd", "app"]), pl.Series([line, line])).rows()
    [('198.51.100.7', 'x from 192.0.2.66', 'failed', 1), (None, None, 'failed', 1)]
    """
    repeated = message.str.extract_groups(_REPEATED).struct
    times = repeated.field("1").cast(pl.Int64)
    texts = repeated.field("2").zip_with(times.is_not_null(), message)
    program = program.fill_null("")
    # Dovecot's own lines have colons between the brackets behind the program's name.
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
    """The columns of lines that are of a text."""
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
    """Texts by the programs that write them, in their order."""
    groups: dict[str, list[DaemonText]] = {}
    for text in texts:
        groups.setdefault(text.programs, []).append(text)
    return list(groups.items())


_BY_PROGRAM = _grouped(TEXTS)


@dataclass(frozen=True)
class WithLogins:
    """A `Decoder` that adds `LOGIN_COLUMNS` to the columns of another, from what its rows say.

    The expressions give the program, its process, its host and the message of a row. `connection` names the
    process of a daemon that has one for each connection: of such a connection one line may name the address.
    """

    inner: Decoder
    program: pl.Expr = field(default_factory=lambda: pl.col("program"))
    process: pl.Expr = field(default_factory=lambda: pl.col("process"))
    host: pl.Expr = field(default_factory=lambda: pl.col("host"))
    message: pl.Expr = field(default_factory=lambda: pl.col("message"))
    version: ClassVar[int] = 1
    """Counts up with the texts that are known."""

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return {**self.inner.schema, **LOGIN_COLUMNS, "connection": pl.String()}

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        decoded = self.inner.decode(messages)
        each = pl.when(self.program.str.contains(_A_PROCESS_EACH)).then(self.process)
        said = decoded.frame.select(
            program=self.program,
            message=self.message,
            connection=pl.concat_str(self.host.fill_null(""), each, separator=" "),
        )
        logins = find_logins(said["program"], said["message"])
        return replace(decoded, frame=decoded.frame.hstack(logins).hstack([said["connection"]]))
