"""Stop words in the most frequent languages of posts, which are never a trend."""

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

_JAPANESE = """
    です ます でし まし ませ ない なかっ なく ある あっ あり いる いた いて する した して しよ され される
    せる なる なっ なり から まで より だけ など って とか けど けれど ので のに でも には では とは にも
    への この その あの どの ここ そこ これ それ あれ どれ こと もの ところ よう たい てい てる ている った
    しか ほど なら たら ても じゃ よね かな だよ だね んだ さん ちゃん くん そう もう まだ また さて いい
    よく とても ちょっと やっぱり やっ ください くださ という ため とき うち みたい らしい だっ だろ
    でしょう ましょ てき ちゃ れる られる すぎ くれ いま なん なに だれ どこ いつ 私 僕 俺 今 今日 何 人 方
    中 事 的 日 月 年 時 分 前 後 上 下 々 〇
"""
_CHINESE = """
    的 了 是 在 我 你 他 她 它 们 們 我们 我們 你们 你們 他们 他們 不 都 就 也 和 有 这 這 那 个 個 一 一个
    一個 上 下 人 很 到 说 說 要 去 会 會 着 著 没 沒 没有 沒有 看 好 自己 吗 嗎 呢 吧 啊 哦 呀 嘛 啦 把 被
    让 讓 给 給 从 從 对 對 跟 与 與 或 而 但 但是 因为 因為 所以 如果 这个 這個 那个 那個 什么 什麼 怎么
    怎麼 可以 已经 已經 现在 現在 还 還 还是 還是 再 又 才 只 来 來 吃 想 能 得 地 过 過 里 裡 后 後 大 小
    多 少 太 真 真的 今天 大家 知道 觉得 覺得 就是 不是 都是 这样 這樣 时候 時候 年 月 日 时 時 点 點 号 號
    两 兩 二 三 四 五 六 七 八 九 十 百 千 万 萬 之 为 為 以 及 等 其 于 於 所 者
"""
_THAI = """
    ที่ และ เป็น ใน ของ มี ไม่ ได้ ก็ ให้ จะ มา ไป ว่า กับ แต่ นี้ นั้น อยู่ ครับ ค่ะ คะ นะ เรา ผม ฉัน คน
    แล้ว ยัง จาก โดย หรือ ต้อง เลย มาก อะไร ทำ ถ้า เมื่อ ซึ่ง กัน ขึ้น ลง เขา คุณ ด้วย อย่าง การ ความ แบบ
    จริง เอา วัน วันนี้ ตอน นี่ ละ เนี่ย ไหม มั้ย เพราะ
"""

SPACELESS_STOP_WORDS = frozenset(word for text in (_JAPANESE, _CHINESE, _THAI) for word in text.split())
"""Stop words in scripts without spaces, as segmented by ICU's dictionaries."""
