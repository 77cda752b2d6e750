"""Between a source and a sink: when it commits, and what it says of it."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.agents.ingest import pump as pump_module
from streamgauge.agents.ingest.batch import Batch, DeadLine
from streamgauge.agents.ingest.interceptors.filter import Filter
from streamgauge.agents.ingest.pump import Pump

from .collected import Collected


class Given:
    """A source of these batches; None stands for a wait."""

    waited_for = finite = False

    def __init__(self, *batches: Batch | None) -> None:
        self.batches = list(batches)

    @property
    def ended(self) -> bool:
        return not self.batches

    def read(self, seconds: float) -> Batch | None:
        return self.batches.pop(0) if self.batches else None


def test_all_is_committed_and_accounted_for() -> None:
    acknowledged: list[int] = []
    batches = [
        Batch.of([b"a1", b"b1"], dead=[DeadLine("why", b"x")], acknowledged=lambda: acknowledged.append(1)),
        Batch.of([b"a2"], dropped={"source full": 2}, acknowledged=lambda: acknowledged.append(2)),
    ]
    sink = Collected()
    pump = Pump(Given(*batches), sink, [Filter(regex="^a")], once=True)
    pump.run()
    assert sink.commits == [[b"a1", b"a2"]] and acknowledged == [1, 2]
    account = pump.state.account
    assert (account.read, account.sent, account.dead_lettered) == (6, 2, 1)
    assert account.dropped == {"filter": 1, "source full": 2} and account.unaccounted == 0


def test_where_somebody_waits_a_pause_is_a_commit() -> None:
    source, sink = Given(Batch.of([b"1"]), Batch.of([b"2"]), None, Batch.of([b"3"])), Collected()
    source.waited_for = True
    Pump(source, sink, once=True).run()
    assert sink.commits == [[b"1", b"2"], [b"3"]]


@pytest.mark.parametrize(
    ("limit", "value"), [("COMMIT_BYTES", 4), ("COMMIT_MESSAGES", 2)], ids=["bytes", "messages"]
)
def test_a_commit_holds_only_so_much(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(pump_module, limit, value)
    sink = Collected()
    Pump(Given(*(Batch.of([b"%02d" % number]) for number in range(5))), sink, once=True).run()
    assert sink.commits == [[b"00", b"01"], [b"02", b"03"], [b"04"]]


def test_what_fails_is_refused_to_who_waits() -> None:
    reasons: list[str] = []
    sink: Any = Collected(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        Pump(Given(Batch.of([b"1"], refused=reasons.append)), sink, once=True).run()
    assert reasons == ["no"]


def test_a_stop_commits_what_was_read() -> None:
    source, sink = Given(*(Batch.of([b"%d" % number]) for number in range(5))), Collected()
    stops = iter([0, 0, 1])
    pump = Pump(source, sink, stopping=lambda: bool(next(stops)))
    pump.run()
    assert sink.commits == [[b"0", b"1"]] and pump.state.account.sent == 2


def test_a_finite_source_ends_it() -> None:
    source, sink = Given(Batch.of([b"1"])), Collected()
    source.finite = True
    Pump(source, sink).run()
    assert sink.commits == [[b"1"]]
