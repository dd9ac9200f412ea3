"""Plain text, Markdown, notebooks, calendars, captions and the like in pieces of about 900 words, JSON and XML in
pieces of records; JSON Lines with a piece a row."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from vrag_ray.corpus.formats.calendars import read_calendar, unfolded
from vrag_ray.corpus.formats.encodings import decode_text
from vrag_ray.corpus.formats.json_records import json_rows, record_text, xml_rows
from vrag_ray.corpus.formats.media.subtitles import transcript
from vrag_ray.corpus.formats.named_rows import NamedRow, row_pieces, rows_in, with_named_rows
from vrag_ray.corpus.formats.notebook import notebook_text
from vrag_ray.corpus.formats.plain_markup import MARKUP_OF_SUFFIX, comment_spans, markup_tables, named_format
from vrag_ray.corpus.formats.references import (
    held_pictures,
    hidden_spans,
    is_held,
    picture_targets,
    struck_spans,
    without_code,
    without_held,
)
from vrag_ray.corpus.formats.source import Attachment, Opening
from vrag_ray.corpus.formats.unseen import hidden_notice, struck_notice
from vrag_ray.corpus.formats.web_encoding import markup_text
from vrag_ray.corpus.model import DecodedUnit, DecodeError, Probe, clean, title_from_name
from vrag_ray.corpus.sniff import Format
from vrag_ray.corpus.windows import LONGEST_WORD, WORD
from vrag_ray.types import Box, DocumentKind, Locator, MetaValue, PageText, PassageKind, undivided

PIECE_WORDS = 900
RECORD_WORDS = 140
"""Fewer than a window has by default, so that no window ends inside a record or a row."""
MOST_CHARS_OF_RECORDS = 16 * 2**20
"""Of JSON and XML that are read as records: they take ten times as much memory, and twice the time of a plain text."""
TEXT_FIELDS = ("text", "content", "contents", "body", "passage")
UID_FIELDS = ("uid", "id")
TITLE_CHARS = 200
HEAD_CHARS = 4096
"""From the beginning of an Org text, in which its title stands."""
LONGEST_META = 200
"""Characters of a value of a record that is metadata too."""

Span = tuple[int, int]

_PARAGRAPH = re.compile(r"\S.*?(?=\n[ \t\r]*\n|\Z)", re.DOTALL)
LONE_RETURN = re.compile(r"\r(?!\r*\n)")
_HEADING = re.compile(r"^#\s+(\S.*?)\s*#*\s*$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\s*(---|\+\+\+)[ \t]*\n(.*?)\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
"""What a Markdown text states of itself before it begins, in YAML or TOML."""
_STATED_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*(\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s>|\"'#][^\n]*)", re.MULTILINE)
_TEX_TITLE = re.compile(
    r"^[^%\n]{0,300}\\title\s{0,9}(?:\[[^\]]{0,300}\]\s{0,9})?\{((?:[^{}\\]|\\.|\{[^{}]{0,300}\}){0,600})\}",
    re.MULTILINE,
)
_TEX_COMMAND = re.compile(r"\\(?:thanks|footnote)\{[^{}]*\}|\\\\|\\[A-Za-z]+\*?[ \t]*|~")
_TEX_SIGN = re.compile(r"[{}]|\\(?=[&%$#_{}])")
_ASCIIDOC_TITLE = re.compile(r"^=[ \t]+(\S[^\n]*)", re.MULTILINE)
_UNDERLINED = re.compile(
    r"^(?:([=~^*#\"'+-])\1{2,}[ \t]*\n)?[ \t]?(\S[^\n]{0,200}?)[ \t]*\n([=~^*#\"'+-])\3{2,}[ \t]*$", re.MULTILINE
)
"""A heading above its rule, perhaps between two."""
_ORG_TITLE = re.compile(r"^#\+title:[ \t]*(\S[^\n]*)", re.MULTILINE | re.IGNORECASE)
_PAGE_END = r"(?:\s*(?:[-–(]? ?\d{1,4} ?[-–)]?\s*)?\f)"  # noqa: RUF001
"""A form feed, perhaps below the number of the page."""
_QUOTE_MARKS = r"(?:[ \t]*>(?:[ \t]?>)*[ \t]?)?"
"""Before each line of a text that a mail quotes."""
_LINE_END = re.compile(rf"(?<=[-\u2010])[ \t]*(?:\r?\n{_PAGE_END}?|\f)({_QUOTE_MARKS})([ \t]*)(?=[^\W\d_])")
"""Its groups are the quote marks and the indentation of the next line."""
_BREAK = re.compile(r"[\n\f]")
_QUOTED = re.compile(_QUOTE_MARKS)
_FIRST_HALF = re.compile(r"[(\"'“‘\[*_]*[^\W\d_]+(?:[-\u2010][^\W\d_]+)*[-\u2010]")  # noqa: RUF001
_SECOND_HALF = re.compile(r"(?=[^\W\d_]{2})[^\W\d_]+(?:[-\u2010'’][^\W\d_]+)*[^\w\s/-]*")  # noqa: RUF001
WRITTEN = re.compile(r"[^\W_]+(?:[-\u2010][^\W_]+)*")
_CODE = re.compile(r"[=<>{}\\|`]|;\s*$")
_TEX = re.compile(
    r"\\(?:document(?:class|style)|usepackage|begin|(?:sub)*section|chapter|emph|text\w\w|cite|ref|label)\b"
)
_TEX_MARKUP = re.compile(r"\$[^$\n]*\$|\\(?:[A-Za-z]+\*?|.)|[{}~]")
_TEX_BREAKS = re.compile(r"[^\W\d_]+(?:\\-[^\W\d_]+)+")
"""Where TeX may divide a word."""
_BIB = re.compile(r"^[ \t]*@[A-Za-z]+[ \t]*\{", re.MULTILINE)
_LETTER_CODE = re.compile(r"(?<!\\)\\u([0-9a-fA-F]{4})")
_TEX_LETTER = re.compile(
    r"(\{)?\\(?:([\"'`^~=.])[ ]?(?:\{\\?([A-Za-z])\}|\\?([A-Za-z]))|([uvHckr])\{\\?([A-Za-z])\}"
    r"|(ss|ae|AE|oe|OE|aa|AA|o|O|l|L)(?![A-Za-z])(?:\{\}|[ ])?)(?(1)\})"
)
"""A letter with an accent, ``{\\"u}``, ``\\'{e}`` or ``\\v{s}``, and one that TeX has a name for."""
_TEX_MARK = re.compile(r"(?<=[\w.,:;)}])~(?=[\w\\$({])|\\(?=[&%_#$])")
"""A blank at which no line ends, and what stands before a sign that means something else without it."""
_TEX_ACCENTS = {
    '"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a",
}  # fmt: skip
_TEX_NAMES = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł",
}  # fmt: skip
_KEY = re.compile(r"\s*[\w.\"'-]+:\s")
_WIDE_GAP = re.compile(r"\S(?: {3,}| *\t\s*)(?=\S)")
_BLANK_INSIDE = re.compile(r"[ \t]+(?=\S)")
LEAST_OF_A_LINE = 3
"""Words of a line whose last word is divided: shorter lines are lists, of prefixes for example."""


def divided_words(text: str, tables: Sequence[NamedRow]) -> list[NamedRow]:
    """The words that ends of lines or pages divide, whole on the first of their lines, also where both lines are quoted
    in a mail; and those of TeX without the places where it may divide them. Not in code, keys and ``tables``."""
    is_tex = _TEX.search(text) is not None
    places: list[tuple[int, int, str, str, str]] = []
    earlier = 0
    for line_end in _LINE_END.finditer(text):
        # Not from the begin of the text, which takes long where there are many lines.
        begin = max(text.rfind(mark, earlier, line_end.start()) for mark in "\n\f") + 1
        earlier = line_end.start()
        following_end = _BREAK.search(text, line_end.end())
        quote = _QUOTED.match(text, begin, line_end.start())
        assert quote is not None
        line = text[quote.end() : line_end.start()]
        following = text[line_end.end() : following_end.start() if following_end else len(text)]
        words = line.split()
        if quote[0].count(">") != line_end[1].count(">") or len(words) < LEAST_OF_A_LINE:
            continue
        before, after = words[-1], following.split(maxsplit=1)[0]
        cell = max((gap.end() for gap in _WIDE_GAP.finditer(line)), default=0)
        in_cells = len(line_end[2]) < cell or _WIDE_GAP.search(following) is not None
        is_code = any(_CODE.search(_TEX_MARKUP.sub("", part) if is_tex else part) for part in (line, following))
        if (
            _FIRST_HALF.fullmatch(before)
            and _SECOND_HALF.fullmatch(after)
            and not (in_cells or is_code or _KEY.match(following))
        ):
            indent = line_end[1] + line_end[2]
            places.append((line_end.start() - len(before), line_end.end() + len(after), before, after, indent))
    breaks = _TEX_BREAKS.finditer(text) if is_tex else ()
    rows = [NamedRow(word.start(), word.end(), word[0].replace("\\-", "")) for word in breaks]
    if not places:
        return rows
    within = zip([0, *(place[1] for place in places)], [*(place[0] for place in places), len(text)], strict=True)
    written = {word[0].lower() for start, end in within for word in WRITTEN.finditer(text, start, end)}
    last = 0
    for start, end, before, after, indent in places:
        whole = undivided(before, after, written)
        if whole is None or rows_in(tables, start, end) or start < last:
            continue
        # The next line begins with its next word.
        blank = _BLANK_INSIDE.match(text, end)
        last = blank.end() if blank else end
        rows.append(NamedRow(start, last, f"{whole}\n{indent}" if blank else whole))
    return sorted(rows, key=lambda row: row.start)


def tex_letters(text: str, others: Sequence[NamedRow]) -> list[NamedRow]:
    """The letters, blanks and signs that a text of TeX or BibTeX writes as commands, as what they are, and the letters
    that others write by their codes (``\\u00fc``); none in ``others``."""
    if "\\" not in text:
        return []
    if _TEX.search(text) is None and _BIB.search(text) is None:
        codes = [NamedRow(*match.span(), chr(int(match[1], 16))) for match in _LETTER_CODE.finditer(text)]
        return [row for row in codes if row.text.isprintable() and not rows_in(others, row.start, row.end)]
    letters = [NamedRow(*match.span(), _tex_letter(match)) for match in _TEX_LETTER.finditer(text)]
    letters += [NamedRow(*match.span(), " " * (match[0] == "~")) for match in _TEX_MARK.finditer(text)]
    return [row for row in letters if row.text != text[row.start : row.end] and not rows_in(others, row.start, row.end)]


def _tex_letter(match: re.Match[str]) -> str:
    if match[7]:
        return _TEX_NAMES[match[7]]
    letter = unicodedata.normalize("NFC", f"{match[3] or match[4] or match[6]}{_TEX_ACCENTS[match[2] or match[5]]}")
    return letter if len(letter) == 1 else match[0]


def split_pieces(text: str, words: int = PIECE_WORDS) -> list[Span]:
    """Character spans of at most ``words`` words, in order and disjoint, that hold every word of ``text``.

    Borders are paragraph borders where a paragraph fits into a piece, word borders where it does not.
    None is longer than that many of the longest words, however much of ``text`` is blank. Text without words is one
    piece.
    """
    pieces: list[Span] = []
    most, taken = words * (LONGEST_WORD + 1), 0
    for paragraph in _PARAGRAPH.finditer(text):
        runs = list(_runs(text, paragraph.span(), words))
        _, end, count = runs[0]
        if pieces and len(runs) == 1 and taken + count <= words and end - pieces[-1][0] <= most:
            pieces[-1] = (pieces[-1][0], end)
            taken += count
        else:
            pieces += [(start, end) for start, end, _ in runs]
            taken = runs[-1][2]
    return pieces or [(0, min(len(text), most))]


def _runs(text: str, span: Span, words: int) -> Iterator[tuple[int, int, int]]:
    """Where runs of at most ``words`` words begin and end in ``span``, and the number of their words."""
    start, end, count = *span, 0
    for word in WORD.finditer(text, *span):
        if count and (count == words or word.end() - start > words * (LONGEST_WORD + 1)):
            yield start, end, count
            count = 0
        if not count:
            start = word.start()
        end, count = word.end(), count + 1
    yield start, end, count


def check_size(opening: Opening) -> None:
    """Raises DecodeError for a text that is too large to be read whole."""
    if (size := opening.path.stat().st_size) > opening.limits.max_text_mb * 2**20:
        raise DecodeError(
            f"is a text of {size >> 20} MB, more than the limit of {opening.limits.max_text_mb} MB: split it, for "
            "example with `split -C 100M`, or raise corpus.limits.max_text_mb"
        )


class SpanSource(ABC):
    """An open text without pictures, of which each unit is a span of characters. ``what`` it is, its errors say."""

    def __init__(self, opening: Opening, what: str) -> None:
        check_size(opening)
        self._opening = opening
        self._what = what
        self._spans: list[Span] = []

    @abstractmethod
    def _shown(self, start: int, end: int) -> str:
        """What is read of the characters from ``start`` to ``end``."""

    def locator(self, unit: int) -> Locator:
        return Locator(span_start=self._spans[unit][0], span_end=self._spans[unit][1])

    def unit(self, unit: int) -> DecodedUnit:
        return DecodedUnit(unit, PassageKind.TEXT, self.locator(unit), self._shown(*self._spans[unit]))

    def page_text(self, locator: Locator) -> PageText:
        if locator.span_start is None or locator.span_end is None:
            raise DecodeError(f"is {self._what} and has no {locator}")
        text = self._shown(locator.span_start, locator.span_end)
        return PageText(self._opening.path.name, locator, text, words=(), width=0, height=0)

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes:  # noqa: ARG002
        raise DecodeError(f"is {self._what}: {locator} has no picture")

    def close(self) -> None:  # noqa: B027  No kind of text holds anything open.
        """Nothing is held open."""


class TextSource(SpanSource):
    """An open text file."""

    def __init__(self, opening: Opening, format_: Format = Format.TEXT) -> None:
        super().__init__(opening, "a text file")
        self._format = format_ = named_format(format_, opening.name)
        self._is_markdown = format_ in (Format.MARKDOWN, Format.NOTEBOOK)
        data, self._title = opening.path.read_bytes(), ""
        if format_ is Format.CALENDAR:
            decoded, self._title = read_calendar(data)
        else:
            decoded = markup_text(data) if format_ is Format.XML else decode_text(unfolded(data))
        # As many characters: old Macs ended lines so, and a page is cited by its places.
        self._text = LONE_RETURN.sub("\n", decoded.text)
        self._notices = [decoded.notice] if decoded.notice else []
        if format_ is Format.NOTEBOOK:
            self._read_notebook()
        if format_ is Format.SUBTITLES:
            self._read_captions()
        self._lines: list[int] = []
        self._named: list[NamedRow] = []
        self._is_of_records = False
        if format_ is Format.JSON_LINES:
            self._spans = self._rows()
            return
        if format_ in (Format.JSON, Format.XML):
            self._named = self._records()
            if self._is_of_records and (format_ is Format.XML or not self._named):
                # Other elements and their ends, and keys without a value, say nothing: places are those in the records.
                self._text = "".join(row.text for row in self._named)
        else:
            if self._is_markdown:
                hidden, count = hidden_spans(self._text)
            else:
                hidden = list(comment_spans(self._text, format_))
                count = sum(len(WORD.findall(self._text, start, end)) for start, end in hidden)
            self._text = _with_blanks(self._text, hidden)
            self._notices += [hidden_notice(count)] if count else []
            if struck := struck_spans(self._text):
                count = sum(len(self._text[start:end].split()) for start, end in struck)
                self._notices.append(struck_notice(count))
                self._text = _with_blanks(self._text, struck)
        self._spans = row_pieces(self._named, RECORD_WORDS) or split_pieces(self._text)
        if not self._named:
            tables = markup_tables(self._text, format_)
            rows = sorted([*tables, *divided_words(self._text, tables)], key=lambda row: row.start)
            self._named = sorted([*rows, *tex_letters(self._text, rows)], key=lambda row: row.start)

    def probe(self) -> Probe:
        if self._is_markdown:
            stated = _title_before(self._text) or _heading(self._text) or _underlined(self._text)
        else:
            is_of_words = self._format in (Format.TEXT, *MARKUP_OF_SUFFIX.values())
            stated = _title_within(self._text, self._format) if is_of_words else ""
        title = " ".join(clean(stated or self._title).split())[:TITLE_CHARS]
        pictures = picture_targets(self._text, markdown=True) if self._is_markdown else ()
        files = tuple(target for target in pictures if not is_held(target))
        return Probe(
            DocumentKind.TEXT,
            len(self._spans),
            title or title_from_name(self._opening.name),
            # A page is read again without the name of the file, from which the format was detected.
            meta={"format": str(self._format)} if self._format is not Format.TEXT else {},
            notices=tuple(self._notices),
            pictures=files,
        )

    def attachments(self) -> Iterator[Attachment]:
        return held_pictures(self._text, markdown=True) if self._is_markdown else iter(())

    def unit(self, unit: int) -> DecodedUnit:
        start, end = self._spans[unit]
        text, meta = with_named_rows(self._text, self._named, start, end), dict[str, MetaValue]()
        if self._format is Format.JSON_LINES:
            text, meta = parse_row(text, self._lines[unit])
        elif self._is_markdown:
            text = without_held(text)
        return DecodedUnit(unit, PassageKind.TEXT, self.locator(unit), clean(text), meta=meta)

    def _shown(self, start: int, end: int) -> str:
        """The characters of the span, rows of tables and records with the names of their values; of a row of JSON Lines
        that has a text, that text."""
        text = with_named_rows(self._text, self._named, start, end)
        if self._format is Format.JSON_LINES:
            text = row_text(text)
        elif self._is_markdown:
            text = without_held(text)
        elif self._format is Format.TEXT:
            # JSON Lines that were taken in before their format was written down are read so as well.
            text = text_of_row(text) or without_held(text)
        return clean(text)

    def _rows(self) -> list[Span]:
        spans: list[Span] = []
        start = 0
        for number, line in enumerate(self._text.split("\n"), 1):
            if line.strip():
                spans.append((start, start + len(line)))
                self._lines.append(number)
            start += len(line) + 1
        if not spans:
            raise DecodeError("has no rows: every line is empty; put a JSON object on each, or leave it out")
        return spans

    def _read_notebook(self) -> None:
        cells = notebook_text(self._text)
        if cells is None:
            self._is_markdown = False
            self._notices.append("read as plain text: it is no Jupyter notebook, or a damaged one")
        else:
            self._text = cells

    def _read_captions(self) -> None:
        words = transcript(self._text)
        if not words:
            self._notices.append("read as plain text: it has no caption with a time")
        self._text = words or self._text

    def _records(self) -> list[NamedRow]:
        """The records of JSON or XML; none of what is read as plain text, of which a notice states the reason."""
        if len(self._text) > MOST_CHARS_OF_RECORDS:
            most = MOST_CHARS_OF_RECORDS >> 20
            self._notices.append(f"read as plain text: {self._format} of more than {most} MB is not read as records")
            return []
        try:
            rows = xml_rows(self._text) if self._format is Format.XML else json_rows(self._text)
        except ElementTree.ParseError as error:
            line, column = error.position
            self._notices.append(f"read as plain text: it is not XML from line {line}, column {column + 1} on")
        except json.JSONDecodeError as error:
            self._notices.append(f"read as plain text: it is not JSON from its character {error.pos + 1} on")
        except RecursionError:
            self._notices.append(f"read as plain text: it is {self._format} that is nested too deeply")
        else:
            self._is_of_records = True
            return rows
        return []


def _title_before(text: str) -> str:
    """The title that stands before a Markdown text, "" where none does."""
    if (matter := _FRONT_MATTER.match(text)) is None or (title := _STATED_TITLE.search(matter[2])) is None:
        return ""
    return title[1].strip().strip("\"'")


def _title_within(text: str, format_: Format) -> str:
    """The title that a text of TeX, Org, AsciiDoc or reStructuredText states, or one with which a text begins; "" for
    any other."""
    if (title := _ORG_TITLE.search(text, 0, HEAD_CHARS)) is not None:
        return title[1]
    if format_ is Format.ASCIIDOC and (title := _ASCIIDOC_TITLE.search(text, 0, HEAD_CHARS)) is not None:
        return title[1]
    if underlined := _underlined(text, anywhere=format_ is Format.RST):
        return underlined
    if _TEX.search(text) is None or (title := _TEX_TITLE.search(text)) is None:
        return ""
    words = _TEX_SIGN.sub("", _TEX_COMMAND.sub(" ", _TEX_LETTER.sub(_tex_letter, title[1])))
    # Formulas are written with it, for example.
    return "" if "\\" in words else words


def _underlined(text: str, *, anywhere: bool = False) -> str:
    """The heading above a rule as long with which a text begins, or the first in its head; "" where there is none."""
    if anywhere:
        found = _UNDERLINED.finditer(text, 0, HEAD_CHARS)
    else:
        begin = _UNDERLINED.match(text, len(text) - len(text.lstrip()))
        found = iter((begin,) if begin is not None and (begin[3] == "=" or begin[1] == begin[3]) else ())
    return next((match[2] for match in found if len(match[0].split("\n")[-1].rstrip()) >= len(match[2])), "")


def _heading(text: str) -> str:
    """The first heading of the first level of a Markdown text; in code such a line is a comment."""
    shown = without_code(text) if "`" in text or "~" in text else text
    return next((heading[1] for heading in _HEADING.finditer(text) if shown[heading.start()] == "#"), "")


def _with_blanks(text: str, spans: Sequence[Span]) -> str:
    """``text`` with blanks in place of the ``spans``: everything else stays in its place, by which it is cited."""
    ends = [0, *(end for _, end in spans)]
    parts = [text[before:start] + " " * (end - start) for before, (start, end) in zip(ends, spans, strict=False)]
    return "".join([*parts, text[ends[-1] :]])


def text_of_row(candidate: str) -> str | None:
    """The text of a string that is a row of JSON Lines with a text; None for any other string."""
    if not candidate.startswith("{"):
        return None
    try:
        row = json.loads(candidate)
    except (ValueError, RecursionError):
        return None
    field = _text_field(row)
    return None if field is None else clean(row[field])


def row_text(row: str) -> str:
    """What a row of JSON Lines shows: its text, else its record; a row that cannot be read shows its characters."""
    try:
        return text_of_row(row) or record_text(row)
    except (ValueError, RecursionError):
        return row


def _text_field(row: dict[str, object]) -> str | None:
    return next((name for name in TEXT_FIELDS if isinstance(row.get(name), str)), None)


def parse_row(line_text: str, line: int) -> tuple[str, dict[str, MetaValue]]:
    """The text of a row of JSON Lines, or its record where no field is a text, and its other scalar fields, with its
    ``line``, and with ``uid`` where it has one.

    Nested values are left out of the metadata, which holds scalars only.

    Raises:
        DecodeError: naming the line: no JSON object, or one without a value.
    """
    try:
        row = json.loads(line_text)
        field = _text_field(row) if isinstance(row, dict) else None
        text = str(row[field]) if field is not None else record_text(line_text)
    except json.JSONDecodeError as error:
        raise DecodeError(f"line {line} is not JSON from its character {error.pos + 1} on: correct it") from error
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"line {line} is JSON nested too deeply, or with too long a number: correct it") from error
    if not isinstance(row, dict):
        raise DecodeError(f'line {line} is not a JSON object: write it as {{"name": …, "year": …}}')
    if not text and field is None:
        raise DecodeError(f"line {line} has no value: fill it in, or leave it out")
    uid = next((row[name] for name in UID_FIELDS if isinstance(row.get(name), str | int)), None)
    # The long texts of a record stand in its text already, and metadata is stored with each of its passages.
    longest = LONGEST_META if field is None else math.inf
    meta = {
        clean(name): _stored(value)
        for name, value in row.items()
        if name != field and _is_scalar(value) and len(str(value)) <= longest
    }
    named: dict[str, MetaValue] = {} if uid is None else {"uid": clean(str(uid))}
    return text, {**meta, **named, "line": line}


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _stored(value: MetaValue) -> MetaValue:
    return clean(value) if isinstance(value, str) else value
