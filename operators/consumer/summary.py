"""What came of a run, or of a run so far."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from ..sketching.accounting import Account
from ..table.query import query


@dataclass(frozen=True)
class Summary:
    """What came of a run, or of a run so far.

    `account` and `lag` are of all that share the group, whichever process counts. `table` is the table of
    sketches of the windows that closed in this process, which are those of its partitions of the table topic
    and none while another process has all of them; of an unbounded run the latest `keep_windows`, and no more
    than 1 GiB. `lag` is the messages that lie in the topic and are in no delta yet (None where no broker
    answered);
    `seconds` the time from the start to the last delta; `overlaps` the deltas that counted messages twice,
    which can only be other than 0 at least once. `remarks` are warnings about the messages, such as that most
    of them can't be counted and why; worker processes log
    theirs themselves.
    """

    account: Account
    table: pa.Table
    seconds: float
    messages_per_second: float
    lag: int | None
    duplicates: int = 0
    overlaps: int = 0
    interrupted: bool = False
    remarks: tuple[str, ...] = ()

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
        return query(self.table)
