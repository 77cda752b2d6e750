"""Words that every text has, in the languages that are posted in most: they are no trend."""

from __future__ import annotations

_ENGLISH = """
    a about after again all also am an and any are as at back be because been before being but by can
    can't cannot come could day did didn't do does doesn't doing don't down even every first for from get
    go going good got had has have having he he's her here him his how i i'd i'll i'm i've if in into is
    isn't it it's its just know let like ll look made make many me more most much my need new no not now
    of off oh ok on one only or other our out over people re really rt said same say see she should so
    some still such take than that that's the their them then there these they they're thing think this
    those time to today too two up us use ve very via want was wasn't way we well were what when where
    which while who why will with won't would yes you you're your
"""
_SPANISH = """
    al como con de del el ella en es esa ese eso esta este esto estoy está fue ha hay la las le les lo
    los mas me mi muy más nada ni nos para pero por porque que qué se ser si sin son soy su sus sí
    también te tiene todo todos tu un una uno ya yo
"""
_PORTUGUESE = """
    ao aos as com da das dele depois do dos ela ele eles em essa esse eu foi isso isto já mais mas meu
    minha muito na nas não no nos nós num numa os ou para pela pelo por pra quando que quem se sem ser
    seu sua são só tem um uma vai você
"""
_FRENCH = """
    ai au aux avec c'est ce ces cette comme dans des donc du elle est et été eu il ils j'ai je la le les
    leur lui ma mais mes mon même ne nous on ont ou où pas plus pour qu'il qui sa se ses si son sont sur
    ta te tout très tu une vos votre vous ça
"""
_GERMAN = """
    aber als am an auch auf aus bei bin bis da das dass dem den der des die doch du ein eine einen einem
    einer er es für gibt habe haben hat hier ich ihr im in ist ja jetzt kann kein keine man mehr mich mir
    mit nach nicht noch nur oder schon sein sich sie sind so um und uns von war was wenn wer werden wie
    wieder wir wird zu zum zur über
"""
_OTHERS = """
    che di e gli i il non o per una bir bu da de ne ve için çok aan dat de een en het ik je met niet op
    te van wat ze zijn
"""

STOP_WORDS = sorted(
    {word for text in (_ENGLISH, _SPANISH, _PORTUGUESE, _FRENCH, _GERMAN, _OTHERS) for word in text.split()}
)
"""All of them, in order."""
