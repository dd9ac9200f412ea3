"""From a question to its parts, each with the kind of answer it asks for. Rules only; what they miss stays whole."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, pairwise

from vrag_ray.policies.extractive import other_languages, other_scripts
from vrag_ray.policies.extractive.courtesy import without_courtesy
from vrag_ray.policies.extractive.follow_ups import YEAR, completed, is_follow_up, subject_of
from vrag_ray.policies.extractive.lexicon import (
    NUMBERED_NAMES,
    QUESTION_WORDS,
    Term,
    phrases,
    quantities,
    stem,
    terms,
    tokens,
)
from vrag_ray.policies.extractive.other_scripts import without_question_words
from vrag_ray.policies.extractive.sought import sought
from vrag_ray.policies.extractive.synonyms import marks_of_word, unit_of
from vrag_ray.types.months import MONTH


class AnswerKind(StrEnum):
    """What the shortest answer to a question looks like."""

    NUMBER = "number"
    DATE = "date"
    NAME = "name"
    MOMENT = "moment"
    TELEPHONE = "telephone"
    EMAIL = "email"
    WEBSITE = "website"
    EXPANSION = "expansion"
    """The words that an abbreviation stands for."""
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class Part:
    """One question. ``text`` reads as a question of its own; ``phrases`` stood in quotation marks.

    ``wants_passage``: no more is looked for than the place where the words stand, as with a sentence, or with a
    quotation and where it stands. ``pages`` are the numbers of the pages that it is about. ``sentence`` has the words
    of a part that asks nothing, in a row, "" for others. ``measure`` is the stem of the measure that is made of other
    figures, as in "the current ratio of Acme"; "" for other questions. ``quantities`` are the marks of those that
    the question is for (``synonyms.py``), none where it is for a count or for something else. ``sought`` are the
    words for it, and for the thing that has it (``sought.py``). ``is_count``: it is for how many things there are,
    and so for a figure without a unit. ``undivided`` is the clause of which this is a side, where ``joined`` may as
    well be a single name, as "cash and cash equivalents" is. ``about`` is the subject of the part before it, for
    which a pronoun of this part may stand: it is searched for, but an answer need not repeat it.
    """

    text: str
    kind: AnswerKind
    terms: tuple[Term, ...]
    phrases: tuple[str, ...] = ()
    wants_passage: bool = False
    pages: frozenset[int] = frozenset()
    sentence: str = ""
    measure: str = ""
    quantities: frozenset[str] = frozenset()
    sought: tuple[frozenset[str], ...] = ()
    is_count: bool = False
    undivided: str = ""
    joined: str = ""
    about: str = ""

    @property
    def is_yes_or_no(self) -> bool:
        """Whether the question is answered by the sentence that it makes a question of."""
        return _YES_OR_NO.match(self.text) is not None

    @property
    def is_contact(self) -> bool:
        """Whether a telephone number, or an address of mail or of the web, answers it."""
        return self.kind in _CONTACTS

    @property
    def is_for_a_list(self) -> bool:
        """Whether several things answer it: "Which ports …", "List the …"."""
        return _SEVERAL.match(self.text) is not None

    @property
    def is_negated(self) -> bool:
        """Whether the question is about what is not so."""
        # "No" is no negation of a question: "the telephone no".
        return not self.is_yes_or_no and _NOT.search(self.text) is not None

    @property
    def query(self) -> str:
        """What to search for: the question without its leading question words; a quoted phrase that is looked for."""
        if self.wants_passage:
            return " ".join(self.phrases) or self.text
        return f"{self.label} {self.about}".rstrip()

    @property
    def label(self) -> str:
        """The question without its leading question words."""
        return _LEAD.sub("", without_question_words(self.text)).strip(" ?.!\uff1f\u061f") or self.text

    @property
    def other_query(self) -> str:
        """The same in other words: informative words only, most specific first."""
        ordered = sorted(self.terms, key=lambda term: not term.specific)
        held = {token for phrase in self.phrases for token in tokens(phrase)}
        words = [*self.phrases, *(term.surface for term in ordered if term.surface not in held)]
        return " ".join([*words, self.about.casefold()]).rstrip()


_ASK = rf"(?:{QUESTION_WORDS}|is|are|was|were|did|does|do|can|in which|at what|at which)"
_TIMES = r"(?:time|year|date|day|month|point|minute|second|moment)"
_LEAD = re.compile(
    r"^\s*(?:and\s+)?(?:(?:please\s+)?(?:tell me|find|show me|list|give me)\s+)?"
    rf"(?:(?:(?:in|at|on) )?(?:what|which) {_TIMES}\b(?=\s+(?:is|are|was|were|did|does|do|has|have|had)\b)|"
    r"(?:in which|at what|at which|in what|what|which|who|whom|whose|when|where|why|"
    r"how(?:\s+(?:many|much|long|often|high|large|old|far|big|tall|fast|do i|can i))?)\b)?"
    r"(?:['\u2019](?:s|re|d)\b)?\s*(?:(?:is|are|was|were|did|does|do|has|have|had)\b)?\s*(?:the\s+)?",
    re.IGNORECASE,
)
_CLAUSES = re.compile(rf"[,]?\s+and\s+(?={_ASK}\b)", re.IGNORECASE)
_WORDS = r"(?:[^\s,?]+\s+){0,3}?[^\s,?]+"
_PAIR = re.compile(
    r"^(?P<head>.*\b(?:is|was|were|are|of|for|in|at|did|does|do|between|the|compare|higher|larger|lower|smaller|more|"
    r"less|better|higher:|larger:)[,:]?\s+(?:the\s+)?)"
    rf"(?P<left>{_WORDS})\s*,?\s+(?P<join>and|vs\.?|versus|compared (?:to|with)|or)\s+(?:the\s+)?"
    rf"(?P<right>{_WORDS})(?P<tail>(?:\s+(?:in|of|for|at|on|during|by|from|according)\b.*)?\??)$",
    re.IGNORECASE,
)
_PERIOD = re.compile(
    rf"(?:the\s+)?(?:(?:end|start|beginning) of\s+)?(?:{YEAR.pattern}|(?:FY|Q[1-4]|H[12]|{MONTH})\b)", re.IGNORECASE
)
_BETWEEN = re.compile(
    rf"^(?P<head>.*)\b(?:between|(?:from|in)(?=\s+{_PERIOD.pattern}))\s+(?:the\s+)?(?P<left>{_WORDS})"
    rf"\s+(?:and|(?:to|than in)(?=\s+{_PERIOD.pattern}))\s+(?:the\s+)?(?P<right>{_WORDS})"
    r"(?P<tail>(?:\s+(?:in|of|for|at|on|during|by|from|according)\b.*)?\??)$",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:differ|compar|chang|ris|rose|grow|grew|increas|improv|gain|drop|declin|decreas|fall|fell|shr[aiu]nk)\w*"
    r"|\b(?:higher|lower|larger|smaller|greater|more|less|fewer)\b",
    re.IGNORECASE,
)
_VERSUS = re.compile(
    rf"^(?P<head>)(?P<left>{_WORDS})\s+(?P<join>vs\.?|versus)\s+(?P<right>{_WORDS})"
    r"(?P<tail>(?:\s+(?:in|of|for|at|on|during|by|from)\b.*)?\??)$",
    re.IGNORECASE,
)
_MEDIUM = r"(?:video|clip|recording|film|footage|movie)"
_MOMENT = re.compile(
    rf"\b(?:when|where)\b.*\b{_MEDIUM}\b|\b{_MEDIUM}\b.*\bwhen\b|"
    rf"\bat (?:what|which) (?:time|point|minute)\b.*\b{_MEDIUM}\b|\b(?:what|which) (?:moment|timestamp|second)\b",
    re.IGNORECASE,
)
_DATE = re.compile(r"^\W*when\b|\b(?:what|which) (?:year|date|day|month|time)\b|\bsince when\b", re.IGNORECASE)
_DOCUMENT = (
    r"(?:documents?|files?|pdfs?|reports?|letters?|e-?mails?|slides?|presentations?|films?|videos?|notes"
    r"|dokumente?n?|dateie?n?|berichte?n?|briefe?n?|folien?|präsentatione?n?)"
)
_NO_SUBJECT = re.compile(
    rf"^\W*(?:which|what|welche[rs]?)\s+(?:of the\s+)?{_DOCUMENT}\s+(?:mentions?|contains?|describes?|discuss(?:es)?"
    r"|(?:talks?|is|are|says anything) about|refers? to|erwähnt|erwähnen|enthält|enthalten|nennt|nennen|beschreibt)\b"
    rf"|^\W*in\s+(?:which|what|welche[mnr])\s+{_DOCUMENT}\b|\b(?:described|discussed|erwähnt|genannt|beschrieben)\W*$|"
    r"^\W*wie (?:hoch|lautet|heißt|heißen)\b|\bbeträgt\b|"
    rf"\b(?:what|which) {_TIMES}\b|\b(?:(?:fiscal|financial|calendar) )?years?(?= (?:1[5-9]|20)\d\d\b)|"
    rf"\bfiscal(?= (?:19|20)\d\d\b)|\b(?:title|caption|name|topic)(?= of (?:the |of )*(?:{NUMBERED_NAMES})\w*\.? \d)",
    re.IGNORECASE,
)
"""Names the kind of answer, a year or a title, and not its subject."""
_GERMAN_GRAMMAR = re.compile(r"\b(?:in|wie|welche[mnrs]?)\b", re.IGNORECASE)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_PAGE = re.compile(rf"\b(?:(?:page|slide) (\d{{1,4}})|({'|'.join(_ORDINALS)}) (?:page|slide))\b", re.IGNORECASE)
_LEADING_FORM = re.compile(
    r"^\W*(?:(?:please )?(?:answer|reply|respond)\b[^:?\n]{0,80}:"
    rf"|bas(?:ing|ed?) your (?:judge?ments?|answers?|calculations?)\b[^?\n]{{0,120}}?,(?=\s+{_ASK}\b))\s+",
    re.IGNORECASE,
)
_CAN_I = r"\bhow (?:can|do|could|may|should) (?:i|we|one|you|they|people) (?:best )?"
_CONTACTS = {
    AnswerKind.TELEPHONE: re.compile(
        r"\b(?:(?:tele)?phone|fax|mobile|cell(?:phone)?|contact|hotline) (?:nos?\b\.?|numbers?\b)|"
        rf"\b(?:telephone|fax) (?:of|for)\b|{_CAN_I}(?:(?:tele)?phone|call|ring|fax)\b",
        re.IGNORECASE,
    ),
    AnswerKind.EMAIL: re.compile(
        rf"\be-?mails?(?: address(?:es)?\b|(?= (?:of|for)\b)|(?=\W*$))|{_CAN_I}(?:e-?mail|write to)\b", re.IGNORECASE
    ),
    AnswerKind.WEBSITE: re.compile(
        r"\b(?:web ?sites?|web ?pages?|home ?pages?|urls?|(?:web|internet) address(?:es)?)(?: address)?"
        r"(?=\s+(?:of|for)\b|\W*$)",
        re.IGNORECASE,
    ),
}
_ABBREVIATED = r"[\"'\u2018\u201c]?([A-Z][\w&.-]{0,10}[A-Z])s?\b[\"'\u2019\u201d]?"
_EXPANSIONS = (
    re.compile(
        rf"^\W*[Ww]hat\b.*?{_ABBREVIATED}\s+(?:is |are )?"
        r"(?:stand(?:s|ing)? for|(?:an |the )?(?:short|abbreviation|acronym) (?:of|for))(?:\s+(?:here|in)\b.*)?\W*$"
    ),
    re.compile(
        r"\b(?:[Ww]hat (?:does|do)|[Mm]eaning of|[Ff]ull (?:form|name) of)\s+(?:the\s+)?(?:\w+\s+)?"
        rf"{_ABBREVIATED}(?:\s+mean)?\W*$"
    ),
)
_BEGINS_REQUEST = re.compile(
    r"^\W*(?:and\s+)?(?:(?:at|by|on|under|with)\s+)?(?:please\s+)?"
    r"(?:what|which|how(?! (?:many|often|much))|where|give|tell|list|find|name)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"^\W*(?:who|whom|whose)\b", re.IGNORECASE)
_QUANTITIES = (
    "age|amount|area|average|budget|capacity|charge|costs?|count|demand|depth|distance|duration|efficiency|energy|"
    "expenditure|fare|fee|fraction|frequency|growth|height|income|investment|length|level|loss|mass|maximum|mean|"
    "median|minimum|number|output|percentage|population|power|pressure|price|production|profit|rate|ratio|revenue|"
    "salary|sales|score|share|size|speed|sum|temperature|total|turnover|value|volume|weight|width"
)
_QUANTITY = re.compile(
    r"\bhow (many|much|high|large|long|old|tall|big|fast|far|wide|deep|heavy)\b|"
    r"\b(?:what|which) (percentage|share|number|amount|fraction)\b|"
    r"^\W*(?:and\s+)?what (?:do|does|did|will|would)\b.* (cost)\b|"
    rf"\bwhat(?: (?:is|was|were|are)|['\u2019]s) (?:the |its |their )?(?:[\w-]+ ){{0,3}}?({_QUANTITIES})\b",
    re.IGNORECASE,
)
_FORMS = (
    (AnswerKind.NUMBER, (_QUANTITY, other_scripts.HOW_MANY, other_languages.HOW_MANY)),
    (AnswerKind.DATE, (_DATE, other_scripts.WHEN, other_languages.WHEN)),
    (AnswerKind.NAME, (_NAME, other_scripts.WHO, other_languages.WHO)),
)
_NEXT_WORD = re.compile(r"\s+(\w+)")
_WORD = re.compile(r"\w+")
_COUNTED = re.compile(r"\bhow many\b", re.IGNORECASE)


_YES_OR_NO = re.compile(
    r"^\W*(?:and\s+)?(?:is|are|was|were|do|does|did|has|have|had|can|could|may|must|should|will|would)\b(?!.*\bor\b)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"^\W*(?:and\s+)?(?:(?:please\s+)?(?:list|name|give|enumerate|outline)\b|(?:what|which)\s+(?:are|were)\b|"
    r"(?:what|which)\s+(?!(?:is|was|has|does)\b)(?:[\w-]+\s+){0,3}?[\w-]+[^\Ws]s\b(?!\s+(?:is|was|has|does)\b))",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"^\W*(?:and\s+)?what(?:\s+(?:is|was|are|were)|['\u2019]s)\s+(?:\S+\s+){0,5}?"
    r"(ratio|(?<!the )(?<!total )(?<!annual )turnover|turnover(?= of (?:the )?(?:staff|employee|personnel|worker|driver"
    r"|stock|inventor|asset|receivable|payable|capital))|margin|difference)s?\b"
    r"(?=\s+(?:of|in|for|at|on|as|during|from|by|per|between|is|was)\b|\W*$)",
    re.IGNORECASE,
)
"""Figures that are made of others: these, on a page, are no answer."""
_NOT = re.compile(r"\b(?:not|never|cannot)\b|n['’]t\b", re.IGNORECASE)  # noqa: RUF001
_NO = re.compile(r"\b(?:no|none|without)\b", re.IGNORECASE)
_QUESTION = re.compile(rf"^\W*(?:and\s+)?(?:{_ASK}|should|could|would|will|may|might|has|have|had)\b", re.IGNORECASE)
_REQUEST = re.compile(
    r"^\W*(?:please|tell|show|give|find|list|compare|name|explain|describe|summari[sz]e|quote|cite|state|identify|write|"
    r"calculate|compute|determine|provide|count|answer)\b",
    re.IGNORECASE,
)
_AUXILIARY = (
    r"(?:(?:is|are|was|were|did|does|do|has|have|had|can|could|will|would|should|may|might|must)(?:n['\u2019]t)?\b"
    r"|['\u2019](?:s|re|d|ll|ve)\b)"
)
_SUBORDINATE = re.compile(
    rf"^\W*(?:and\s+)?(?:(?:when|where|why|how)(?!\s*{_AUXILIARY})(?!\s+(?:to|come|about)\b)"
    r"(?!\s+(?:many|much|often|long|old|high|large|big|far|fast|tall|wide|deep|heavy)\b)"
    r"|what\s+(?:the|an?|its|their|his|her|our|my|we|they|he|she|it|you|i)\b)",
    re.IGNORECASE,
)
"""Begins a clause of a longer sentence, and no question. "Who" and "which" begin either, and are left out."""
_FORM = (
    r"\W*(?:please\s+)?(?:directly\s+|only\s+|just\s+)?(?:"
    r"(?:write|give|return|provide|format|round|express|state|report|output|present|put|show|list)\b(?:\s+[\w-]+){0,3}?\s+"
    r"(?:the|your|an?)\s+(?:final\s+)?(?:answers?|results?|response|reply)\s+(?:in|as|to|with|using|into|by|down|like)\b"
    r"|(?:the|your)\s+(?:final\s+)?(?:answer|response|reply)\s+(?:should|must|needs|has to)\b"
    r"|format\s+(?:it|them|the\s+\w+)\s+(?:as|in|like)\b"
    r"|if\b[^?]*\b(?:say|state|mention|note|indicate|answer|reply|respond|write|return)\s+"
    r"(?:so\b|that\b|not\b|no\b|none\b|n/?a\b|[\"'\u2018\u201c])"
    r"|(?:be|keep)\s+(?:[\w']+\s+){0,3}?(?:brief|concise|short|precise)\b"
    r"|(?:cite|name|give|include|add|mention)\s+(?:(?:your|the|all|page)\s+){0,2}"
    r"(?:sources?|pages?|page numbers?|references|citations?)\W*$"
    r"|(?:an[sw]{2}er|reply|respond)(?:\s+(?:only|just|simply|me|directly))?\s+"
    r"(?:briefly|concisely|precisely|in|with|using|as|by|yes|no|[\"'\u2018\u201c])"
    r"|(?:give|return|provide|output|write)(?:\s+me)?\s+(?:an?|the)\s+(?:[\w-]+\s+){0,2}"
    r"(?:integer|number|float|decimal|percentage|string|list)(?:\s+answer)?\W*$"
    r"|(?:calculate|compute|derive|work out|extract|base)\b(?:\s+\([^)]*\))?\s+"
    r"(?:what (?:was|is) asked|(?:the|your)\s+(?:answers?|results?|judge?ments?|calculations?))\b"
    rf"|(?!{_ASK}\b)[^?,;:]{{1,80}}\bis (?:here )?defined as\b"
    r"|e\.g\.|for example,?\s*\W*\[|\[[^\]]*\]\W*$)"
)
"""A sentence about the form of the answer, or a definition beside the question: no page says anything about it."""
_OF_FORM = re.compile(_FORM, re.IGNORECASE)
_SENTENCES = re.compile(rf"(?<=\?)(?:\s+|(?=[a-z]+\s))|;\s*|\n+|(?<=[.!?])\s+(?={_FORM})", re.IGNORECASE)
_MARKS = '"\u201c\u201d\u201e\u00ab\u00bb'
_QUOTED = re.compile(rf"[{_MARKS}]([^{_MARKS}]{{2,600}})[{_MARKS}]|(?<!\w)'([^']{{8,600}})'(?!\w)")
_WHERE_STATED = re.compile(
    r"^\W*(?:please\s+)?(?:where|on (?:what|which) page|"
    r"(?:what|which) (?:page|document|file|passage|sentence|source)s?|find|show me|quote|cite|locate)\b"
    r"(?=.*\b(?:says?|said|stat(?:e|es|ed|ement)|stands?|writes?|written|mention(?:s|ed)?|reads?|claim(?:s|ed)?|"
    r"quoted?|appears?|occurs?|finds?|found|contains?|passage|sentence|phrase|words)\b)",
    re.IGNORECASE,
)
LEAST_WORDS_OF_A_SENTENCE = 4


def _is_statement(question: str) -> bool:
    """Whether the text is no question: no question mark, question word or request.

    A sentence may begin with a question word, too, which its full stop and the order of its words show: "When the fog
    lifted, the boats left." A question that is typed with a full stop has an auxiliary verb there: "When was it built."
    """
    if has_question_mark(question) or _REQUEST.search(question):
        return False
    return not _QUESTION.search(question) or (ends_in_a_stop(question) and bool(_SUBORDINATE.match(question)))


def has_question_mark(text: str) -> bool:
    """Whether a question mark of any script stands in ``text``."""
    return any(mark in text for mark in "?\uff1f\u061f")


def ends_in_a_stop(text: str) -> bool:
    """Whether ``text`` ends as a sentence does that is no question."""
    return text.rstrip(" )").endswith((".", "!", "\u3002"))


def wants_passage(question: str) -> bool:
    """Whether the place of a sentence or a quotation is looked for, rather than something about a thing."""
    rest = _QUOTED.sub(" ", question)
    if rest != question:
        return not any(map(str.isalnum, rest)) or _WHERE_STATED.search(rest) is not None
    return _is_statement(question) and ends_in_a_stop(question)


def parts(question: str, *, limit: int) -> tuple[Part, ...]:
    """The sub-questions of ``question``, in order, at most ``limit``; the question itself where it has one part."""
    question = without_courtesy(question)
    whole = " ".join(question.split())
    if wants_passage(whole):
        return (passage_part(whole),)
    sentences = _SENTENCES.split(_LEADING_FORM.sub("", question))
    sentences = [sentence for sentence in sentences if not _OF_FORM.match(sentence)] or sentences
    clauses = [clause.strip() for sentence in sentences for clause in _CLAUSES.split(sentence)]
    clauses = list(accumulate(clauses, lambda before, clause: completed(before, clause) or clause))
    sides = {text: (clause, joined) for clause in clauses for text, joined in _sides(clause)}
    sides = {text: of for text, of in sides.items() if any(map(str.isalnum, text))}
    if not 1 <= len(sides) <= limit:
        sides = {whole: (whole, "")}
    moment = bool(_MOMENT.search(whole))
    divided = [
        replace(part_of(text, in_moment=moment), undivided=clause, joined=joined)
        for text, (clause, joined) in sides.items()
    ]
    divided[1:] = [
        replace(part, about=subject_of(before.text)) if is_follow_up(part.text) else part
        for before, part in pairwise(divided)
    ]
    distinct = {part.other_query: part for part in reversed(divided)}
    return tuple(reversed(distinct.values()))


def passage_part(text: str) -> Part:
    """The search for the place where the quotations of ``text`` stand or, where it has none, all of it."""
    quoted = tuple(" ".join((double or single).split()) for double, single in _QUOTED.findall(text))
    return Part(text, AnswerKind.STATEMENT, terms(" ".join(quoted) or text), quoted, wants_passage=True)


def part_of(text: str, *, in_moment: bool = False) -> Part:
    """A question that is not divided any more. ``in_moment``: it stands beside a question for a moment of a video."""
    measure = stem(match[1].casefold()) if (match := _MEASURE.match(text)) is not None else ""
    # Sales are no stock turnover.
    subject = tuple(replace(term, others=frozenset()) if term.stem == measure else term for term in _terms(text))
    kind = _kind(text, in_moment=in_moment)
    return Part(
        text,
        kind,
        subject,
        phrases(text),
        pages=frozenset(int(page) if page else _ORDINALS.index(nth.lower()) + 1 for page, nth in _PAGE.findall(text)),
        sentence=_sentence(text),
        measure=measure,
        quantities=_quantities(text),
        is_count=_is_count(text),
        sought=sought(text, subject),
    )


def _quantities(text: str) -> frozenset[str]:
    match = _QUANTITY.search(text)
    if match is None:
        return frozenset()
    # "How many kilometres" is for kilometres.
    counted = _NEXT_WORD.match(text, match.end())
    return quantities(next(filter(None, match.groups()))) | (marks_of_word(counted[1].casefold()) if counted else set())


def _is_count(text: str) -> bool:
    """Whether the question is for how many things there are, and for none of the units that it names."""
    counted = _COUNTED.search(text)
    return counted is not None and not any(map(unit_of, _WORD.findall(text, counted.end())))


def _terms(text: str) -> tuple[Term, ...]:
    """The words of the subject: no words for the kind of answer, and no numbers of pages."""
    if abbreviation := abbreviation_in(text):
        return terms(abbreviation)
    contact = _contact(text)
    subject = _CONTACTS[contact].sub("", text) if contact is not None else text
    return terms(_PAGE.sub("", _NO_SUBJECT.sub(_grammar_of, subject)))


def _grammar_of(match: re.Match[str]) -> str:
    """The words of what names no subject by which the language of the question is known."""
    return " ".join(_GERMAN_GRAMMAR.findall(match[0]))


def abbreviation_in(question: str) -> str:
    """The abbreviation of which ``question`` is for the words; empty where it is for something else."""
    expansion = next((match for pattern in _EXPANSIONS if (match := pattern.search(question)) is not None), None)
    return expansion[1] if expansion is not None else ""


def _contact(text: str) -> AnswerKind | None:
    """The kind of answer where a telephone number, an address of mail or of the web is looked for."""
    if not _BEGINS_REQUEST.match(text):
        return None
    return next((kind for kind, pattern in _CONTACTS.items() if pattern.search(text)), None)


def is_negated(text: str) -> bool:
    """Whether a sentence says of something that it is not so."""
    return _NOT.search(text) is not None or _NO.search(text) is not None


def _sentence(text: str) -> str:
    words = tokens(text) if _is_statement(text) else []
    return " ".join(words) if len(words) >= LEAST_WORDS_OF_A_SENTENCE else ""


def asks_for_a_cell(part: Part) -> bool:
    """Whether a figure in a table or chart could answer: the question is for a quantity or a time, or has a number."""
    return part.kind in (AnswerKind.NUMBER, AnswerKind.DATE) or (
        part.kind is AnswerKind.STATEMENT
        and any(term.stem.isdigit() for term in part.terms)
        and not re.match(r"\W*(?:which|who|whom|whose|where|why)\b", part.text, re.IGNORECASE)
    )


def _sides(clause: str) -> list[tuple[str, str]]:
    """``What was the cost of A and B in 2022?`` asks two things that share head and tail: each, with ``A and B``."""
    if any(mark in clause for mark in '"“”«»'):
        return [(clause, "")]
    if (between := _BETWEEN.match(clause)) is not None:
        head, left, right, tail = between.group("head", "left", "right", "tail")
        if not _COMPARES.search(head):
            # A distance between two places is that of neither, and a sum between two years too.
            return [(clause, "")]
        if _PERIOD.match(left) and _PERIOD.match(right):
            # The value of each period. A year at the end is that of the second alone.
            of_right = tail if YEAR.search(left) and YEAR.search(tail) else ""
            return [(f"{head}in {left}{tail.removeprefix(of_right)}", ""), (f"{head}in {right}{tail}", "")]
    pair = _VERSUS.match(clause) or _PAIR.match(clause)
    if pair is None:
        return [(clause, "")]
    join = pair["join"].casefold()
    if join == "or" and not re.match(r"\W*(?:which|who|what)\b", clause, re.IGNORECASE):
        return [(clause, "")]
    joined = f"{pair['left']} {pair['join']} {pair['right']}" if join == "and" else ""
    return [(f"{pair['head']}{side}{pair['tail']}", joined) for side in (pair["left"], pair["right"])]


def _kind(text: str, *, in_moment: bool) -> AnswerKind:
    if _MOMENT.search(text) or (in_moment and _DATE.search(text)):
        return AnswerKind.MOMENT
    if (contact := _contact(text)) is not None:
        return contact
    if abbreviation_in(text):
        return AnswerKind.EXPANSION
    return next((kind for kind, forms in _FORMS if any(form.search(text) for form in forms)), AnswerKind.STATEMENT)
