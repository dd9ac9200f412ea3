"""Words that make a question in scripts other than Latin, by the kind of answer that they are for.

No page is expected to have them: "港口管理员是谁?" is answered by "港口管理员是王大伟。". In scripts without blanks
they are recognised within a run of characters, with the copula or the particle beside them.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import re

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Letters of scripts without blanks between words, for a class of characters, vowel signs of Thai among them; and those
of Korean, whose words have their particles as endings."""

_MEASURE = "[个個名位人台座条條只隻间間本层層次米辆輛岁歲艘件家吨噸]"
_COUNTER = "(?:人|名|台|本|枚|個|件|回|隻|匹|歳|階|つ|年間|日間|時間|メートル|キロ|トン|円)"
_CHINESE_COPULA = "[是有于於叫為为]?"
_JAPANESE_PARTICLE = "[はがをにのでもへと]"
_BEGIN_OF_KANA = rf"(?:{_JAPANESE_PARTICLE}|(?<![\u3040-\u309f]))"
"""Hiragana are a word behind a particle or another script: "ぶどう" has no "どう"."""
_BEGIN_OF_KOREAN, _REST_OF_KOREAN = "(?<![가-힣])", "[가-힣]*"
_THAI_COPULA = "(?:คือ|เป็น|มี)?"

WHO = re.compile(r"^\W*(?:Ποι(?:ος|ός|α|ά|οι|οί)\s+(?:είναι|ήταν)|Кто)\b", re.IGNORECASE)
"""In scripts with capitals, by which names are recognised."""
WHEN = re.compile(
    f"{_CHINESE_COPULA}(?:什么时候|什麼時候|何时|何時|几时|幾時|哪一?年|哪一?天|几点|幾點|哪个月|哪個月)"
    f"|{_JAPANESE_PARTICLE}?何(?:年|月|日|時|曜日)(?!間)[にの]?|{_BEGIN_OF_KANA}いつ(?!も)"
    f"|{_BEGIN_OF_KOREAN}(?:언제|(?:몇|어느)\\s?(?:년|해|월|날|시)){_REST_OF_KOREAN}"
    f"|{_THAI_COPULA}(?:เมื่อไร|เมื่อไหร่|เมื่อใด|(?:ปี|วัน)(?:ใด|ไหน|อะไร)|กี่โมง)"
    r"|\b(?:מתי|ב?איזו שנה|ב?איזה תאריך|באיזה יום|متى|(?:في )?(?:أي|أية|اي) (?:عام|سنة|يوم|تاريخ))\b"
    r"|\b(?:πότε|(?:σε )?ποι[αό] (?:χρονιά|έτος|ημερομηνία|μέρα)|когда|в каком году|какого числа)\b",
    re.IGNORECASE,
)
HOW_MANY = re.compile(
    f"{_CHINESE_COPULA}(?:多少{_MEASURE}?|[几幾]{_MEASURE}|(?<![最很许許更太])多[大高长長重远遠久深宽寬快](?![学學]))"
    f"|{_JAPANESE_PARTICLE}?何{_COUNTER}|{_BEGIN_OF_KANA}(?:いくつ|いくら|どのくらい|どれくらい|どれだけ)"
    f"|{_BEGIN_OF_KOREAN}(?:얼마{_REST_OF_KOREAN}|몇\\s?(?:명|개|대|척|곳|층|미터|살|번)?)"
    f"|{_THAI_COPULA}(?:(?<!เ)กี่|เท่าไร|เท่าไหร่|เท่าใด)"
    r"|\b(?:כמה|كم(?: عدد)?|ما عدد|πόσ(?:ο|α|οι|ες|ος|η|ων|ους)|сколько|каков[аоы]?)\b",
    re.IGNORECASE,
)
_OTHER = re.compile(
    "请问|請問|哪里|哪裡|哪裏|哪儿|哪兒|何处|何處|什么地方|什麼地方"
    "|[はが]?誰[がはのを]"
    f"|{_CHINESE_COPULA}(?:谁|は?誰|哪位|为什么|為什麼|为何|為何|怎么样?|怎麼樣?|怎样|怎樣|如何"
    "|什么(?:人|名字)?|什麼(?:人|名字)?|甚麼|哪些|哪[个個一]?)是?|了?[吗嗎呢](?=\\W*$)"
    f"|{_JAPANESE_PARTICLE}?(?:何者|何(?=[\u3040-\u30ff]|\\W*$))[がはのを]?"
    f"|{_BEGIN_OF_KANA}(?:だれ|どなた|どこ|どちら|どんな|どの|どれ|どうして|どうやって|なぜ|なん(?=で))"
    r"|(?:でしょう|でした|です|ました|ます|の)+か(?=\W*$)"
    f"|{_BEGIN_OF_KOREAN}(?:누구|누가|누굽|무엇|무슨|뭐|뭘|어디|어느|어떤|어떻게|왜){_REST_OF_KOREAN}"
    r"|(?<=[가-힣])(?:입니까|(?:(?<!있)습)?니까|인가요|나요|까요|는가)(?![가-힣])"
    f"|{_THAI_COPULA}(?:ใคร|อะไร|ที่ไหน|ที่ใด|แห่งใด|ไหน|ใด(?!ๆ)|ทำไม|อย่างไร|ยังไง)(?:คือ|เป็น)?"
    r"|(?:หรือไม่|หรือเปล่า|ไหม|มั้ย|ครับ|ค่ะ|คะ)(?=\W*$)"
)
_PARTICLE = re.compile(
    r"(?<!目)的(?![确確士])"
    rf"|(?<=[^\W\d_\u3040-\u309f]){_JAPANESE_PARTICLE}(?![\u3040-\u309f])"
    r"|(?<=[가-힣]{2})(?:에서|으로|은|는|이|가|을|를|의|에|와|과|로)(?![가-힣])"
)
"""Sentences that answer have another one, or none."""

FUNCTION_WORDS = frozenset(
    "מי מה מתי איפה היכן כמה למה מדוע איך איזה איזו אילו הוא היא הם הן היה הייתה היו של את על עם זה זו זאת "
    "من ما ماذا متى أين كم لماذا كيف أي أية هل هو هي هم هن كان كانت في على إلى عن مع هذا هذه ذلك تلك الذي التي "
    "ποιος ποιός ποια ποιά ποιο ποιό ποιοι ποιες ποιον ποιου τι πότε πού που πώς πως γιατί πόσο πόσα πόσοι πόσες πόσος "
    "πόση πόσων είναι ήταν έχει είχε έχουν το οι του της των τον την τους τις τα στο στη στην στον στα στις στους σε "
    "και με για από ένα ένας μια μία "
    "кто кого что чей чья чьё какой какая какое какие когда где куда откуда почему зачем как сколько это на по из со "
    "об от до за для при был была было были есть".casefold().split()
)
"""Carry grammar, in scripts with blanks between words."""


def without_question_words(question: str) -> str:
    """``question`` with a blank in place of each word that makes it a question, and of particles."""
    if question.isascii():
        return question
    for pattern in (WHO, WHEN, HOW_MANY, _OTHER, _PARTICLE):
        question = pattern.sub(" ", question)
    return question
