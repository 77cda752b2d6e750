"""An alert as JSON, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamgauge.operators.rules.alert import Alert


@pytest.mark.parametrize("details", [{}, {"ra": 1.5, "band": "g", "host": None}])
def test_an_alert_comes_back_from_json_with_its_details(details: dict[str, Any]) -> None:
    alert = Alert("hot", "threshold", "fired", ("a",), 60, 0, 3.0, 3.0, 3.0, 2.0, "3 > 2", "iot", details)
    fields = json.loads(json.dumps(alert.to_dict()))
    assert Alert.from_dict(fields) == alert and ("details" in fields) == bool(details)
    # They are no part of what tells alerts apart.
    assert alert.id == Alert("hot", "threshold", "fired", ("a",), 60, 0, 1, 1, 1, 1, "", "iot").id
