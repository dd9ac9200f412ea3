"""Style sheets that lie beside a saved web page: the page with their rules in it, as the file that its units are read
from.

The sandbox opens one file at a time, and nothing beside it. What links to a sheet is found here without decoding the
page: each byte is one character, and each pattern looks at a bounded stretch.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from vrag_ray.corpus.sniff import SUFFIXES, Format
from vrag_ray.ingest.pictures import file_inside
from vrag_ray.types.file_names import shown_name

MOST_PAGE_BYTES = 32 * 2**20
MOST_SHEET_BYTES = 2 * 2**20
"""Of one sheet."""
MOST_BYTES, MOST_SHEETS = 4 * 2**20, 60
"""Of all sheets of a page."""
DEEPEST = 4
"""Sheets that import each other."""
LONGEST_MARK = 200
_PART = re.compile(
    r"<!--|<(script|style|template|noscript|textarea)\b[^>]{0,2000}>|<link\s([^>]{1,2000})>", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]{1,100})(?:\s{0,20}=\s{0,20}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
_BEFORE_RULES = re.compile(r"\s{0,1000}(?:@charset\s[^;{}]{0,100};|@layer\s[^;{}]{0,1000};)", re.IGNORECASE)
_IMPORT = re.compile(
    r"\s{0,1000}@import\s{1,100}(?:url\(\s{0,20})?(?:\"([^\"]{1,1000})\"|'([^']{1,1000})'|([^\"'\s();]{1,1000}))\s{0,20}\)?"
    r"([^;{}]{0,1000});",
    re.IGNORECASE,
)
_LAYER = re.compile(r"^\s{0,100}layer\b(?:\(([^()]{0,200})\))?", re.IGNORECASE)
_SUPPORTS = re.compile(r"\bsupports\(", re.IGNORECASE)
_CHARSET = re.compile(
    r"<(?:meta\b[^>]{0,200}charset|\?xml[^>]{0,200}encoding)\s{0,20}=\s{0,20}[\"']?([\w-]{1,40})", re.IGNORECASE
)
_STATED_WITHIN = 1024
"""Bytes of a page in which its encoding is looked for."""
_NAMES_OF_PAGE = re.compile(r"[^\s\"'=<>]{1,200}")
_BRACE = re.compile(r"[{}]")
_ASIDE = re.compile(r"\([^()]{0,1000}\)|\[[^\[\]]{0,1000}\]")
"""What a selector excludes or states of attributes, in part."""
_NAME = re.compile(r"[.#]((?:[\w-]|\\[^0-9a-fA-F\s])++)(?!\\)")
_HELD = re.compile(r"\bdata:image/", re.IGNORECASE)
_FADED = re.compile(r"\bopacity\s{0,9}:\s{0,9}(?:0?\.)?0{1,9}%?\s{0,9}(?:!important\s{0,9})?(?=[;}])", re.IGNORECASE)
"""How pages begin that scripts fade in: the script, which a saved page may lack, shows it in the end."""


@dataclass
class _Beside:
    """The sheets beside a page, below ``folder``: what was read of them, and a notice for each that could not be."""

    folder: Path
    names: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    bytes: int = 0

    def rules(self, parent: Path, target: str, depth: int = 1) -> str:
        """The rules of the sheet that ``target`` names in a file of ``parent``, in ASCII, with those that it imports.

        Empty for what is no file in the folder, and for a sheet that has a notice.
        """
        name = unquote(target.strip().partition("#")[0].partition("?")[0]).replace("\\", "/")
        if not name or _SCHEME.match(name) or depth > DEEPEST or len(self.names) == MOST_SHEETS:
            return ""
        path = file_inside(parent, name, self.folder)
        if path is None or not path.is_file():
            return ""
        most = min(MOST_SHEET_BYTES, MOST_BYTES - self.bytes)
        try:
            with path.open("rb") as file:
                data = file.read(most + 1)
        except OSError as error:
            return self._left_out(name, f"it cannot be read: {error.strerror or error}")
        if len(data) > most:
            return self._left_out(
                name, f"sheets of more than {MOST_SHEET_BYTES >> 20} MB, or {MOST_BYTES >> 20} MB a page"
            )
        if (sheet := _decoded(data)) is None:
            return self._left_out(name, "it is no text")
        self.bytes += len(data)
        self.names.append(PurePosixPath(name).name)
        return self.with_imported(without_comments(sheet), path.parent, depth)

    def _left_out(self, name: str, why: str) -> str:
        self.notices.append(f"the style sheet {shown_name(name)} is left out ({why}): words that it hides are read")
        return ""

    def with_imported(self, sheet: str, parent: Path, depth: int) -> str:
        """A sheet without comments, with the rules of what it imports in the place of the imports, in ASCII."""
        parts, at = list[str](), 0
        while (match := _IMPORT.match(sheet, at) or _BEFORE_RULES.match(sheet, at)) is not None:
            at = match.end()
            if match.re is _BEFORE_RULES:
                parts.append(_embedded(match[0]) if "@layer" in match[0].lower() else "")
            elif not _SUPPORTS.search(match[4]):
                imported = self.rules(parent, match[1] or match[2] or match[3], depth + 1)
                parts.append(_conditional(imported, match[4]) if imported else "")
        return "".join([*parts, _embedded(sheet[at:])])


def with_local_sheets(file: Path, folder: Path) -> tuple[bytes, str, list[str]]:
    """The web page ``file`` with the rules of the style sheets that it names and that lie in ``folder`` or below, a
    mark of these, which is their names, and notices of those that cannot be read. Page and mark are empty where there
    are none, and for a page in UTF-16.

    Nothing is fetched, and links are followed only within ``folder``. Raises OSError where ``file`` cannot be read.
    """
    if SUFFIXES.get(file.suffix.lower()) is not Format.HTML or file.stat().st_size > MOST_PAGE_BYTES:
        return b"", "", []
    # Every byte as one character, so that what is left alone is what was there.
    page = file.read_bytes().decode("latin-1")
    beside, names = _Beside(folder), frozenset(_NAMES_OF_PAGE.findall(page))
    parts, at, done, endless = list[str](), 0, 0, set[str]()
    while (match := _PART.search(page, at)) is not None:
        at, name = match.end(), (match[1] or "").lower()
        rules = ""
        if match[2] is not None:
            rules = applicable(_linked(beside, file.parent, match[2]), names)
            start, end = match.span()
        elif (closing := "-->" if not name else f"</{name}") not in endless:
            end = page.find(closing, at) if not name else _end_of(page, closing, at)
            if end < 0:
                # Nothing ends it further on either.
                endless.add(closing)
                continue
            if name == "style" and "@import" in page[at:end]:
                before = len(beside.names)
                imported = beside.with_imported(without_comments(page[at:end]), file.parent, 0)
                rules = applicable(imported, names) if len(beside.names) > before else ""
                start = at
            at = end
        if rules:
            is_first = not parts
            opening = f"<style{_media(match[2])}>{rules}</style>" if match[2] is not None else rules
            parts += [
                page[done:start],
                _stated_early(page, start) if is_first and match[2] is not None else "",
                opening,
            ]
            done = end
    notices = list(dict.fromkeys(beside.notices))
    if not parts:
        return b"", "", notices
    mark = ", ".join(dict.fromkeys(shown_name(name) for name in beside.names))
    return "".join([*parts, page[done:]]).encode("latin-1"), mark[:LONGEST_MARK], notices


def applicable(sheet: str, names: Container[str]) -> str:
    """The rules of ``sheet`` that may hold for a page in which these ``names`` occur.

    MuPDF compares each rule with each element, and sheets of sites are for all their pages.
    """
    parts, at, depth = list[str](), 0, 0
    dropped = 0
    """The depth of the rule that is being left out; 0 outside of such."""
    for brace in _BRACE.finditer(sheet):
        text = sheet[at : brace.start()]
        at = brace.end()
        depth += 1 if brace[0] == "{" else -1
        if dropped:
            dropped = 0 if depth < dropped else dropped
            continue
        before, sign, selectors = text.rpartition(";")
        if brace[0] == "{" and not _may_hold(selectors, names):
            parts.append(before + sign)
            dropped = depth
        else:
            parts += [text, brace[0]]
    return "".join(parts) if dropped else "".join([*parts, sheet[at:]])


def without_comments(sheet: str) -> str:
    """``sheet`` with a blank in place of each comment; a comment that does not end takes the rest of the sheet."""
    parts, at = list[str](), 0
    while (start := sheet.find("/*", at)) >= 0:
        parts.append(sheet[at:start])
        end = sheet.find("*/", start + 2)
        at = len(sheet) if end < 0 else end + 2
    return " ".join([*parts, sheet[at:]])


def _may_hold(selectors: str, names: Container[str]) -> bool:
    if selectors.lstrip().startswith("@"):
        return True
    return any(
        all(match[1].replace("\\", "") in names for match in _NAME.finditer(selector))
        for selector in _ASIDE.sub("", selectors).split(",")
    )


def _linked(beside: _Beside, parent: Path, attributes: str) -> str:
    """The rules of the sheet of a ``link`` element; "" where it names none that is shown."""
    stated = _attributes(attributes)
    kinds = stated.get("rel", "").lower().split()
    if "stylesheet" not in kinds or "alternate" in kinds or "disabled" in stated:
        return ""
    return beside.rules(parent, unescape(stated.get("href", "").encode("latin-1").decode("utf-8", "replace")))


def _attributes(text: str) -> dict[str, str]:
    return {
        match[1].lower(): match[2] or match[3] or match[4] or "" for match in reversed(list(_ATTRIBUTE.finditer(text)))
    }


def _media(attributes: str) -> str:
    media = _attributes(attributes).get("media", "").replace('"', "")
    return f' media="{media}"' if media else ""


def _end_of(page: str, closing: str, at: int) -> int:
    """Where the element ends that began before ``at``; negative where it does not."""
    match = re.compile(re.escape(closing), re.IGNORECASE).search(page, at)
    return match.start() if match is not None else -1


def _stated_early(page: str, at: int) -> str:
    """The encoding of the page once more, where it is stated behind ``at``: rules in between would put it too far."""
    match = _CHARSET.search(page[:_STATED_WITHIN])
    return f'<meta charset="{match[1]}">' if match is not None and match.start() > at else ""


def _decoded(data: bytes) -> str | None:
    """A sheet, which is UTF-8 or of one byte a character; None for what is no text."""
    for encoding in ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig", "cp1252", "latin-1"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if "\0" in text else text
    return None


def _embedded(sheet: str) -> str:
    """Rules in ASCII that nothing ends but their element, and whose pictures are none of the page's own."""
    sheet = _FADED.sub("", _HELD.sub("held:", sheet.replace("<!--", "").replace("-->", "").replace("</", "<\\/")))
    return "".join(letter if letter < "\x80" else f"\\{ord(letter):x} " for letter in sheet)


def _conditional(rules: str, conditions: str) -> str:
    """Imported rules with the layer and the media queries that their import states."""
    layer = _LAYER.match(conditions)
    queries = _embedded(conditions[layer.end() :] if layer is not None else conditions).strip()
    if queries:
        rules = f"@media {queries}{{{rules}}}"
    return f"@layer {_embedded(layer[1] or '')}{{{rules}}}" if layer is not None else rules
