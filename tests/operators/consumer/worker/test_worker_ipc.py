"""What a worker process reports to its run, however it ends."""

from __future__ import annotations

import io
import logging

import pytest

from streamgauge.operators.consumer.worker.worker_ipc import (
    ReportingHandler,
    WorkerListener,
    WorkerReporter,
)
from streamgauge.operators.watching.figures import WorkFigures


def heard(said: bytes) -> WorkerListener:
    hearing = WorkerListener(io.BytesIO(said))
    hearing.run()
    return hearing


def test_logs_figures_and_the_error_arrive(caplog: pytest.LogCaptureFixture) -> None:
    pipe, log = io.BytesIO(), logging.Logger("streamgauge.kafka")
    reporter = WorkerReporter(pipe)
    log.addHandler(ReportingHandler(reporter))
    try:
        raise OSError("no brook")
    except OSError:
        log.exception("at %s", "the river", extra={"partition": 3, "offset": 17})
    log.info("not requested")
    for rebalances in (1, 2):
        reporter.figures(WorkFigures(rebalances=rebalances))
    reporter.error(ValueError("done"))
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        hearing = heard(pipe.getvalue())
    [record] = caplog.records
    assert record.name == "streamgauge.kafka" and record.levelname == "ERROR"
    assert record.getMessage().startswith("at the river") and "OSError: no brook" in caplog.text
    assert (record.partition, record.offset) == (3, 17)
    assert hearing.figures.rebalances == 2
    assert isinstance(hearing.error(), ValueError) and str(hearing.error()) == "done"


def test_what_was_sent_before_a_kill_is_kept() -> None:
    pipe = io.BytesIO()
    reporter = WorkerReporter(pipe)
    reporter.figures(WorkFigures(rebalances=1))
    whole = len(pipe.getvalue())
    reporter.figures(WorkFigures(rebalances=2))
    for cut in (whole, whole + 1, whole + 20, len(pipe.getvalue()) - 1):
        assert heard(pipe.getvalue()[:cut]).figures.rebalances == 1
    assert heard(b"").figures == WorkFigures()
    assert "can't be read" in str(heard(b"").error())


def test_an_error_that_cannot_be_pickled_arrives_in_words() -> None:
    class Odd(Exception):
        """Of a function's inside, which no other process can import."""

    pipe = io.BytesIO()
    WorkerReporter(pipe).error(Odd("hm"))
    with pytest.raises(RuntimeError, match="Odd: hm"):
        raise heard(pipe.getvalue()).error()


def test_a_run_that_is_gone_stops_no_worker() -> None:
    class Gone(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, _: object) -> int:
            raise BrokenPipeError

    WorkerReporter(io.BufferedWriter(Gone())).figures(WorkFigures())
