"""Files that older mail programs wrote into the text of a message, as ``uuencode`` does: from a line ``begin 644 name``
to a line ``end``."""

from __future__ import annotations

import base64
import binascii
import re

from vrag_ray.corpus.formats.source import Attachment

_BEGIN = re.compile(r"^begin(-base64)? [0-7]{3,4} +(\S[^\r\n]*)\r?\n", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]*(?:\r?\n|\Z)")
_ENDS = {"": "end", "-base64": "===="}


def without_encoded(text: str) -> tuple[str, list[Attachment]]:
    """``text`` without the files that stand in it, and these files. One that is cut off has the bytes up to there."""
    parts, files, done = list[str](), list[Attachment](), 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        kind, at, data, is_whole = begin[1] or "", begin.end(), bytearray(), False
        while at < len(text) and not is_whole:
            line = _LINE.match(text, at)
            assert line is not None
            content = line[0].rstrip("\r\n")
            is_whole = content.strip() == _ENDS[kind]
            decoded = b"" if is_whole else _decoded(content, kind)
            if decoded is None:
                break
            data += decoded
            at = line.end()
        # A sentence that begins so has no such lines behind it.
        if data or is_whole:
            parts.append(text[done : begin.start()])
            files.append(Attachment(begin[2].rstrip(), bytes(data)))
            done = at
    return "".join([*parts, text[done:]]), files


def _decoded(line: str, kind: str) -> bytes | None:
    """The bytes of a line; None for a line of other text."""
    try:
        if kind:
            return base64.b64decode(line, validate=True)
        # Mail drops blanks at the ends of lines, which are zeros here; some programs add a check sum.
        chars = (((ord(line[0]) - 32) & 63) + 2) // 3 * 4 if line else 0
        return binascii.a2b_uu(line[: 1 + chars].ljust(1 + chars)) if len(line.rstrip()) <= chars + 3 else None
    except (binascii.Error, ValueError):
        return None
