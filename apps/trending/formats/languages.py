"""Detect the language of posts that don't name it."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl

from ....sketches.core.extras import naming_extras

_KNOWN = (
    "af ar az be bg bn bs ca cs cy da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk "
    "km kn ko ky lo lt lv mk ml mn mr ms my ne nl no pa pl ps pt ro ru si sk sl so sq sr sv sw ta te th tl "
    "tr uk ur uz vi xh yo zh zu"
)
"""The candidates for short texts: among all of the detector's languages, it would often pick a rare one."""

_SURE = 0.7
_FEWEST = 5
"""The minimum number of letters: 台風 is both Japanese and Chinese."""

_LONGEST = 300
_UNDETERMINED = ("und", "")
_NO_WORDS = r"https?://\S+|www\.\S+|[@#＠＃]\S+"


def languages_of(posts: pl.Series) -> pl.Series:
    """Return the language that each post (`lang`, `text`) names, or else the detected one; null if uncertain.

    >>> texts = ["god morgon allihopa, vad kallt det är idag", "台風が来ています", "lol", None]
    >>> posts = pl.DataFrame({"lang": ["sv-SE", "und", None, None], "text": texts})
    >>> languages_of(posts.to_struct()).to_list()
    ['sv-SE', 'ja', None, None]
    """
    said, texts = posts.struct.field("lang"), posts.struct.field("text")
    said = said.set(said.is_in(_UNDETERMINED), None)
    unsaid = (said.is_null() & texts.is_not_null()).arg_true()
    if not len(unsaid):
        return said
    plain = texts.gather(unsaid).str.replace_all(_NO_WORDS, " ").str.slice(0, _LONGEST)
    return said.scatter(unsaid, pl.Series([_language(text) for text in plain], dtype=pl.String))


def _language(text: str) -> str | None:
    if sum(map(str.isalpha, text)) < _FEWEST:
        return None
    language, probability = _detector().classify(text)
    return language if probability >= _SURE else None


@cache
def _detector() -> Any:
    # The model takes half a second to load, and most streams never need it.
    with naming_extras():
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

    detector = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    detector.set_languages(_KNOWN.split())
    return detector
