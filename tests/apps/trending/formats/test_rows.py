"""Words, muted posts and what stands in every format's rows, against plain Python."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest

from streamgauge.apps.trending.formats.posts import POSTS
from streamgauge.apps.trending.stop_words import STOP_WORDS

from .rows import rows_of

TEXTS = (
    "Big earthquake in Costa Rica!! https://t.co/x @bob it's HUGE #now",
    "don't stop, well-known café 2026 über-groß",
    "",
    "x " + "y" * 40,
    "rain rain go away",
    "𝗕𝗿𝗲𝗮𝗸𝗶𝗻𝗴 ﬁre, don’t panic: cafe\u0301 ½",
    "भूकंप के झटके",
    "$ACME is up 5$ at once",
)


def post(number: int, text: str | None, tags: list[str]) -> dict:
    return {
        "id": str(number),
        "kind": "post",
        "author": "ann",
        "created_at": "2026-06-01T12:00:00Z",
        "text": text,
        "tags": tags,
    }


def is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN" or character in "'’-_"


def words_in(text: str, most: int) -> list[str]:
    text = unicodedata.normalize("NFKC", text.replace("’", "'")).lower()
    plain = re.sub(r"https?://\S+|www\.\S+|[@#]\S+|\$[a-z]{1,6}\b", " ", text)
    begun = "".join(character if is_letter(character) else " " for character in plain)
    words = [
        word
        for word in (one.lstrip("'’-_") for one in begun.split())
        if 2 <= len(word) <= 30 and word not in STOP_WORDS and not word.isdigit()
    ]
    runs = [" ".join(pair) for pair in pairwise(words)] if most > 1 else []
    return list(dict.fromkeys(words + runs)) if most else []


@pytest.mark.parametrize("most", [0, 1, 2])
def test_words_are_those_that_plain_python_finds(most: int) -> None:
    values = [post(number, text, []) for number, text in enumerate(TEXTS)]
    rows, _, _ = rows_of(POSTS, values, {"words": str(most)})
    assert [row["words"] for row in rows] == [words_in(text, most) for text in TEXTS]


def test_tags_are_folded_and_stand_once_and_muted_posts_are_marked() -> None:
    values = [
        post(1, "all about Cats #sun", ["Rain", "rain", ""]),
        post(2, "dogs", ["SPOILER"]),
        post(3, None, []),
        post(4, "win 🎰", []),
        post(5, "$Acme", []),
    ]
    rows, account, _ = rows_of(POSTS, values, {"muted": "#spoiler, cats, 🎰"})
    assert [row["tags"] for row in rows] == [["rain", "sun"], ["spoiler"], [], [], ["$acme"]]
    assert [row["muted"] for row in rows] == [True, True, False, True, False]
    assert account.counted == 5


def test_languages_are_those_that_posts_say_or_else_are_in() -> None:
    texts = {"en": "guten Morgen zusammen", None: "hat noch jemand das Erdbeben gespürt?", "und": "ok"}
    values = [{**post(number, text, []), "lang": said} for number, (said, text) in enumerate(texts.items())]
    rows, _, _ = rows_of(POSTS, values)
    assert [row["lang"] for row in rows] == ["en", "de", None]


def test_a_wrong_setting_is_said() -> None:
    with pytest.raises(
        ValueError, match="--set words must be a number of words in a row from 0 to 3, got many"
    ):
        rows_of(POSTS, [], {"words": "many"})
