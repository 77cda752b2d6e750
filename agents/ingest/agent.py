"""A running agent: a thread for each source, and one for each channel from which a sink reads."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from ...operators.kafka.retry import Stopped
from ...operators.watching.health import STALLED_SECONDS, Health
from .account import IngestAccount
from .agent_plan import AgentPlan, Route
from .component import Channel, Place, Sink, Source
from .pump import COMMIT_SECONDS, Pump, PumpState

log = logging.getLogger("streamgauge.ingest")

_WAIT_SECONDS = 0.1


@dataclass(slots=True)
class _Work:
    """A pump and its context, in its own thread."""

    name: str
    pump: Pump | None = None
    source: Source | None = None
    channel: str | None = None
    state: PumpState = field(default_factory=PumpState)
    done: bool = False


class Agent:
    """Runs a plan: `run` returns when it is stopped, or with `once` after the existing data.

    The first error of a part ends the agent, and is raised.
    """

    def __init__(self, plan: AgentPlan, once: bool = False) -> None:
        self.plan, self._once = plan, once
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._channels: dict[str, Channel] = {}
        self._feeds = {name: _Work(name, channel=route.channel) for name, route in plan.routes.items()}
        self._drains = {name: _Work(name) for name in plan.channels}
        self._open = 0

    @property
    def account(self) -> IngestAccount:
        """The outcome of all messages read so far, without messages still in a channel."""
        total = IngestAccount()
        for account in self.accounts().values():
            total += account
        return total

    def accounts(self) -> dict[str, IngestAccount]:
        """The account of each source; for sources that share a channel, the sink's results are the
        channel's."""
        accounts = {}
        for name, work in self._feeds.items():
            own = work.state.account
            if work.channel is not None:
                own = IngestAccount(own.read, dropped=own.dropped)
            accounts[name] = own
        for name, work in self._drains.items():
            own = work.state.account
            channel = self._channels.get(name)
            lost = channel.lost if channel is not None else {}
            accounts[name] = IngestAccount(0, own.sent, own.dead_lettered, {**own.dropped, **lost})
        return accounts

    @property
    def held(self) -> int:
        """The number of messages in channels."""
        return sum(channel.held for channel in self._channels.values())

    def lag_bytes(self) -> dict[str, int]:
        """How many bytes of its log a database retains, for each source that reads one."""
        lags = {name: getattr(work.source, "lag_bytes", None) for name, work in self._feeds.items()}
        return {name: lag for name, lag in lags.items() if lag is not None}

    def describe(self) -> dict[str, Any]:
        """Return the account and the remaining messages, for JSON."""
        unfinished: dict[str, int] = {}
        for work in self._feeds.values():
            unfinished.update(getattr(work.source, "unfinished", {}))
        return {
            "agent": self.plan.name,
            **self.account.as_dict(),
            "held": self.held,
            "held_before": sum(channel.held_before for channel in self._channels.values()),
            "unfinished_bytes": unfinished,
            "lag_bytes": self.lag_bytes(),
            "sources": {name: account.as_dict() for name, account in self.accounts().items()},
        }

    def health(self) -> Health:
        """Whether all parts are open, and none has been blocked for long with messages that it has read."""
        if self._error is not None:
            return Health(False, False, f"the agent failed: {self._error}")
        if self._stopping.is_set():
            return Health(True, False, "the agent is ending")
        works = [*self._feeds.values(), *self._drains.values()]
        now = time.monotonic()
        for work in works:
            if work.state.under_way and now - work.state.under_way_since > STALLED_SECONDS:
                seconds = now - work.state.under_way_since
                return Health(
                    False,
                    False,
                    f"{work.name}: {work.state.under_way:,} messages are waiting; none was delivered in the "
                    f"last {seconds:.0f} s",
                )
        if self._open < len(works):
            return Health(True, False, "some parts are not open yet")
        return Health(True, True)

    def states(self) -> Mapping[str, PumpState]:
        """Return what each thread is doing."""
        return {work.name: work.state for work in (*self._feeds.values(), *self._drains.values())}

    def stop(self) -> None:
        """Request the end; messages already read are still delivered, for some seconds."""
        self._stopping.set()

    def run(self) -> None:
        """Run the plan. Raises what its parts raise."""
        with ExitStack() as stack:
            for name, settings in self.plan.channels.items():
                channel = self._channels[name] = settings.open(name, self._place(name))
                stack.callback(channel.close)
            threads = [
                threading.Thread(
                    target=self._guard, args=(call, work), name=f"ingest {work.name}", daemon=True
                )
                for works, call in ((self._feeds, self._feed), (self._drains, self._drain))
                for work in works.values()
            ]
            for thread in threads:
                thread.start()
            try:
                # Instead of joining threads: an interrupted join() believes the thread has finished (3.11).
                while not self._ended.wait(_WAIT_SECONDS):
                    pass
            finally:
                self.stop()
                for thread in threads:
                    thread.join()
        if self._error is not None:
            raise self._error

    def _place(self, source: str) -> Place:
        return Place(self.plan.name, source, self.plan.folder, self._once, self._stopping.is_set)

    def _guard(self, call: Callable[[_Work], None], work: _Work) -> None:
        try:
            call(work)
        except BaseException as error:
            if isinstance(error, Stopped):
                log.warning("%s: %s", work.name, error)
            with self._lock:
                if self._error is None and not isinstance(error, Stopped):
                    self._error = error
            self.stop()
        finally:
            work.done = True
            if all(one.done for one in (*self._feeds.values(), *self._drains.values())):
                self._ended.set()

    def _feed(self, work: _Work) -> None:
        """Move messages from a source to its sink or channel."""
        route: Route = self.plan.routes[work.name]
        place = self._place(work.name)
        with ExitStack() as stack:
            if route.channel is not None:
                sink: Sink = self._channels[route.channel].sink(place)
            else:
                assert route.sink is not None
                sink = self.plan.sinks[route.sink].open(place)
            stack.callback(sink.close)
            source = route.source.open(place, sink.positions)
            stack.callback(source.close)
            interceptors = [settings.open(place) for settings in route.interceptors]
            # For its sources, messages in such a channel count as delivered.
            volatile = route.channel is not None and not self._channels[route.channel].durable
            pump = Pump(
                source,
                sink,
                interceptors,
                once=self._once,
                stopping=self._stopping.is_set,
                commit_seconds=0.0 if volatile else COMMIT_SECONDS,
            )
            self._run(work, pump)

    def _drain(self, work: _Work) -> None:
        """Move messages from a channel to its sink, until its sources have ended and it is empty."""
        place = self._place(work.name)
        channel = self._channels[work.name]
        feeds = [feed for feed in self._feeds.values() if feed.channel == work.name]

        def feeding() -> bool:
            return not all(feed.done for feed in feeds)

        def stopping() -> bool:
            # Messages that a channel would lose are passed to the sink before the end.
            return self._stopping.is_set() and not feeding() and (channel.durable or source.ended)

        with ExitStack() as stack:
            sink = self.plan.sinks[self.plan.channel_sinks[work.name]].open(place)
            stack.callback(sink.close)
            source = channel.source(place, sink.positions)
            stack.callback(source.close)
            self._run(work, Pump(source, sink, once=True, stopping=stopping, feeding=feeding))

    def _run(self, work: _Work, pump: Pump) -> None:
        work.pump, work.source, work.state = pump, pump.source, pump.state
        with self._lock:
            self._open += 1
        pump.run()
