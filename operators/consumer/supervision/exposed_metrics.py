"""A run's metrics in a registry, and on a port together with its health."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, ProcessCollector

from ...watching.figures import Figures
from ...watching.health import Health
from ...watching.metrics import watch
from ...watching.server import MetricsServer
from ..options import RunOptions


class ExposedMetrics:
    """Holds the port from the beginning, and exposes a run from `begin` to `end`.

    Raises `OSError` if the port is not available.
    """

    def __init__(self, options: RunOptions) -> None:
        self._registry = options.registry
        self._forget: list[Callable[[], None]] = []
        self._server = None if options.metrics is None else MetricsServer(options.metrics)

    @property
    def address(self) -> str | None:
        """The address at which metrics are served, or None."""
        return None if self._server is None else self._server.address

    def begin(
        self,
        watched: Sequence[tuple[Callable[[], Figures], Callable[[], Health]]],
        health: Callable[[], Health],
    ) -> None:
        """Expose the figures and the health of a run's streams, and the health of all together."""
        registry = self._registry
        if registry is None and self._server is not None:
            registry = CollectorRegistry()
            ProcessCollector(registry=registry)
        if registry is not None:
            self._forget = [watch(registry, partial(_now, *own)) for own in watched]
            if self._server is not None:
                self._server.start(registry, health)

    def end(self) -> None:
        """Stop exposing the run; may be called again."""
        for forget in self._forget:
            forget()
        if self._server is not None:
            self._server.close()
        self._forget, self._server = [], None


@contextmanager
def metrics_of(options: RunOptions) -> Iterator[ExposedMetrics]:
    """Yield the metrics of a run that starts in the block; its port is free again if the start fails."""
    exposed = ExposedMetrics(options)
    try:
        yield exposed
    except BaseException:
        exposed.end()
        raise


def _now(figures: Callable[[], Figures], health: Callable[[], Health]) -> tuple[Figures, Health]:
    return figures(), health()
