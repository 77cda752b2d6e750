"""The words of a post: between spaces or, in scripts without spaces, words of a dictionary and runs of them.

Chinese, Japanese, Thai, Lao, Khmer and Burmese are segmented by ICU's dictionaries (Unicode Standard
Annex 29). They split names and new words into pieces, so runs of neighbouring pieces count as words, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa

from ...sketches.core.extras import naming_extras
from .lists import TEXTS, replace_lists
from .stop_words import SPACELESS_STOP_WORDS, STOP_WORDS

LONGEST = 30
"""The maximum length of a word in characters."""

SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana and Chinese characters, for a character class of a regular expression."""

# Links, account names, tags and symbols of shares have columns of their own, or are not words.
_MARKED = r"https?://\S+|www\.\S+|[@#＠＃]\S+|\$\p{L}\S*"
# A number or a single letter isn't a word.
_WORD = r"\p{L}[\p{L}\p{M}\p{N}'’_-]+|\p{N}+[\p{L}\p{M}'’_-][\p{L}\p{M}\p{N}'’_-]*"
# Characters that normalisation may change; most posts in Latin letters have none.
_UNCOMMON = r"[^\x00-\x7f¡¿«»À-ÿĀ-ıĴ-ľŁ-ňŊ-ž‘’“”–—…€]"
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_PIECES = 2
"""The approximate number of pieces into which a word is split that isn't in a dictionary."""


def words_of(texts: pl.Series, most: int) -> pl.Series:
    """Return the distinct words of each text, and runs of up to `most` words, in lower case.

    Stop words are left out. Null for null.

    >>> words_of(pl.Series(["The Aurora over Oslo tonight!", "台風が来た"]), 2).to_list()
    [['aurora', 'oslo', 'tonight', 'aurora oslo', 'oslo tonight'], ['台風']]
    """
    foreign = (texts.str.len_bytes() != texts.str.len_chars()).arg_true()
    if len(foreign):
        # Different encodings of a word, such as composed, decomposed or mathematical bold letters, are one
        # word.
        others = texts.gather(foreign).str.replace_all("’", "'", literal=True)
        uncommon = others.str.contains(_UNCOMMON).arg_true()
        if len(uncommon):
            others = others.scatter(uncommon, others.gather(uncommon).str.normalize("NFKC"))
        texts = texts.clone().scatter(foreign, others)  # in place
    plain = texts.str.replace_all(_MARKED, " ").str.to_lowercase()
    if len(foreign):
        spaceless = foreign.filter(plain.gather(foreign).str.contains(f"[{SPACELESS}]"))
        if len(spaceless):
            return _with_spaceless(plain, spaceless, most)
    return _spaced(plain, most)


def _with_spaceless(plain: pl.Series, rows: pl.Series, most: int) -> pl.Series:
    """Return the words of texts that contain scripts without spaces in some rows."""
    texts = plain.gather(rows)
    others = _spaced(plain.scatter(rows, texts.str.replace_all(f"[{SPACELESS}]+", " ")), most)
    stretches = texts.str.extract_all(f"[{SPACELESS}]+").to_list()
    words = [[word for stretch in text for word in spaceless_words(stretch, most)] for text in stretches]
    lists = pl.concat_list(others.gather(rows), pl.Series(words, dtype=TEXTS))
    both = pl.select(lists.list.unique(maintain_order=True)).to_series()
    return replace_lists(others, rows, both)


def _spaced(plain: pl.Series, most: int) -> pl.Series:
    """Return the words of lower-case texts in scripts with spaces, and runs of them.

    This processes the words of all texts at once: an expression per list would cost several times as much.
    """
    lists = plain.str.extract_all(_WORD).rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    # The lists' own offsets; a null is like an empty list.
    every, offsets = pl.Series("word", lists.values), lists.offsets.to_numpy()
    wanted = (every.str.len_chars() <= LONGEST) & ~every.is_in(STOP_WORDS)
    words, offsets = every.filter(wanted), _offsets(wanted.to_numpy(), offsets)
    terms = [_as_lists(words, offsets)]
    # Whether a number of words after a word are from the same text.
    whole = np.ones(len(words), bool)
    for length in range(2, most + 1):
        at = offsets[1:] - (length - 1)
        whole[at[at >= offsets[:-1]]] = False
        row = pl.concat_str([pl.col("word").shift(-behind) for behind in range(length)], separator=" ")
        rows = words.to_frame().select(row).to_series().filter(pl.Series(whole))
        terms.append(_as_lists(rows, _offsets(whole, offsets)))
    both = terms[0] if most == 1 else pl.select(pl.concat_list(terms)).to_series()
    unique = both.list.unique(maintain_order=True)
    return unique if not plain.null_count() else unique.set(plain.is_null(), None)


def _offsets(kept: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the offsets of lists after filtering their values."""
    before: np.ndarray = np.concatenate([[0], np.cumsum(kept)])
    return before[offsets]


def _as_lists(values: pl.Series, offsets: np.ndarray) -> pl.Series:
    flat = values.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat))


def spaceless_words(text: str, most: int) -> Iterator[str]:
    """Return the words of a text without spaces: those of the dictionary, and runs of pieces.

    >>> list(spaceless_words("แผ่นดินไหว", 2))
    ['แผ่น', 'แผ่นดิน', 'แผ่นดินไหว', 'ดิน', 'ดินไหว', 'ไหว']
    """
    with naming_extras():
        from icu4py.breakers import WordBreaker

    pieces = list(WordBreaker(text, "ja"))
    ends = [
        piece not in SPACELESS_STOP_WORDS and (len(piece) > 1 or bool(_CHINESE.match(piece)))
        for piece in pieces
    ]
    for begin, first in enumerate(ends):
        if first:
            for end in range(begin + 1, min(begin + 1 + _PIECES * most, len(pieces) + 1)):
                word = "".join(pieces[begin:end])
                if len(word) > LONGEST:
                    break
                if ends[end - 1]:
                    yield word
