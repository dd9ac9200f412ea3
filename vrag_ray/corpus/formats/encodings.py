"""Which encoding a text file is in: UTF-8 and marked Unicode are read as they say, any other is detected.

A detector is only as good as its idea of what a text looks like. Here that is the alphabet of a language: decoded by
the right encoding, the letters beyond ASCII are all of one language, small where they stand inside a word, and Chinese,
Japanese and Korean characters are common ones. That holds from a handful of letters on, where statistics of byte pairs
(charset-normalizer) guess: that library is called for what no alphabet here explains.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from vrag_ray.corpus.model import DecodeError

_NAMED = re.compile(r"read as (\S+): it is not UTF-8")
LOOKED_AT = 50_000
"""Bytes of a file that decide its encoding."""
SCORED = 2_000
"""Characters beyond ASCII that are scored: more would not change the result."""
LONGEST_QUOTATION = 400
"""Characters between two quotation marks."""
CLEARLY_RIGHT = 8
"""Right characters beyond ASCII, to each damaged one, in a text that is UTF-8 whatever else it may be."""
MOST_STRAY = 0.02
"""Share of the characters beyond ASCII that may be damaged in a text that is UTF-8 otherwise."""
MOST_CONTROL = 0.01
"""Share of control characters above which a file is no text."""
FEW_CONTROL = 3
"""Control characters that a short text may hold: a bell, or the marks of the ends of a message."""
MOST_OF_FEW = 1 / 8
"""Their share of a text at most."""
PLAUSIBLE = 0.6
"""Mean score of the characters beyond ASCII below which an encoding is not believed."""

UNLIKELY = 0.88
"""Share of the best score below which an encoding is not believed though the text states it."""
SHORTEST_UNMARKED = 16
"""Bytes of Chinese or Japanese in UTF-16 that are distinguished from other encodings without a mark and without a line
end."""

LEAST_ZEROS = 1 / 4
"""Share of zero bytes in UTF-16 whose bytes are all ASCII; Latin letters in it have one each."""

EXTENSIONS = {
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
}
"""What programs of Windows write, and browsers read, under the name of an older encoding (by Python's names): the same
with more characters."""
_CONTROL = re.compile(r"[\x00-\x07\x0e-\x1a]")
"""Without the separators of files, groups, records and units (0x1C to 0x1F), which part words."""
_ASCII_WITH_ZEROS = re.compile(rb"[\0\t-\r\x1b-\x7e]*")
_CUT_CHARACTER = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
"""The beginning of a character of UTF-8 where a text is cut off."""
_END_OF_DOS_FILE = re.compile(rb"\x1a[\x1a\0]*\Z")
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_JAPANESE_ESCAPE = re.compile(rb"\x1b\$[@B]")
_WESTERN = (
    "äöüß", "àâæçèéêëîïôœùûüÿ", "áéíñóúü¿¡", "áâãàçéêíóôõú", "àèéìíòóùú", "åäöæøé", "éëïèöüó", "áéíúýþæöð",
    "àçèéíïòóúü",
)  # fmt: skip
_CENTRAL = ("ąćęłńóśźż", "áčďéěíĺľňóôŕřšťúůýžä", "áéíóöőúüű", "ăâîșțşţ", "čćđšž", "äöüß")
_CYRILLIC = ("абвгдежзийклмнопрстуфхцчшщъыьэюяё", "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя", "абвгдђежзијклљмнњопрстћуфхцчџш")
_FREQUENT = frozenset("оеаинтсрвлкмαοιετνσςηρπκיוהלארתבמשנاليمنورتبعد")
"""The commonest letters of the alphabets that are not Latin."""
_GREEK = ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",)
_HEBREW = ("אבגדהוזחטיךכלםמןנסעףפץצקרשת",)
_ARABIC = ("ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژگ،؛؟",)
_MARKS_OF_TYPE = frozenset("“”‘’„‚–—…«»‹›•·§°€£©®™№ ½¼¾")
_CLOSED_BY = {"‘": "’", "‚": "‘’", "“": "”", "„": "“”", "‹": "›", "’": ""}
_INSIDE_WORDS = frozenset("’–—·")
_SUPERSCRIPTS = frozenset("²³¹ªº´`µ×")
_SIGN_IN_PLACE = re.compile(
    r"""(?<![^\W\d_]) (?: [±¼½¾¦¬¶](?![^\W\d_]) | §(?=[\s\d§]) | [£¥](?=\s?\d) | ©(?=[\s\d])
            | µ(?=(?:[A-Za-z]|mol|Pa|Ci|Sv|Gy|Hz|Bq|eq)?(?![^\W\d_])) )
        | (?:(?<=\d)|(?<=\d[ ]))¢(?!\w)
        | (?:(?<=[\d)])|(?<=\b[A-Za-z])|(?<=\b[cdkmµ]m)|(?<=\bft)|(?<=\bin))[²³](?!\w) | (?<=[\d)])¹(?!\w)
        | (?<=[\w\s])®(?!\w)
        | (?:(?<=\d)|(?<=\d[ ]))×(?=[ ]?\d)
    """,
    re.VERBOSE,
)
"""Signs where they stand in texts. In other encodings the bytes of most are letters, which stand beside letters."""
_BEYOND = re.compile(r"[^\x00-\x7f]")
_IN_THREES = re.compile(r"[^\x00-\x7f]{3}")
_FREQUENT_HANGUL = frozenset("이다는에을의가고하지은로를도어서한사니기자습까있그해대인일나")
_FREQUENT_HANZI = frozenset(
    "的一是不了在有人我他这個个们中来來上大为為和国國地到以说說时時要就出会會可也你对對生能而子那得于著着下自之年发發后後里裡"
)

_FREQUENT_KANJI = frozenset(
    "一二三四五六七八九十百千万年月日時分人大中小上下東西南北京都府県市区町村山川田本名前氏住所地番号電話数量合計金額円価"
    "会社事業部長員学校生高木水内外国新品種売入出総平均男女工場車道港島海野原松藤井明正面積口駅線店"
)
"""Of texts and of tables, whose cells are names, places and heads."""
LEAST_FREQUENT = 0.2
"""Share of these from which on a text without kana is Japanese in EUC: by chance it is 0.05."""


@dataclass(frozen=True, slots=True)
class DecodedText:
    """The text of a file, and what was guessed to read it ("" where nothing was)."""

    text: str
    notice: str = ""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An encoding, how the characters it gives are scored (0 to 1 a text), and how much less likely it is at best."""

    name: str
    score: Callable[[str], float]
    prior: float = 1.0


def decode_text(data: bytes) -> DecodedText:
    """The text of a file in UTF-8, or in an encoding that is detected, with a notice.

    Raises:
        DecodeError: binary data, damaged text, or an encoding that cannot be detected.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    if encoding:
        try:
            return _as_text(data.decode(encoding))
        except UnicodeDecodeError as error:
            raise DecodeError(
                f"is not {encoding.upper()} from byte {error.start} on: it is damaged or cut short; get the whole "
                "file again"
            ) from error
    head = data[:LOOKED_AT]
    if wide := _unmarked_unicode(head):
        return _read_as(data, wide)
    data = _END_OF_DOS_FILE.sub(b"", data) or data
    head = data[:LOOKED_AT]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _nearly_utf8(data) or _mixed(data) or _detected(data, head, error.start)
    if _JAPANESE_ESCAPE.search(data) and _fits(head, "iso2022_jp"):
        return _read_as(data, "iso2022_jp")
    return _as_text(text)


def _as_text(text: str, notice: str = "", few: int = FEW_CONTROL) -> DecodedText:
    """``text``, unless it holds more control characters than any text does; ``few`` are always allowed."""
    first = _CONTROL.search(text)
    if first is not None and _is_binary(text, few):
        raise DecodeError(
            f"holds binary data (character {ord(first[0])} at {first.start()}) and is no text: name it by what it is, "
            "or leave it out"
        )
    return DecodedText(text, notice)


def _is_binary(text: str, few: int = FEW_CONTROL) -> bool:
    count = len(_CONTROL.findall(text))
    return count > MOST_CONTROL * len(text) and (count > few or count > MOST_OF_FEW * len(text))


def _read_as(data: bytes, encoding: str) -> DecodedText:
    text = data.decode(encoding, "replace")
    notice = f"read as {shown(encoding)}: it is not UTF-8"
    if lost := text.count("\ufffd"):
        notice += f", and {lost} of its characters are damaged"
    return _as_text(text, notice)


def encoding_in(notices: Iterable[str]) -> str:
    """The encoding in which a text was read, by its notices; UTF-8 where none names another."""
    return next((named[1] for notice in notices if (named := _NAMED.match(notice))), "UTF-8")


def shown(encoding: str) -> str:
    """The name of an encoding as people and ``iconv`` write it."""
    return encoding.upper().replace("_", "-")


def _nearly_utf8(data: bytes) -> DecodedText | None:
    """UTF-8 with a few damaged characters; None where the bytes may be of another encoding."""
    beyond, stray = _in_utf8(data)
    return _with_damage(data) if beyond and stray <= MOST_STRAY * (beyond + stray) else None


def _in_utf8(data: bytes) -> tuple[int, int]:
    """How many characters beyond ASCII are right in UTF-8, and how many are damaged; one cut at the end is neither."""
    text = _CUT_CHARACTER.sub(b"", data).decode("utf-8-sig", "replace")[: LOOKED_AT * 10]
    stray = text.count("\ufffd")
    return sum(not char.isascii() for char in text) - stray, stray


def _is_mostly_utf8(data: bytes) -> bool:
    """Whether more characters are right in UTF-8 than damaged, and no other encoding gives a likely text: in a few
    words of Chinese, pairs of bytes may be right in UTF-8 by chance."""
    beyond, stray = _in_utf8(data)
    if beyond >= max(CLEARLY_RIGHT, CLEARLY_RIGHT * stray):
        return True
    return beyond > stray and _likeliest(data[:LOOKED_AT])[0] < PLAUSIBLE


def _with_damage(data: bytes) -> DecodedText:
    text = data.decode("utf-8-sig", "replace")
    stray = text.count("\ufffd")
    return _as_text(text, f"{stray} of its characters are damaged: it is not UTF-8 throughout")


def _mixed(data: bytes) -> DecodedText | None:
    """UTF-8 in some lines and another encoding in others, as where files were put together; None where it is not so.

    A line in UTF-8 may have damaged characters where the whole text is UTF-8 mostly.
    """
    lines = data.split(b"\n")
    may_be_damaged = _is_mostly_utf8(data)
    utf8 = [_is_utf8_line(line) or (may_be_damaged and _is_mostly_utf8(line)) for line in lines]
    if all(utf8):
        return _with_damage(data)
    beyond = [not line.isascii() for line in lines]
    if not any(map(bool.__and__, utf8, beyond)):
        return None
    rest = b"\n".join(line for line, fits in zip(lines, utf8, strict=True) if not fits)
    try:
        decoded = _detected(rest, rest[:LOOKED_AT], 0)
    except DecodeError:
        return _with_damage(data) if may_be_damaged else None
    others = iter(decoded.text.split("\n"))
    text = "\n".join(
        line.decode("utf-8", "replace") if fits else next(others, "") for line, fits in zip(lines, utf8, strict=True)
    )
    return _as_text(text, f"{utf8.count(False)} of its lines are not UTF-8: {decoded.notice.partition(':')[0]}")


def _is_utf8_line(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _detected(data: bytes, head: bytes, start: int) -> DecodedText:
    best, name = _likeliest(head)
    if best < PLAUSIBLE:
        # Binary data has control characters in every encoding.
        _as_text(head.decode("latin-1"), few=0)
        name = "cp1252" if _has_signs_only(head) else _guessed(head)
    if not name:
        raise DecodeError(
            f"is not UTF-8 from byte {start} on, and its encoding could not be detected: it is damaged, or convert it "
            "with `iconv -f ENCODING -t UTF-8`, where ENCODING is what it was written in"
        )
    return _read_as(data, name)


def _likeliest(head: bytes) -> tuple[float, str]:
    """The best score that an encoding has, and its name."""
    scored = []
    for candidate in _CANDIDATES:
        # A head may end inside a character.
        text, name = _in_candidate(head, candidate, "ignore" if len(head) == LOOKED_AT else "replace")
        if "\ufffd" in text or _is_binary(text, few=0):
            continue
        scored.append((candidate.score(text) * candidate.prior, name))
    return max(scored, key=lambda pair: pair[0], default=(0.0, ""))


def _in_candidate(head: bytes, candidate: _Candidate, errors: str) -> tuple[str, str]:
    """The text in an encoding, or in its extension where it fits that alone; and the name of its encoding."""
    name, extension = candidate.name, EXTENSIONS.get(codecs.lookup(candidate.name).name)
    if extension and not _fits(head, name) and _fits(head, extension):
        name = extension
    return head.decode(name, errors), name


def is_unlikely(data: bytes, encoding: str) -> bool:
    """Whether ``data`` in that encoding is no language: letters of the wrong case, or of another alphabet.

    Of encodings without an alphabet here nothing is known.
    """
    head = data[:LOOKED_AT]
    stated, scores = codecs.lookup(encoding).name, dict[str, float]()
    for candidate in _CANDIDATES:
        text, name = _in_candidate(head, candidate, "replace")
        if name != candidate.name and codecs.lookup(name).name == stated:
            # What the extension alone has is in no common row.
            text = "".join(char for char in text if char.isascii() or _fits_char(char, candidate.name))
            if text.isascii():
                return False
        if "\ufffd" not in text:
            scores[codecs.lookup(name).name] = candidate.score(text) * candidate.prior
    return stated in scores and scores[stated] < UNLIKELY * max(scores.values())


def _guessed(head: bytes) -> str:
    """What charset-normalizer takes it for, "" where it has no idea."""
    from charset_normalizer import from_bytes

    match = from_bytes(head).best()
    return "" if match is None or match.encoding in ("ascii", "utf_8") else match.encoding


def _unmarked_unicode(head: bytes) -> str:
    """UTF-16 or UTF-32 without a byte order mark; "" where the bytes are neither."""
    if head.count(0) < LEAST_ZEROS * len(head) and _ASCII_WITH_ZEROS.fullmatch(head):
        # A text with a few zero bytes, at its end for example: pairs of its letters would be Chinese characters.
        return ""
    for name, width in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2)):
        if len(head) < 2 * width or (len(head) < LOOKED_AT and len(head) % width):
            continue
        even, odd = head[: len(head) - len(head) % width : 2].count(0), head[1::2].count(0)
        if width == 2 and not (even or odd) and len(head) >= SHORTEST_UNMARKED and not _is_utf8(head):
            # Without a single zero byte there is no blank, line or digit: only scripts that need none.
            if _common_share(_cut(head, name)) > 0.95 > _best_multibyte(head):
                return name
            continue
        if even or odd:
            text = _cut(head, name)
            if text and "\ufffd" not in text and not _CONTROL.search(text) and _common_share(text) > 0.9:
                return name
    return ""


def _cut(head: bytes, encoding: str) -> str:
    width = 4 if "32" in encoding else 2
    return head[: len(head) - len(head) % width].decode(encoding, "replace")


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return len(head) == LOOKED_AT and error.start > len(head) - 4
    return True


def _fits(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _best_multibyte(head: bytes) -> float:
    texts = ((candidate, head.decode(candidate.name, "replace")) for candidate in _CANDIDATES[:5])
    return max((candidate.score(text) for candidate, text in texts if "\ufffd" not in text), default=0.0)


@lru_cache(maxsize=4096)
def _is_common(char: str) -> bool:
    """Whether a character is one that texts of today are written in; two thirds of all Chinese ones are not."""
    code = ord(char)
    if code < 0x250 or 0x370 <= code < 0x700 or 0x2010 <= code < 0x2040 or 0x3000 <= code < 0x3100:
        return code < 0x7F or code >= 0xA0
    return any(_fits_char(char, encoding) for encoding in ("gb2312", "shift_jis", "big5", "euc-kr"))


def _fits_char(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _common_share(text: str) -> float:
    return sum(map(_is_common, text)) / max(1, len(text))


def _by_alphabets(alphabets: tuple[str, ...], *, is_latin: bool) -> Callable[[str], float]:
    """Scores a text by the language among ``alphabets`` that explains its letters best."""
    sets = [frozenset(alphabet) for alphabet in alphabets]

    def score(text: str) -> float:
        places = [index for index, char in enumerate(text) if not char.isascii()][:SCORED]
        signs = [index for index in places if is_latin and _is_sign(text, index)]
        others = sorted(set(places).difference(signs))
        return max(
            (len(signs) + sum(_letter(text, index, letters, is_latin=is_latin) for index in others))
            / max(1, len(places))
            for letters in sets
        )

    return score


def _is_sign(text: str, index: int) -> bool:
    """Whether a character is a sign where texts have it, quotation marks of both sides among them."""
    if text[index] not in "«»":
        return _SIGN_IN_PLACE.match(text, index) is not None
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    outside, inside = (before, after) if before[:1].isspace() or not before else (after, before)
    if outside.isalnum() or not inside:
        return False
    other = "»" if text[index] == "«" else "«"
    return other in text[max(0, index - LONGEST_QUOTATION) : index + LONGEST_QUOTATION]


def _has_signs_only(head: bytes) -> bool:
    """Whether all characters beyond ASCII are signs in the Western code page, and stand alone or in twos."""
    try:
        text = head.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return not (_IN_THREES.search(text) or any(char.isalpha() and char not in "µªº" for char in _BEYOND.findall(text)))


def _letter(  # noqa: PLR0911
    text: str, index: int, letters: frozenset[str], *, is_latin: bool
) -> float:
    """The score of one character beyond ASCII by its neighbours, from -1 to 1."""
    char, before = text[index], text[index - 1] if index else " "
    after = text[index + 1] if index + 1 < len(text) else " "
    if is_latin and char in "«»©®":
        # Those in place have been counted: these may be letters of another encoding.
        return 0.5 if not (before.isalpha() and after.isalpha()) else 0.0
    if not is_latin and char in _CLOSED_BY and after.islower() and not before.isalpha():
        # It may be a capital letter of another encoding.
        return 0.95 if any(mark in text[index : index + LONGEST_QUOTATION] for mark in _CLOSED_BY[char]) else 0.5
    if char in _MARKS_OF_TYPE:
        return 0.0 if before.isalpha() and after.isalpha() and char not in _INSIDE_WORDS else 0.95
    if char in _SUPERSCRIPTS:
        return 0.0 if after.isalpha() else 0.5
    if char.lower() not in letters:
        return 0.0
    if char != char.lower() and before.islower():
        return -0.5
    if not is_latin and ((before.isascii() and before.isalpha()) or (after.isascii() and after.isalpha())):
        return -1.0
    if char == "þ" and before.isalpha():
        # Few words of Icelandic have it inside; many of Turkish have "ş", which is the same byte.
        return 0.5
    if is_latin:
        return 1.0 if before.isascii() or after.isascii() else 0.3
    if not (before.isalpha() or after.isalpha()):
        return 0.5
    if char != char.lower() and before.isupper():
        return 0.8
    return 1.0 if char.lower() in _FREQUENT else 0.6


def _by_levels(encoding: str, first: int, last: int, *, kana: bool, frequent: frozenset[str]) -> Callable[[str], float]:
    """Scores a text by the share of characters whose first byte is one of the common characters' rows."""

    def score(text: str) -> float:
        chars = [char for char in text if not char.isascii()][:SCORED]
        good = often = has_kana = 0
        for char in chars:
            is_kana = 0x3041 <= ord(char) <= 0x30FE
            has_kana += is_kana
            if is_kana:
                good += kana
            elif 0x3000 <= ord(char) < 0x3020 or 0xFF01 <= ord(char) <= 0xFF5E or char in _MARKS_OF_TYPE:
                good += 1
            else:
                good += _fits_char(char, encoding) and first <= char.encode(encoding)[0] <= last
            often += char in frequent
        if kana and not has_kana:
            is_japanese = encoding != "euc-jp" or often > LEAST_FREQUENT * len(chars)
            return is_japanese * 0.9 * good / max(1, len(chars))
        if len(chars) < 2:
            return 0.0
        if kana:
            return good / len(chars)
        return (good + min(often, 0.3 * len(chars))) / (1.3 * len(chars)) if frequent else good / len(chars)

    return score


_LATIN = _by_alphabets(_WESTERN, is_latin=True)
_CYR = _by_alphabets(_CYRILLIC, is_latin=False)
_CANDIDATES = (
    _Candidate("shift_jis", _by_levels("shift_jis", 0x88, 0x98, kana=True, frequent=frozenset())),
    _Candidate("euc-jp", _by_levels("euc-jp", 0xB0, 0xCF, kana=True, frequent=_FREQUENT_KANJI)),
    _Candidate("euc-kr", _by_levels("euc-kr", 0xB0, 0xC8, kana=False, frequent=_FREQUENT_HANGUL)),
    _Candidate("gb18030", _by_levels("gb2312", 0xB0, 0xD7, kana=False, frequent=_FREQUENT_HANZI)),
    _Candidate("big5", _by_levels("big5", 0xA4, 0xC6, kana=False, frequent=_FREQUENT_HANZI)),
    _Candidate("cp1252", _LATIN),
    _Candidate("cp1250", _by_alphabets(_CENTRAL, is_latin=True), 0.98),
    _Candidate("iso8859-2", _by_alphabets(_CENTRAL, is_latin=True), 0.97),
    _Candidate("cp1254", _by_alphabets(("çğıöşüâîİ",), is_latin=True), 0.97),
    _Candidate("cp1257", _by_alphabets(("ąčęėįšųūž", "āčēģīķļņšūž", "äöõüšž"), is_latin=True), 0.96),
    _Candidate("cp1251", _CYR),
    _Candidate("koi8-r", _CYR, 0.99),
    _Candidate("koi8-u", _CYR, 0.98),
    _Candidate("cp866", _CYR, 0.97),
    _Candidate("iso8859-5", _CYR, 0.96),
    _Candidate("mac_cyrillic", _CYR, 0.98),
    _Candidate("cp1253", _by_alphabets(_GREEK, is_latin=False), 0.98),
    _Candidate("iso8859-7", _by_alphabets(_GREEK, is_latin=False), 0.97),
    _Candidate("cp1255", _by_alphabets(_HEBREW, is_latin=False), 0.97),
    _Candidate("cp1256", _by_alphabets(_ARABIC, is_latin=False), 0.97),
    _Candidate("iso8859-6", _by_alphabets(_ARABIC, is_latin=False), 0.96),
    _Candidate("iso8859-15", _LATIN, 0.99),
    _Candidate("cp850", _LATIN, 0.85),
    _Candidate("mac_roman", _LATIN, 0.84),
)
"""Those for several bytes a character first."""
