"""A fictional evening on Bluesky, and posts at any rate, for demos."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from ..app import Example, Message
from ..dev.replay.generated import Generated
from ..dev.replay.load import Load

_HOURS = 3
_MINUTE_MS = 60_000
_TAGS = (
    *("breaking", "news", "music", "football", "art", "photography", "travel", "nature", "space", "cats"),
    *("dogs", "books", "cooking", "coffee", "movies", "gaming", "science", "python", "opensource", "health"),
)
_SAID = (
    "what a day this has been",
    "reading about this all evening",
    "did anyone else see that?",
    "two photos from this morning 📷",
    "who would have thought",
)
_LINKED = ("news", "music", "science", "opensource")
"""Tags of posts that also have a link."""
_BURST, _FLOOD, _TURNED = "aurora", "giveaway", "trains"


def messages(seed: int, now_ms: int) -> Iterator[Message]:
    """Generate posts and likes, two per second, starting three hours ago.

    Half an hour ago, everybody begins to write about an aurora, and posts about trains turn angry; five
    accounts push a giveaway all the time. In five seconds, the ground shakes.
    """
    dice = random.Random(seed)
    begin = now_ms - _HOURS * 60 * _MINUTE_MS
    begin -= begin % 500
    for number, at in enumerate(range(begin, begin + (1 << 50), 500)):
        since = at - now_ms
        text, tag = dice.choice(_SAID), _TAGS[min(int(dice.paretovariate(0.9)) - 1, len(_TAGS) - 1)]
        author = f"a{int(dice.paretovariate(0.4)) % 4_000}"
        turn = number % 12
        if 5_000 <= since < 25_000 and number % 2:
            author, text, tag = f"q{number}", "earthquake!!", ""
        elif turn == 3:
            author, text, tag = f"f{dice.randrange(5)}", "win a phone, follow me", _FLOOD
        elif turn == 5:
            angry = since > -30 * _MINUTE_MS
            text, tag = ("horrible, I hate this" if angry else "great ride, I love it"), _TURNED
        elif turn in (7, 11) and since > -30 * _MINUTE_MS:
            author, text, tag = f"a{dice.randrange(4_000)}", "look at that sky!", _BURST
        elif turn == 1 and number < 12:
            text = "was that an earthquake?"
        yield _event(number, at, author, text, tag, like=turn == 9)


def _event(number: int, at_ms: int, author: str, text: str, tag: str, like: bool) -> Message:
    posted = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    record: dict[str, object] = {"createdAt": posted.replace("+00:00", "Z")}
    if not like:
        record |= {"text": f"{text} #{tag}" if tag else text, "langs": ["en"]}
        features = [{"$type": "app.bsky.richtext.facet#tag", "tag": tag}] if tag else []
        if tag in _LINKED:
            uri = f"https://example.org/{tag}"
            features.append({"$type": "app.bsky.richtext.facet#link", "uri": uri})
        if features:
            record["facets"] = [{"features": [feature]} for feature in features]
    did = f"did:plc:{author}"
    kind = "app.bsky.feed.like" if like else "app.bsky.feed.post"
    commit = {"operation": "create", "collection": kind, "rkey": f"3m{number:07}", "record": record}
    event = {"did": did, "time_us": at_ms * 1_000, "kind": "commit", "commit": commit}
    return Message(json.dumps(event, separators=(",", ":")).encode(), did.encode(), at_ms)


EXAMPLE = Example("jetstream", messages, {"words": "1"}, (("earthquake", None), ("trend", ["tag", _BURST])))


def under_load(rate: float, seconds: float) -> Example:
    """Generate posts at a rate, with a day's rhythm in a number of seconds (at least half a minute)."""
    return Example("posts", partial(_generated, rate, max(seconds, 30.0)))


def _generated(rate: float, day: float, seed: int, now_ms: int) -> Iterator[Message]:
    load = Load(rate, seed, start=datetime.fromtimestamp(now_ms / 1000, UTC), day=day)
    for batch in Generated(load).batches():
        for value, author, sent in zip(batch.values.to_pylist(), batch.keys.tolist(), batch.sent.tolist()):
            yield Message(value, str(author).encode(), sent)
