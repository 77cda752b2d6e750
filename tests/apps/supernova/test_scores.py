"""Classifiers' scores: columns of the answers, details of alerts, and cuts with their place in the funnel."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streamgauge.apps.app import Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of

from .made import JD, as_json, passing
from .test_app import fates, run

SCORES = {"ZTF26good": 0.9, "ZTF26bad": 0.1, "ZTF26none": None}


def message(name: str, score: Any) -> Message:
    packet = {**passing(name, JD, 18.0), "rf_snia_vs_nonia": score, "clf": {"SN": 0.75}}
    return Message(as_json(packet), b"k", int((JD - 2_440_587.5) * 86_400_000))


def test_scores_are_columns_details_and_cuts() -> None:
    job = Job.of(app_of("supernova"), "fink", {"scores": "rf_snia_vs_nonia>0.5,clf.SN"})
    testers, alerts = run(job, [message(*one) for one in SCORES.items()])
    of_set = Counter({cut: n for (name, cut), n in fates(testers["funnel"]).items() if name == "bts"})
    assert of_set == {"passed": 1, "rf_snia_vs_nonia > 0.5": 2}
    (alert,) = [one for one in alerts if one["rule"] == "candidate"]
    assert alert["key"] == "ZTF26good"
    assert (alert["details"]["score_rf_snia_vs_nonia"], alert["details"]["score_clf_SN"]) == (0.9, 0.75)
    objects = testers["objects"].windows().sort("object")
    assert objects["score_rf_snia_vs_nonia"].to_list() == [0.1, 0.9, None]
    assert objects["score_clf_SN"].to_list() == [0.75] * 3


def test_without_the_setting_nothing_is_added() -> None:
    testers, alerts = run(Job.of(app_of("supernova"), "fink"), [message(*one) for one in SCORES.items()])
    assert len({one["key"] for one in alerts if one["rule"] == "candidate"}) == 3
    assert not [name for name in testers["objects"].windows().columns if name.startswith("score")]


@pytest.mark.parametrize("scores", ["rf>", "0.5<rf", "rf=1", "rf>1,rf<2"])
def test_what_is_no_score_is_refused(scores: str) -> None:
    with pytest.raises(ValueError, match="--set scores"):
        Job.of(app_of("supernova"), "fink", {"scores": scores})
