"""Pictures that a text refers to or holds: of Markdown and HTML, by patterns, without following anything."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import unquote, unquote_to_bytes

from vrag_ray.corpus.formats.source import Attachment

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown"})
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).{0,1000}?(?<!`)\1(?!`)", re.DOTALL)
_STRUCK = re.compile(r"(?<![~\\A-Za-z0-9])~~(?=[^\s~])(?:(?!~~|\n[ \t]*\n).){1,1000}(?<=[^\s~\\])~~(?!~)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->|<(script|style|template)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
"""What of a page is not shown."""
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
    text = _COMMENT.sub(" ", text)
    found: list[tuple[int, str]] = []
    if markdown:
        text = without_code(text)
        found += [(match.start(), match[2] or match[3] or "") for match in _INLINE.finditer(text)]
        named = {_key(match[1]): match[2] or match[3] for match in reversed(list(_NAMED.finditer(text)))}
        for match in _BY_NAME.finditer(text):
            if (target := named.get(_key(match[2] or match[1]))) is not None:
                found.append((match.start(), target))
    found += [(match.start(), _source(match[1])) for match in _TAG.finditer(text)]
    return list(dict.fromkeys(target.strip() for _, target in sorted(found) if target.strip()))


def without_code(text: str) -> str:
    """``text`` with blanks in place of code, each character in its place."""
    return _CODE.sub(_blanks, _FENCED.sub(_blanks, text))


def struck_spans(text: str) -> list[tuple[int, int]]:
    """Where words are struck out in a text, ``~~so~~``; code is not looked at."""
    return [match.span() for match in _STRUCK.finditer(without_code(text))] if "~~" in text else []


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
