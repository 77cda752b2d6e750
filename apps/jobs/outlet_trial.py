"""A test of an outlet."""

from __future__ import annotations

from ...operators.rules.outlets.errors import OutletError
from ...operators.rules.outlets.outlet import NotifyingOutlet, trial_notification
from ...sketches.core.errors import StreamgaugeError


class OutletsFailed(StreamgaugeError, RuntimeError):
    """Some outlets did not accept a test message; the error names them."""


def try_outlet(outlet: NotifyingOutlet) -> str | None:
    """Send a test message once; return why it wasn't accepted, or None if it was."""
    try:
        outlet.send(trial_notification())
    except OutletError as error:
        return str(error)
    finally:
        outlet.disconnect()
    return None
