"""A rule of Spark's is left out once, beside those that a session leaves out itself."""

from __future__ import annotations

import pytest

from streamgauge.spark_udafs.functions.plan_merging import leave_apart

EXCLUDED = "spark.sql.optimizer.excludedRules"
OURS = "org.apache.spark.sql.execution.planmerging.MergeSubplans"


class Session:
    """One that keeps its settings, and counts how often they are changed."""

    def __init__(self, excluded: str | None) -> None:
        self.conf = self
        self.excluded, self.changes = excluded, 0

    def get(self, name: str, default: str | None) -> str | None:
        assert name == EXCLUDED
        return default if self.excluded is None else self.excluded

    def set(self, name: str, value: str) -> None:
        assert name == EXCLUDED
        self.excluded, self.changes = value, self.changes + 1


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [(None, OURS, 1), ("", OURS, 1), ("a.B", f"a.B,{OURS}", 1), (f"{OURS},a.B", f"{OURS},a.B", 0)],
)
def test_a_rule_is_left_out_once(before: str | None, after: str, changes: int) -> None:
    session = Session(before)
    leave_apart(session)
    leave_apart(session)
    assert (session.excluded, session.changes) == (after, changes)


def test_without_a_session_there_is_nothing_to_do() -> None:
    leave_apart(None)
