"""The words of generated posts: tags by popularity, handles of authors, phrases in several languages."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

N_TAGS = 50_000
N_AUTHORS = 200_000

_FAMOUS = (
    "breaking news music football worldcup election climate art photography travel nature space cats dogs "
    "books cooking coffee movies gaming science python kafka opensource health fitness fashion weekend "
    "sunrise mountains ocean birds garden history poetry cinema jazz chess cycling marathon startups design "
    "animation architecture astronomy baking theatre lofi vinyl anime manga retro typography bread hiking "
    "日本 音楽 夕焼け 猫 café fußball música niñez"
)
_FIRST = (
    "blue red golden silent wild urban winter summer autumn spring tiny giant hidden early late happy quiet "
    "bright dark electric analog digital northern southern eastern western ancient modern free open lucky "
    "midnight sunday monday friday royal rapid gentle cosmic solar lunar arctic desert island river forest"
)
_SECOND = (
    "light road story dream garden market train bridge city village harbor storm cloud valley field signal "
    "radio camera paper letter song dance voice window table kitchen school studio stage screen engine wheel "
    "garage tower temple castle museum library gallery theory puzzle riddle secret promise journey season "
    "morning evening holiday festival league cup match goal final draft trade deal summit debate vote"
)
_SUFFIXES = ("", "life", "club", "day", "talk", "daily", "2026", "fans", "lovers", "now", "live", "world")

# (language, share of posts, phrases): JSON string contents, so quotes and line breaks are already escaped.
_PHRASES: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    (
        "en",
        0.52,
        (
            "what a day this has been",
            "did anyone else see that coming?",
            'she said \\"never again\\" and then this',
            "long thread, bear with me\\nfirst of all",
            "new photos from this morning 📸",
            "I can't believe it is already over",
            "reading about this all evening",
            "so proud of the whole team ❤️",
        ),
    ),
    ("ja", 0.18, ("今日は最高の一日だった", "待って、今日だったの知らなかった💦", "おはようございます")),
    ("pt", 0.10, ("bom dia a todos", "não acredito nisso", "que jogo foi esse?")),
    ("de", 0.07, ("schöne Grüße aus der Küche", "das muss man gesehen haben", "größer als gedacht")),
    ("es", 0.06, ("¿qué está pasando?", "mañana será otro día", "qué noche tan linda")),
    ("ko", 0.04, ("이쁘시네용~~~", "오늘 날씨가 정말 좋아요")),
    ("fr", 0.03, ("ça commence bien", "à demain tout le monde")),
)


@lru_cache(maxsize=1)
def tags() -> tuple[str, ...]:
    """Return `N_TAGS` different tags, the well-known ones first.

    >>> len(set(tags())), tags()[:3]
    (50000, ('breaking', 'news', 'music'))
    """
    first, second = _FIRST.split(), _SECOND.split()
    made = _FAMOUS.split()
    made += [a + b + c for c in _SUFFIXES for a in first for b in second]
    made += [f"{a}{b}{n}" for n in range(1, 10) for a in first for b in second]
    return tuple(dict.fromkeys(made))[:N_TAGS]


@lru_cache(maxsize=1)
def authors() -> tuple[str, ...]:
    """Return `N_AUTHORS` different handles."""
    first, second = _FIRST.split(), _SECOND.split()
    return tuple(f"{first[n % len(first)]}.{second[n % len(second)]}.{n}" for n in range(N_AUTHORS))


@lru_cache(maxsize=1)
def phrases() -> tuple[list[str], list[str], np.ndarray]:
    """Return the languages, texts and shares (which sum to 1) of all phrases."""
    languages, texts, shares = [], [], []
    for language, share, lines in _PHRASES:
        for line in lines:
            languages.append(language)
            texts.append(line)
            shares.append(share / len(lines))
    return languages, texts, np.array(shares)
