"""The result of a run, or of a run so far."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ..sketching.account import Account
from ..table.sketch_table import SketchTable


@dataclass(frozen=True)
class Summary:
    """The result of a run, or of a run so far.

    `account` and `lag` cover the whole group, whichever process counted. `table` is the table of sketches of
    the windows that closed in this process. It covers this process's partitions of the table topic, so it is
    empty while another process has all of them. An unbounded run stores the latest `keep_windows`, and at
    most 1 GiB. `lag` is the number of messages in the topic that are not in a delta yet (None if no broker
    answered), `seconds` the time from the start to the last delta, `overlaps` the number of deltas that
    counted messages twice, which happens only with `delivery="at_least_once"`. `remarks` are warnings about
    the messages, for example that most can't be counted, and why; worker processes log theirs themselves.
    `example` is the reason why the first message that can't be counted was refused, if this process read it.
    """

    account: Account
    table: SketchTable
    seconds: float
    messages_per_second: float
    lag: int | None
    duplicates: int = 0
    overlaps: int = 0
    interrupted: bool = False
    remarks: tuple[str, ...] = ()
    example: str = ""

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{n:,} {name.replace('_', '-')}" for name, n in self.account.to_dict().items() if name != "read"
        )
        waiting = "unknown" if self.lag is None else f"{self.lag:,}"
        ended = ", interrupted" if self.interrupted else ""
        said = "".join(f"\n  {remark}" for remark in self.remarks)
        return (
            f"Summary({self.account.read:,} messages read in {self.seconds:.1f} s{ended}: {counts}; "
            f"lag {waiting}; {self.table.num_rows:,} rows of closed windows){said}"
        )

    def windows(self) -> pl.DataFrame:
        """The answers of the closed windows."""
        return self.table.answers()
