"""A test of an outlet."""

from __future__ import annotations

from ...operators.rules.outlets.errors import OutletError
from ...operators.rules.outlets.outlet import NotifyingOutlet, trial_notification
from ...sketches.core.errors import StreamgaugeError


class OutletsFailed(StreamgaugeError, RuntimeError):
    """Some outlets did not take a test; the message names them."""


def try_outlet(outlet: NotifyingOutlet) -> str | None:
    """Send a test once, and give why it wasn't accepted; None if it was."""
    try:
        outlet.send(trial_notification())
    except OutletError as error:
        return str(error)
    finally:
        outlet.disconnect()
    return None
