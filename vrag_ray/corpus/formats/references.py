"""Pictures that a text refers to or holds: of Markdown and HTML, by patterns, without following anything."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from html import unescape
from operator import itemgetter
from urllib.parse import unquote, unquote_to_bytes

from vrag_ray.corpus.formats.source import Attachment
from vrag_ray.corpus.formats.unseen import STYLE_VALUE, leaves_unseen

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"})
"""The last three are texts of programs that run or lay out what is in them."""
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).{0,1000}?(?<!`)\1(?!`)", re.DOTALL)
_STRUCK = re.compile(r"(?<![~\\A-Za-z0-9])~~(?=[^\s~])(?:(?!~~|\n[ \t]*\n).){1,1000}(?<=[^\s~\\])~~(?!~)", re.DOTALL)
_UNSHOWN = re.compile(r"<!--|<(script|style|template)\b", re.IGNORECASE)
_ENDS = {
    "": re.compile("-->"),
    **{name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in ("script", "style", "template")},
}
_SCRIPT = re.compile(r"<(?:script|style|template)\b", re.IGNORECASE)
_DEEP = re.compile(r"^(?: {4}|\t).*", re.MULTILINE)
_NOTE = re.compile(r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*(?:#|<>)[ \t]+(?:\(.*\)|\".*\"|'.*')[ \t]*$", re.MULTILINE)
"""A reference that leads nowhere: its title is a remark."""
_ASIDE = re.compile(
    r"^[ \t]*%%[ \t]*\n(?:.*\n)*?[ \t]*%%[ \t]*$|(?<![\w%\\])%%(?=[^%\n])[^\n]{1,1000}?%%(?![\w%])"
    r"|\{/\*[^\0]{0,5000}?\*/\}",
    re.MULTILINE,
)
"""A comment of Obsidian, and of MDX."""
_HIDDEN = re.compile(r"(?:^|\s)hidden(?=[\s=]|$)", re.IGNORECASE)
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'")
_BEGIN_TAG = re.compile(
    r"<([a-zA-Z][\w:-]*)((?:\s+[^\s=>/<]{1,200}(?:\s*=\s*(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|[^\s>\"'<]{1,2000}))?){0,50})\s*/?>"
)
"""No tag is in another: hostile texts would take long."""
_END_TAG = re.compile(r"</([a-zA-Z][\w:-]*)\s*>")
_WITHOUT_END = frozenset(("br", "hr", "img", "input", "link", "meta", "source", "wbr"))
"""Elements that have none."""
_MARKUP = re.compile(r"<!--|-->|%%|</?[a-zA-Z][^>]*>|^ {0,3}\[[^\]\n]{1,200}\]:")
_WORD = re.compile(r"\w+")
_ALT = r"!\[((?:[^\[\]]|\[[^\[\]]{0,200}\]){0,2000})\]"
_INLINE = re.compile(_ALT + r"\(\s*(?:<([^>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))")
_BY_NAME = re.compile(_ALT + r"(?:\[([^\]\n]{0,200})\])?(?!\()")
_NAMED = re.compile(r"^ {0,3}\[([^\]\n]{1,200})\]:[ \t]*\n?[ \t]*(?:<([^>\n]*)>|(\S+))", re.MULTILINE)
_TAG = re.compile(r"<img[\s/]([^<]+)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?|(>)""")
_DATA = re.compile(r"data:image/([\w.+-]{1,40})((?:;[\w=.+-]{1,80})*),", re.IGNORECASE)
_HELD = re.compile(r"(data:image/[\w.+-]{1,40}(?:;[\w=.+-]{1,80})*),[\w+/=%-]{64,}", re.IGNORECASE)
LEAST_BYTES = 100
"""Of a picture of pixels that stands in a text: fewer are a point or a line, which web pages have for their layout."""
_SUFFIXES = {"jpeg": "jpg", "svg+xml": "svg", "x-icon": "ico", "vnd.microsoft.icon": "ico"}


def picture_targets(text: str, *, markdown: bool) -> list[str]:
    """What the pictures of ``text`` are named by, each once, in their order; code and comments show none."""
    text = _without(text, _unshown_spans(text))
    targets: list[tuple[int, str]] = []
    if markdown:
        text = without_code(text)
        targets += [(match.start(), match[2] or match[3] or "") for match in _INLINE.finditer(text)]
        named = {_key(match[1]): match[2] or match[3] for match in reversed(list(_NAMED.finditer(text)))}
        for match in _BY_NAME.finditer(text):
            if (target := named.get(_key(match[2] or match[1]))) is not None:
                targets.append((match.start(), target))
    targets += [(match.start(), _source(match[1])) for match in _TAG.finditer(text)]
    return list(dict.fromkeys(target.strip() for _, target in sorted(targets) if target.strip()))


def without_code(text: str) -> str:
    """``text`` with blanks in place of code, each character in its place."""
    return _CODE.sub(_blanks, _FENCED.sub(_blanks, text))


def struck_spans(text: str) -> list[tuple[int, int]]:
    """Where words are struck out in a text, ``~~so~~``; code is not looked at."""
    return [match.span() for match in _STRUCK.finditer(without_code(text))] if "~~" in text else []


def hidden_spans(text: str) -> tuple[list[tuple[int, int]], int]:
    """Where a Markdown text has what its readers do not see, and how many words that is: comments, and elements that
    are not displayed. Scripts and styles are among the places, and have no words. Code is not looked at."""
    shown = without_code(text)
    spans = [note.span() for pattern in (_NOTE, _ASIDE) for note in pattern.finditer(shown)]
    # Such a line is code, or a part of a list.
    deep = [line.span() for line in _DEEP.finditer(text)]
    for start, end in _unshown_spans(shown):
        line = bisect_right(deep, start, key=itemgetter(0)) - 1
        if line < 0 or start >= deep[line][1]:
            spans.append((start, end))
    spans += _undisplayed(shown)
    merged = list[tuple[int, int]]()
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    left_out = (text[start:end] for start, end in merged if not _SCRIPT.match(text, start))
    return merged, sum(len(_WORD.findall(_MARKUP.sub(" ", part))) for part in left_out)


def _unshown_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where a page has comments, scripts and styles that end; patterns would look for each missing end anew."""
    at, endless = 0, set[str]()
    while begin := _UNSHOWN.search(text, at):
        name, at = (begin[1] or "").lower(), begin.end()
        end = None if name in endless else _ENDS[name].search(text, at)
        if end is None:
            endless.add(name)
        else:
            at = end.end()
            yield begin.start(), at


def _without(text: str, spans: Iterator[tuple[int, int]]) -> str:
    """``text`` with a blank in place of each of the ``spans``."""
    parts, done = list[str](), 0
    for start, end in spans:
        parts += [text[done:start], " "]
        done = end
    return "".join([*parts, text[done:]])


def _undisplayed(text: str) -> Iterator[tuple[int, int]]:
    """Where elements of HTML are that are not displayed, each with what is in it."""
    name, start, depth = "", 0, 0
    for tag in sorted((*_BEGIN_TAG.finditer(text), *_END_TAG.finditer(text)), key=re.Match.start):
        is_end = tag[0].startswith("</")
        if depth:
            depth += 0 if tag[1].lower() != name else -1 if is_end else 1
            if not depth:
                yield start, tag.end()
        elif not is_end:
            style = STYLE_VALUE.search(tag[2])
            if _HIDDEN.search(_VALUE.sub("", tag[2])) or (
                style is not None and leaves_unseen(style[1] or style[2] or "")
            ):
                name, start, depth = tag[1].lower(), tag.start(), int(tag[1].lower() not in _WITHOUT_END)


def held_pictures(text: str, *, markdown: bool) -> Iterator[Attachment]:
    """The pictures whose bytes stand in a text itself."""
    for number, target in enumerate(filter(_DATA.match, picture_targets(text, markdown=markdown)), 1):
        match = _DATA.match(target)
        assert match is not None
        kind, data = match[1].lower(), target[match.end() :]
        try:
            if ";base64" in match[2].lower():
                content = base64.b64decode(unquote(data), validate=False)
            else:
                content = unquote_to_bytes(data)
        except (binascii.Error, ValueError):
            content = b""
        if 0 < len(content) < LEAST_BYTES and "svg" not in kind:
            continue
        yield Attachment(f"picture {number}.{_SUFFIXES.get(kind, kind)}", content)


def without_held(text: str) -> str:
    """``text`` without the bytes of pictures, which are no words."""
    return _HELD.sub(r"\1", text) if "data:image/" in text else text


def is_held(target: str) -> bool:
    """Whether the picture's bytes stand in its name."""
    return target[:5].lower() == "data:"


def _source(attributes: str) -> str:
    """The address in an ``img`` tag, of which ``attributes`` is what follows its name."""
    for match in _ATTRIBUTE.finditer(attributes):
        if match[5]:
            break
        if match[1].lower() == "src":
            return unescape(match[2] or match[3] or match[4] or "")
    return ""


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _key(name: str) -> str:
    return " ".join(name.split()).casefold()
