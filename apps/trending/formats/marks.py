"""Find tags, symbols of shares and emoji in texts.

Sources: Unicode Technical Standard 51 (definition of an emoji), twitter-text's conformance tests (of a tag).
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from ..lists import empty_lists, replace_lists

# A tag doesn't follow a letter (a#b) or an address (/#top). A truncated tag ends in an ellipsis.
_TAG = r"(?:^|[^\w&/])[#＃]\w*[\p{L}\p{M}]\w*…?"
_SHARE = r"(?:^|[^\w$])\$[A-Za-z]{1,6}(?:[._][A-Za-z]{1,2})?\b"

_TAIL = r"(?:[\x{E0020}-\x{E007E}]+\x{E007F})?"
_PICTURE = rf"\p{{Extended_Pictographic}}\x{{FE0F}}?\p{{Emoji_Modifier}}?{_TAIL}"
EMOJI = "|".join(
    [
        rf"{_PICTURE}(?:\x{{200D}}{_PICTURE})+",
        r"\p{Regional_Indicator}{2}",
        rf"\p{{Emoji_Presentation}}\x{{FE0F}}?\p{{Emoji_Modifier}}?{_TAIL}",
        # Emoji only with a variation selector or a skin tone, except hearts, which are often sent bare.
        r"\p{Extended_Pictographic}(?:\x{FE0F}\p{Emoji_Modifier}?|\p{Emoji_Modifier})|[❤♥]",
        r"[0-9#*]\x{FE0F}?\x{20E3}",
    ]
)
"""What people see as one picture, including skin tones, joined emoji, flags and keycaps."""

_QUALIFIED = {"❤": "❤\ufe0f", "♥": "♥\ufe0f"}

_LINKS = r"https?://\S+|www\.\S+"


def tags_of(texts: pl.Series) -> pl.Series:
    """Return the tags of each text, without #, and symbols of shares, with $.

    >>> tags_of(pl.Series(["#Rain in #東京, $BRK.B up", "no. 1"])).to_list()
    [['Rain', '東京', '$BRK.B'], []]
    """
    return _of_some(texts, texts.str.contains("[#＃$]"), _tags)


def emoji_of(texts: pl.Series) -> pl.Series:
    """Return the distinct emoji of each text.

    >>> emoji_of(pl.Series(["so 🔥🔥 👩🏽‍🚀!", "none © here"])).to_list()
    [['🔥', '👩🏽\u200d🚀'], []]
    """
    return _of_some(texts, texts.str.len_bytes() != texts.str.len_chars(), _emoji)


def _tags(texts: pl.Series) -> pl.Series:
    plain = texts.str.replace_all(_LINKS, " ")
    lists = pl.concat_list(plain.str.extract_all(_TAG), plain.str.extract_all(_SHARE))
    mark = pl.element()
    names = pl.coalesce(mark.str.extract(r"[#＃](\w+)$", 1), mark.str.extract(r"(\$[\w.]+)$", 1))
    return pl.select(lists.list.eval(names.drop_nulls())).to_series()


def _emoji(texts: pl.Series) -> pl.Series:
    pictures = texts.str.extract_all(EMOJI).rename("emoji").to_frame()
    qualified = pl.col("emoji").list.eval(pl.element().replace(_QUALIFIED))
    return pictures.select(qualified.list.unique(maintain_order=True)).to_series()


def _of_some(texts: pl.Series, some: pl.Series, lists: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Return lists for some of the texts, and empty ones for the others."""
    rows, empty = some.arg_true(), empty_lists(len(texts))
    return replace_lists(empty, rows, lists(texts.gather(rows))) if len(rows) else empty
