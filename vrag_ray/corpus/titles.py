"""What can be the title of a document, and which lines of its first page are one. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce

from vrag_ray.corpus.model import UNREADABLE, clean, letters_in
from vrag_ray.types.months import MONTH
from vrag_ray.types.page_breaks import continued

LONGEST_TITLE = 200
SHORTEST_TITLE = 3
MOST_SIZES = 6
"""How many sizes of type, from the largest down, are tried for a headline."""
LARGER = 1.05
"""A headline below the largest type is set this much larger than most of the page."""
MOST_UNREADABLE = 0.1
"""Share of characters of a title that say nothing."""
_DATE = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.? (?:de )?)?{MONTH}\.?(?: \d{{1,2}}(?:st|nd|rd|th)?,?)?(?:,? (?:de )?\d{{4}})?"
_NO_TITLES = (
    # What programs put there: the file's name, or that there is none.
    r".*untitled.*|(?:microsoft )?(?:word|powerpoint|excel) ?-.*|(?:slide|page|document|presentation) ?\d*",
    r"powerpoint.pr[aäe]sentat(?:ion|ie)|pr[eé]sentation powerpoint|presentaci[oó]n de powerpoint",
    r"\(?(?:anonymous|unspecified|unknown|no ?title|title|none|null|n/a|stdin)\)?",
    r"about:blank|full page (?:photo|fax print)|camscanner.*",
    r"(?:scanned|new|neues|nouveau|nuevo|pdf) (?:document|dokument|documento)(?: ?\(?\d+\)?)?",
    r".*\.(?:dvi|tex|do[ct][xm]?|pp[ts][xm]?|xl[st][xmb]?|od[tpsg]|rtf|indd|qxd|pdf|e?ps|x?html?|txt|csv|xml|rpt)",
    r".*\.(?:vsdx?|mpp|dwg|cdr|psd|jpe?g|png|tiff?|bmp|gif|eml|msg|prn|xps)",
    # Stamps and numbers of archives and offices: arXiv, EDGAR, DOI, and codes without a blank in them.
    r"arxiv ?: ?\S+(?: \[\S+\])?.*|(?:\w+: ?)?(?:https?://|www\.|doi:? ?)\S*",
    r"(?:accession (?:no\.?|number):? ?)?\d{10}-\d{2}-\d{6}|\S*\d{4}\S*|[\w-]*_[\w-]*\d[\w-]*|form ?\d\d?-[a-z]{1,2}",
    # The letterhead of the office, above the name of who reports to it.
    r"(?:united states )?securities and exchange commission.*|united states",
    # Its address, and that of anyone else in America.
    r".*\b(?:[a-z]{2}|[a-z]\.[a-z]\.) \d{5}(?:-\d{4})?",
    r".{0,4}(?:annual|quarterly|transition|current) report pursuant to section .*",
    # The same in other languages.
    r"(?:unbenannt|sans titre|sin t[ií]tulo|senza titolo|namnl[oö]s|bez (?:n[aá]zvu|tytu[lł]u)|naamloos)[-_ ]?\d*",
    r"(?:dokument|documento?|präsentation|mappe|classeur|layout|seite|scan|bild|image|img|untitled|book) ?-?\d*",
    r"powerpoint presentation|pr[eé]sentation powerpoint|(?:present|präsent)ation\d*|pii: ?\S+|<.*>",
    # Stamps over the text, and sums of money.
    r"draft|confidential|strictly confidential|copy|original|void|approved|paid|entwurf|vertraulich|kopie|confidentiel",
    r"[-+]?(?:[$€£¥]|[A-Z]{3})? ?\d[\d.,' ]*(?:[$€£¥%]|[A-Z]{3})?",
    # Furniture: page numbers, a table of contents, dates.
    r"(?:table of )?contents|(?:page|p\.|seite|sheet) ?\S{1,6}(?: (?:of|von|/) ?\S{1,6})?|\d+ (?:of|/) \d+",
    rf"{_DATE}|\d{{1,4}}[-./]\d{{1,2}}[-./]\d{{1,4}}|(?:as of|date:?) .{{0,4}}{_DATE}",
)
_NO_TITLE = re.compile("|".join(f"(?:{pattern})" for pattern in _NO_TITLES), re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.;][^\w\s]*(?:\s*[^\w\s]+)*$")
_BOXES_TO_TICK = "☐☑☒□■✓✔✗✘"
_TICKED = re.compile(r"x |\[[ xX]?\] ?|[þý¨] ")
"""Boxes to tick in letters: those of old symbol fonts are read so."""


def is_title(text: str) -> bool:
    """Whether ``text`` can name a document: no file's name, stamp, number, date or page furniture."""
    flat = " ".join(text.split())
    return (
        SHORTEST_TITLE <= len(flat) <= LONGEST_TITLE
        and any(map(str.isalpha, flat))
        # The end of a sentence in large type, and a line of a form.
        and not (flat[0].islower() and _SENTENCE_END.search(flat))
        and flat[0] not in _BOXES_TO_TICK
        and _TICKED.match(flat) is None
        and len(UNREADABLE.findall(flat)) <= MOST_UNREADABLE * len(flat)
        and _NO_TITLE.fullmatch(flat) is None
    )


def headline(lines: Sequence[tuple[float, str]]) -> str | None:
    """The first run of ``lines`` (size of type, text) in the largest type that is a title; None where none is.

    Type below the largest counts where it is larger than that of most of the page.
    """
    letters: Counter[float] = Counter()
    for size, text in lines:
        letters[round(size, 1)] += letters_in(text)
    sizes = sorted({size for size, text in lines if text.strip()}, reverse=True)
    common = letters.most_common(1)[0][0] if letters else 0.0
    tried: list[float] = []
    for largest in sizes:
        if tried and (largest > 0.95 * tried[-1] or len(tried) == MOST_SIZES):
            continue
        if tried and largest < LARGER * common:
            break
        upper = 0.95 * tried[-1] if tried else float("inf")
        tried.append(largest)
        is_large = [0.95 * largest < size <= upper for size, _ in lines]
        first = is_large.index(True)
        length = next((n for n, large in enumerate(is_large[first:]) if not large), len(lines) - first)
        run = [text for _, text in lines[first : first + length]]
        title = " ".join(clean(reduce(continued, run)).split())
        if len(run) < len(lines) and is_title(title):
            return title
    return None
