"""Languages of texts that don't say theirs."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.apps.trending.formats.languages import languages_of

from ....cases import each

TEXTS = {
    "en": "the earthquake was felt all over town",
    "es": "no puedo creer lo que acaba de pasar",
    "pt": "estou com muita fome agora",
    "tr": "deprem oldu çok korktum",
    "id": "gempa bumi terasa di Jakarta",
    "uk": "Привіт, як справи сьогодні",
    "ja": "台風が来ています",
    "zh": "台风登陆广东了",
    "th": "แผ่นดินไหวแรงมาก",
    "el": "σεισμός τώρα στην Αθήνα",
}


def detected(lang: str | None, text: str | None) -> str | None:
    posts = pl.DataFrame({"lang": [lang], "text": [text]}, {"lang": pl.String, "text": pl.String})
    (language,) = languages_of(posts.to_struct()).to_list()
    return language


@each("language", TEXTS)
def test_languages(language: str) -> None:
    assert detected(None, TEXTS[language]) == detected("und", TEXTS[language]) == language
    assert detected("xx-YY", TEXTS[language]) == "xx-YY"


@pytest.mark.parametrize(
    "text", [None, "", "lol", "台風 🌀", "😂😂", "https://example.org/der/die/das", "123 #eins"]
)
def test_what_has_hardly_a_word_is_in_none(text: str | None) -> None:
    assert detected(None, text) is None
