"""Twitter's v1.1 statuses: one JSON object a line, as its streams sent them and archives keep them.

Source: the v1.1 data dictionary, "Tweet object" and "Extended Tweets" (developer.x.com).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from .post import Post, Unrecognised, once, rfc3339

NAME = "Twitter v1.1"

_SNOWFLAKE_EPOCH = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=1288834974657)
_NOTICES = ("delete", "limit", "scrub_geo", "status_withheld", "user_withheld", "disconnect", "warning")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def recognises(event: dict[str, Any]) -> bool:
    """Whether a JSON object looks like a v1.1 status or one of the streams' notices."""
    status = isinstance(event.get("user"), dict) and "created_at" in event and _id(event) is not None
    return status or (len(event) == 1 and next(iter(event)) in _NOTICES)


def post(event: dict[str, Any]) -> tuple[Post, datetime | None]:
    """The status in the topic's shape, and its time; a stream's notice (a delete, a limit) has no time.

    A retweet is a post by the one who retweets, with the tags of the original in full: its own are cut off
    with its text. Raises `Unrecognised`.

    >>> status = {"id_str": "1", "created_at": "Wed Oct 10 20:19:24 +0000 2018", "text": "hi #there",
    ...     "user": {"screen_name": "ann"}, "entities": {"hashtags": [{"text": "there"}]}}
    >>> post(status)[0]["tags"], post(status)[0]["created_at"]
    (['there'], '2018-10-10T20:19:24.000Z')
    """
    notice = next((name for name in _NOTICES if name in event and "user" not in event), None)
    if notice is not None:
        return _notice(event, notice), None
    number, user = _id(event), event.get("user")
    if number is None or not isinstance(user, dict):
        raise Unrecognised("a v1.1 status needs id_str (or id) and user")
    moment = _moment(event)
    original = event.get("retweeted_status")
    source = original if isinstance(original, dict) else event
    made: Post = {
        "id": number,
        "kind": "post",
        "author": str(user.get("id_str") or user.get("id") or user.get("screen_name")),
        "created_at": rfc3339(moment),
        "tags": _tags(source),
        "text": str(_extended(event).get("full_text") or event.get("full_text") or event.get("text") or ""),
    }
    if event.get("lang"):
        made["lang"] = str(event["lang"])
    return made, moment


def snowflake(number: str) -> datetime:
    """When Twitter gave out an id: its upper bits are milliseconds since 2010-11-04."""
    return _SNOWFLAKE_EPOCH + timedelta(milliseconds=int(number) >> 22)


def _id(event: dict[str, Any]) -> str | None:
    number = event.get("id_str", event.get("id"))
    return str(number) if isinstance(number, (str, int)) else None


def _moment(event: dict[str, Any]) -> datetime:
    """`timestamp_ms` where the stream gave it, else `created_at`, which has whole seconds only."""
    try:
        if "timestamp_ms" in event:
            return datetime.fromtimestamp(int(event["timestamp_ms"]) / 1000, UTC)
        # Not by strptime, which reads month names in the user's own language.
        _, month, day, clock, zone, year = str(event.get("created_at")).split()
        text = f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}T{clock}{zone}"
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        wrong = event.get("timestamp_ms", event.get("created_at"))
        raise Unrecognised(f"{wrong!r} is not a v1.1 time, such as Wed Oct 10 20:19:24 +0000 2018") from None


def _extended(event: dict[str, Any]) -> dict[str, Any]:
    extended = event.get("extended_tweet")
    return extended if isinstance(extended, dict) else {}


def _tags(event: dict[str, Any]) -> list[str]:
    entities = _extended(event).get("entities") or event.get("entities") or {}
    return once(str(tag.get("text") or "") for tag in entities.get("hashtags") or [])


def _notice(event: dict[str, Any], kind: str) -> Post:
    """A notice in the topic's shape, at its own time or else at that of the status it is about."""
    about = event[kind] if isinstance(event[kind], dict) else {}
    status = about.get("status", about)
    number = _id(status)
    try:
        if "timestamp_ms" in about:
            created = datetime.fromtimestamp(int(about["timestamp_ms"]) / 1000, UTC)
        else:
            created = snowflake(str(number))
    except (ValueError, TypeError, OverflowError, OSError):
        raise Unrecognised(f"the {kind} notice has neither timestamp_ms nor the id of a status") from None
    return {
        "id": f"{kind}/{number or created.timestamp()}",
        "kind": kind,
        "author": str(status.get("user_id_str") or status.get("user_id") or ""),
        "created_at": rfc3339(created),
    }
