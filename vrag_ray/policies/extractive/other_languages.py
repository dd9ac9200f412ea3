"""Questions in German, French, Spanish, Italian and Dutch: words that carry grammar, and the kind of answer.

Many of these words are others in English ("die", "war", "hat"), so that they count where the question has more words
of grammar of their language than of English.
"""

from __future__ import annotations

import re
from collections.abc import Set

_LANGUAGES = tuple(
    frozenset(words.split())
    for words in (
        "der die das den dem des ein eine einen einem einer eines und oder nicht ist sind war waren wird werden wurde "
        "wurden hat haben hatte kann können darf dürfen muss müssen soll gibt es man sich er sie ich wir ihr von vom "
        "zu zum zur im in ins am an auf aus bei mit nach für über unter um vor bis seit durch wie viel viele was wer "
        "wen wem wessen wann wo wohin woher warum welche welcher welches welchen welchem als auch noch pro kein keine",
        "le la les l un une des du de d et ou ne pas est sont était étaient sera a ont avait peut peuvent doit doivent "
        "il elle ils elles on se s y en au aux à dans sur sous par pour avec sans chez vers entre que qu quel quelle "
        "quels quelles qui quoi quand où comment pourquoi combien ce cet cette ces son sa ses leur leurs c n",
        "el la los las un una unos unas y e o no es son era eran fue fueron será está están ha han hay tiene tienen se "
        "de del a al en con por para sin sobre entre desde hasta que qué cuál cuáles quién quiénes cuándo dónde cómo "
        "cuánto cuánta cuántos cuántas su sus este esta estos estas lo le les",
        "il lo la i gli le l un uno una e o non è sono era erano fu ha hanno c ci si di del della dei degli delle "
        "dello dell a al alla ai alle in nel nella nei nelle con per da dal dalla su sul sulla tra fra che cosa chi "
        "quale quali qual quando dove come perché quanto quanta quanti quante suo sua questo questa",
        "de het een en of niet is zijn was waren wordt worden werd heeft hebben had kan mag moet er zich hij zij ze ik "
        "wij van voor op in aan met naar bij uit om tot over onder door te wat wie wanneer waar hoe hoeveel waarom "
        "welke welk dit dat deze die",
    )
)
HOW_MANY = re.compile(
    r"^\W*(?:wie ?viele?|wie (?:hoch|lange?|groß|schwer|breit|tief|weit|teuer|alt|schnell|laut|warm)|was kosten?t?"
    r"|combien|quel(?:le)? (?:est|était) l[ea'\u2019]\s?(?:prix|nombre|montant|poids|taille|hauteur|longueur|largeur"
    r"|tarif|superficie|population|durée|coût|âge)"
    r"|¿?(?:a |de )?cuánt[oa]s?|quant[oiae]|hoeveel|hoe (?:lang|hoog|groot|zwaar|oud|duur|breed|diep|ver|snel))\b",
    re.IGNORECASE,
)
WHEN = re.compile(
    r"^\W*(?:seit |bis |ab )?(?:wann|in welchem jahr|quand|en quelle année|cuándo|en qué año|quando|in che anno|wanneer"
    r"|in welk jaar)\b",
    re.IGNORECASE,
)
WHO = re.compile(r"^\W*(?:wer|wem|wen|qui|quién(?:es)?|chi|wie (?:is|was|zijn|waren|heeft))\s", re.IGNORECASE)


def grammar_in(words: Set[str], english: Set[str]) -> Set[str]:
    """The words of a question that carry grammar, in the language that most of them are of; none in English, whose
    words of grammar are ``english``."""
    held = max((words & language for language in _LANGUAGES), key=len)
    return held if len(held) > max(1, len(words & english)) else frozenset()
