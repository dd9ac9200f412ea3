"""Greetings, thanks and closings around a question, which no page answers. They are left out; a text that has nothing
else stays as it is."""

from __future__ import annotations

import re

from vrag_ray.policies.extractive.lexicon import AUXILIARIES, QUESTION_WORDS

_GREETING = (
    r"(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|greetings)(?:,? (?:there|again|all|everyone|everybody|"
    r"team|assistant|folks))?|(?:hi|hey|dear) (?-i:[A-Z])\w+|dear (?:sir|madam|team|all|assistant|support|colleagues?)"
    r"(?: or (?:sir|madam))?|i hope (?:you are|you['\u2019]re|this finds you) (?:doing )?well"
    r"|hallo|guten (?:tag|morgen|abend)|liebes team|sehr geehrte damen und herren|bonjour|bonsoir|salut|hola|"
    r"buen[oa]s (?:d[ií]as|tardes|noches)|ciao|buongiorno|buonasera|ol[aá]|bom dia|boa tarde|hoi|goede(?:morgen|middag)"
)
_THANKS = (
    r"(?:many |a lot of )?thanks?(?: you)?(?: (?:so|very) much)?(?: a (?:lot|million|bunch))?(?: again)?"
    r"(?: in advance| for (?:your|the|any|all) (?:help|time|support|answer|reply|assistance))?|thx|cheers"
    r"|(?:any|your) help (?:is|would be|will be) (?:very |much |greatly |highly |really )?appreciated"
    r"|i(?:['\u2019]d| would)? (?:really )?appreciate (?:any|your|the) help|have a (?:nice|good|great|lovely) \w+"
    r"|(?:vielen |herzlichen )?dank(?:e)?(?: sch[oö]n| sehr)?(?: im voraus)?"
    r"|merci(?: beaucoup)?(?: (?:d['\u2019]|par )avance)?|(?:muchas |mil )?gracias(?: de antemano| por adelantado)?"
    r"|grazie(?: mille)?(?: in anticipo)?|(?:muito )?obrigad[oa]"
    r"|(?:alvast )?(?:hartelijk )?bedankt|dank (?:je|u)(?: wel)?"
)
_WISH = (
    r"(?:please )?(?:(?:can|could|would) you (?:please )?)?help(?: me)?(?: out)?(?: with (?:this|that|it))?"
    r"(?:,? please)?|quick question"
    r"|(?:i have|here is|here['\u2019]s|just) a (?:quick |short |simple )?question(?: for you)?"
)
_SIGNED = (
    r"(?:(?:best|kind|warm|kindest|warmest|many) )?(?:regards|wishes)|yours (?:sincerely|truly|faithfully)|sincerely"
    r"|mit (?:freundlichen|besten) gr[uü](?:ß|ss)en|(?:viele|liebe|beste) gr[uü](?:ß|ss)e|cordialement|saludos"
    r"|met vriendelijke groet(?:en)?"
)
_ASK = rf"(?:{QUESTION_WORDS}|{AUXILIARIES}|please|tell)"
_NAME = r"(?:[,\s]+(?-i:[A-Z])[\w.'\u2019-]*(?: (?-i:[A-Z])[\w.'\u2019-]*){0,2})?"
_BEFORE = re.compile(
    rf"\W*(?:(?:{_GREETING}|{_THANKS}|{_WISH})\s*(?:[,.!:;\u2013\u2014)]+|\n)"
    rf"|(?:hello|hi|hey)(?: there)?(?=\s+{_ASK}\b))\s*",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    rf"(?:(?<=[.?!)])[ \t]*|\n[ \t]*)\(?(?:{_THANKS}|{_WISH}|(?:{_THANKS}|{_SIGNED}){_NAME})"
    "[^\\w\"'\u201c\u201d\u201e\u00ab\u00bb]*$",
    re.IGNORECASE,
)


def without_courtesy(text: str) -> str:
    """``text`` from its first to its last sentence that is no courtesy."""
    rest = text
    while (greeting := _BEFORE.match(rest)) is not None:
        rest = rest[greeting.end() :]
    while (closing := _BEHIND.search(rest)) is not None:
        rest = rest[: closing.start()]
    return rest if any(map(str.isalnum, rest)) else text
