"""Text of models and documents as Markdown that can do nothing but look like text. Pure.

Streamlit renders Markdown, and with it pictures and links to anywhere, its own directives and formulas. Bold, headings,
lists, tables and quotes stay what they are; every other character that Markdown gives a meaning is escaped. Addresses
get a joint that cannot be seen, because what looks like one is made a link after the escapes are gone. Nothing of the
result is loaded, linked or run.
"""

from __future__ import annotations

import re

_ACTIVE = re.compile(r"[\\`!\[\]<>(){}$:&~@_^=\"']")
_JOINT = "\N{WORD JOINER}"
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
_QUOTE = re.compile(r"^(\s*)\\>", re.MULTILINE)


def inert(text: str) -> str:
    """``text`` with its emphasis, headings, lists, tables and quotes, and nothing else."""
    escaped = _ACTIVE.sub(r"\\\g<0>", _ADDRESS.sub(_JOINT, text))
    # Four spaces at the start of a line would make code of it, in which escapes show.
    lines = [re.sub(r"^(?: {4,}|\t+)(?=[^\s*+\-\d|])", "   ", line) for line in _QUOTE.sub(r"\1>", escaped).split("\n")]
    return "  \n".join(lines) if len(lines) > 1 else lines[0]


def plain(text: str) -> str:
    """``text`` with no meaning at all: for labels, captions and titles, on one line."""
    flat = _ADDRESS.sub(_JOINT, " ".join(text.split()))
    return re.sub(r"[\\`*_{}\[\]()#+\-.!|<>~$:&@^=\"']", r"\\\g<0>", flat)
