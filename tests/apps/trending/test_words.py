"""Words of scripts without spaces, and of posts in several scripts, one row beside the other."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.apps.trending.words import spaceless_words, words_of


@pytest.mark.parametrize(
    ("text", "words", "others"),
    [
        ("台風19号が来ています", {"台風"}, {"が", "てい", "ます", "19"}),
        ("コロナワクチンを接種", {"コロナ", "ワクチン", "コロナワクチン", "接種"}, {"を"}),
        ("雪が降った", {"雪"}, {"が"}),
        ("台湾花莲地震了吓死我了", {"台湾", "花莲", "地震", "花莲地震"}, {"了", "我"}),
        ("เกิดแผ่นดินไหวที่กรุงเทพ", {"แผ่นดินไหว", "กรุงเทพ"}, {"ที่"}),
        ("iPhone17発売 #台風 https://x.jp/地震", {"iphone17", "発売"}, {"台風", "地震"}),
        ("ｉｐｈｏｎｅ ﾃﾚﾋﾞ", {"iphone", "テレビ"}, set()),
        ("ភ្នំពេញមានភ្លៀងខ្លាំង", {"ភ្នំពេញ", "ភ្លៀង"}, set()),
    ],
)
def test_words_of_scripts_without_spaces(text: str, words: set[str], others: set[str]) -> None:
    (result,) = words_of(pl.Series([text]), 2).to_list()
    assert words <= set(result) and not others & set(result) and len(result) == len(set(result))


def test_each_row_has_its_own_words_however_batches_are_cut() -> None:
    texts = ["rain today", "台風だ", None, "", "雨 rain 雨", "über café", "no words: 1 2 3", "台風 19"]
    column = pl.Series([*texts, "don’t panic"])
    together = words_of(column, 2).to_list()[:-1]
    assert column.to_list() == [*texts, "don’t panic"]
    assert together == [words_of(pl.Series([text], dtype=pl.String), 2).to_list()[0] for text in texts]
    assert together[0] == ["rain"] and together[2] is None and together[3] == []
    assert words_of(pl.Series([], dtype=pl.String), 3).to_list() == []


def test_pieces_in_a_row_are_words_up_to_twice_as_many() -> None:
    assert list(spaceless_words("鬼滅の刃", 1)) == ["鬼", "鬼滅", "滅", "刃"]
    assert "鬼滅の刃" in list(spaceless_words("鬼滅の刃", 2))
    assert not list(spaceless_words("です", 3))
