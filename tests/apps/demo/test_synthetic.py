"""Messages that examples make up: the same each time, in order, and due when the clock says so."""

from __future__ import annotations

import itertools

import pytest

from streamgauge.apps.app import Message
from streamgauge.apps.demo.synthetic import MadeUp
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_of

NOW = 1_790_000_000_000
EXAMPLES = [name for name in APPS if app_of(name).example is not None]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_the_same_each_time_and_in_order(name: str) -> None:
    example = app_of(name).example
    assert example is not None
    first, again, other = (list(itertools.islice(example.messages(seed, NOW), 3000)) for seed in (1, 1, 2))
    assert first == again != other
    times = [message.sent_ms for message in first]
    assert None not in times and times == sorted(times) and times[0] < NOW - 600_000


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_happens_in_an_example_is_of_rules_that_the_app_has(name: str) -> None:
    app = app_of(name)
    assert app.example is not None
    job = Job.of(app, app.example.format, app.example.settings)
    rules = {rule.name for part in job.rules.values() for rule in part}
    assert app.example.events and {rule for rule, _ in app.example.events} <= rules


def test_what_was_before_now_is_due_at_once_and_the_rest_in_time() -> None:
    from streamgauge.apps.app import Example

    def messages(seed: int, now_ms: int):
        for at in itertools.count(-90, 30):
            yield Message(b"%d" % at, b"k", now_ms + at)

    made = MadeUp(Example("json", messages), 0, NOW, 0.4)
    batches = list(made.batches())
    result = [(int(v.as_py()), due) for b in batches for v, due in zip(b.values, b.due.tolist())]
    assert [at for at, _ in result] == list(range(-90, 400, 30))
    assert [due for _, due in result] == [max(at, 0) / 1000 for at, _ in result]
    assert all(b.due[-1] - b.due[0] <= 0.1 and b.named == [b"k"] * len(b) for b in batches)
    assert [message.value for message in made.messages()] == [b"%d" % at for at, _ in result]
