"""Recorded streams: every format's events become posts, each once; other lines are passed on."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from streamgauge.apps.replay import jetstream, twitter_v1, twitter_v2
from streamgauge.apps.replay.opened import RecordingError
from streamgauge.apps.replay.post import Unrecognised
from streamgauge.apps.replay.recorded import Recording

STATUS = {
    "created_at": "Wed Oct 10 20:19:24 +0000 2018",
    "id": 1050118621198921728,
    "id_str": "1050118621198921728",
    "text": "To make room for more expression… #cut",
    "user": {"id": 6253282, "id_str": "6253282", "screen_name": "TwitterAPI"},
    "entities": {"hashtags": [{"text": "cut", "indices": [0, 4]}]},
    "extended_tweet": {
        "full_text": "To make room for more expression #One #two #One",
        "entities": {"hashtags": [{"text": "One"}, {"text": "two"}, {"text": "One"}]},
    },
    "lang": "en",
    "timestamp_ms": "1539202764123",
}
TWEET = {
    "id": "1212092628029698048",
    "text": "We believe the best future #Dev",
    "author_id": "2244994945",
    "created_at": "2019-12-31T19:26:16.000Z",
    "lang": "en",
    "entities": {"hashtags": [{"start": 27, "end": 31, "tag": "Dev"}]},
}


def posts(path: Path) -> list[dict]:
    return [json.loads(line) for batch in Recording.open(path).batches() for line in batch.values.to_pylist()]


def written(path: Path, *events: object) -> Path:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_every_jetstream_event_decodes(recordings: Path) -> None:
    path = recordings / "social" / "jetstream_expected_v1.jsonl"
    found = posts(path)
    kinds = Counter(post["kind"] for post in found)
    assert Recording.open(path).format is jetstream
    assert len(found) == 152
    assert kinds["post"] == 17 and kinds["delete"] == 4 and kinds["like"] == 105
    tags = [tag for post in found if post["kind"] == "post" for tag in post["tags"]]
    assert sorted(tags) == [
        "HowToTellAiToShutUp",
        "IndieRebellion",
        "balanwonderworldoc",
        "talesatwonderworld",
    ]
    early = next(post for post in found if post["id"].endswith("3mptbxs3hq22j"))
    assert early["created_at"] == "2026-07-04T14:37:36.557Z" and early["lang"] == "ru"


def test_the_same_event_twice_is_a_repeat(recordings: Path, tmp_path: Path) -> None:
    recorded = (recordings / "social" / "jetstream_expected_v1.jsonl").read_text("utf-8")
    doubled = tmp_path / "doubled.jsonl"
    doubled.write_text(recorded + recorded, "utf-8")
    kinds = Counter(post["kind"] for post in posts(doubled))
    assert kinds["post"] == 17 and kinds["repeat"] == 152


def test_the_recording_keeps_its_rhythm_or_is_sped_up(recordings: Path) -> None:
    path = recordings / "social" / "jetstream_expected_v1.jsonl"
    (own,) = Recording.open(path).batches()
    (fast,) = Recording.open(path, speed=2).batches()
    (at_once,) = Recording.open(path, speed=0).batches()
    assert own.due[0] == 0 and own.due[-1] == pytest.approx(0.318134)
    assert (np.diff(own.due) >= 0).all()
    assert fast.due == pytest.approx(own.due / 2)
    assert at_once.due.tolist() == [0.0] * 152
    (begun,) = Recording.open(path, seconds=0.1).batches()
    assert 0 < len(begun) < 152 and begun.due[-1] <= 0.1
    assert own.sent[0] == at_once.sent[0] == 1783175888085


def test_one_authors_messages_share_a_key(recordings: Path) -> None:
    (batch,) = Recording.open(recordings / "social" / "jetstream_expected_v1.jsonl").batches()
    keys: dict[str, set[int]] = {}
    for line, key in zip(batch.values.to_pylist(), batch.keys.tolist()):
        keys.setdefault(json.loads(line)["author"], set()).add(key)
    assert all(len(found) == 1 for found in keys.values())
    assert len(keys) < 152


def test_a_v1_status_uses_its_extended_text_and_its_milliseconds(tmp_path: Path) -> None:
    path = written(tmp_path / "v1.json", STATUS)
    assert Recording.open(path).format is twitter_v1
    assert posts(path) == [
        {
            "id": "1050118621198921728",
            "kind": "post",
            "author": "6253282",
            "created_at": "2018-10-10T20:19:24.123Z",
            "tags": ["One", "two"],
            "text": "To make room for more expression #One #two #One",
            "lang": "en",
        }
    ]


def test_a_v1_retweet_counts_for_its_own_author_with_the_originals_tags() -> None:
    retweet = {
        **STATUS,
        "id_str": "1050118621198921729",
        "user": {"id_str": "7"},
        "text": "RT @TwitterAPI: To make…",
        "entities": {"hashtags": []},
        "retweeted_status": STATUS,
    }
    del retweet["extended_tweet"]
    made, _ = twitter_v1.post(retweet)
    assert made["author"] == "7" and made["tags"] == ["One", "two"] and made["kind"] == "post"


def test_v1_notices_are_no_posts(tmp_path: Path) -> None:
    delete = {"delete": {"status": {"id_str": "1050118621198921728", "user_id_str": "6253282"}}}
    limit = {"limit": {"track": 5, "timestamp_ms": "1539202764123"}}
    found = posts(written(tmp_path / "v1.json", STATUS, delete, limit))
    assert [post["kind"] for post in found] == ["post", "delete", "limit"]
    assert found[1]["created_at"].startswith("2018-10-10T20:19:2")


@pytest.mark.parametrize(
    "event",
    [{"data": TWEET, "matching_rules": [{"id": "1"}]}, {"data": [TWEET], "meta": {"result_count": 1}}, TWEET],
    ids=["streamed", "page", "bare"],
)
def test_v2_tweets_streamed_in_pages_and_bare(tmp_path: Path, event: dict) -> None:
    path = written(tmp_path / "v2.json", event)
    assert Recording.open(path).format is twitter_v2
    assert posts(path) == [
        {
            "id": "1212092628029698048",
            "kind": "post",
            "author": "2244994945",
            "created_at": "2019-12-31T19:26:16.000Z",
            "tags": ["Dev"],
            "text": "We believe the best future #Dev",
            "lang": "en",
        }
    ]


def test_a_v2_tweet_without_a_time_has_that_of_its_id() -> None:
    bare = {key: TWEET[key] for key in ("id", "text")}
    assert twitter_v2.post(bare)[0]["created_at"] == "2019-12-31T19:26:16.771Z"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_that_is_one_json_document(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "statuses.json"
    path.write_text(json.dumps([STATUS, {**STATUS, "id_str": "5"}], indent=indent))
    assert [post["id"] for post in posts(path)] == ["1050118621198921728", "5"]


def test_a_packed_file_is_that_file(recordings: Path, tmp_path: Path) -> None:
    plain = recordings / "social" / "jetstream_expected_v1.jsonl"
    packed = tmp_path / "any name"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert posts(packed) == posts(plain)
    packed.write_bytes(packed.read_bytes()[:100])
    with pytest.raises(RecordingError, match="the gzip file is incomplete"):
        Recording.open(packed)


def test_lines_that_are_no_events_are_passed_on_as_they_are(tmp_path: Path) -> None:
    odd = [
        "{broken",
        "[1, 2]",
        '"text"',
        '{"unknown": 1}',
        '{"did": "did:plc:a", "time_us": "x", "kind": "commit"}',
    ]
    good = {"did": "did:plc:a", "time_us": 1, "kind": "identity"}
    path = written(tmp_path / "jetstream.jsonl", "{broken first", good, *odd, "", good)
    lines = [line for batch in Recording.open(path).batches() for line in batch.values.to_pylist()]
    assert lines[0] == b"{broken first"
    assert [line.decode() for line in lines[2:-1]] == odd
    assert json.loads(lines[-1])["kind"] == "repeat"


@pytest.mark.parametrize(
    "record",
    [
        {"createdAt": "yesterday"},
        {"createdAt": "2026-01-01T00:00:00Z", "facets": 5},
        {"createdAt": "2026-01-01T00:00:00Z", "langs": 5},
        {"createdAt": "0001-01-01T00:00:00+14:00"},
    ],
    ids=["time", "facets", "langs", "before all years"],
)
def test_fields_of_another_type_than_the_format_says(tmp_path: Path, record: dict) -> None:
    commit = {"operation": "create", "collection": "app.bsky.feed.post", "rkey": "1", "record": record}
    event = {"did": "did:plc:a", "time_us": 1, "kind": "commit", "commit": commit}
    path = written(tmp_path / "jetstream.jsonl", event)
    assert posts(path) == [event]


def test_half_a_surrogate_pair_does_not_stop_a_post(tmp_path: Path) -> None:
    path = written(tmp_path / "v2.json", {**TWEET, "text": "half \ud83d"})
    assert "\\ud83d" in path.read_text()
    assert posts(path)[0]["text"] == "half ?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ('{"price": 3}\n', "none of its first 1000 lines is an event of Bluesky Jetstream, Twitter v1.1"),
        (None, "there is no such file"),
    ],
)
def test_files_that_cannot_be_replayed(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "file.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RecordingError, match=message):
        Recording.open(path)


def test_a_folder_cannot_be_replayed(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="is a folder; name one file"):
        Recording.open(tmp_path)


def test_a_foreign_event_says_what_is_missing() -> None:
    with pytest.raises(Unrecognised, match="id_str"):
        twitter_v1.post({"created_at": "x", "user": {}})
    with pytest.raises(Unrecognised, match="is not a v1"):
        twitter_v1.post({"id_str": "1", "created_at": "Wed Xyz 10 20:19:24 +0000 2018", "user": {}})
