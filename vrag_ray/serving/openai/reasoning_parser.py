"""Sorts a model's text, while it comes, into thoughts, words for the user and calls of functions. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import Enum, auto

from vrag_ray.serving.openai.responses import CalledFunction

THINK, END_THINK = "<think>", "</think>"
CALL, END_CALL = "<tool_call>", "</tool_call>"
_ESCAPED = re.compile(r"\\.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """The text since the last piece. An empty piece marks the begin of the reply."""

    think: str = ""
    content: str = ""


def parted(text: str) -> Piece:
    """A whole reply whose thoughts have their end alone, as where a chat template opens them; else all is content."""
    before, end, after = text.partition(END_THINK)
    return Piece(before, after.lstrip("\n")) if end else Piece(content=text)


class _Mode(Enum):
    START = auto()
    THINK = auto()
    SAY = auto()
    CALL = auto()


@dataclass(slots=True)
class ReasoningParser:
    """Text goes in as it comes; what is certain comes out at once. A tag that may have begun is held back.

    Thoughts are what stands between ``<think>`` tags at the very beginning. Calls are looked for only where
    ``calls_functions``; one that cannot be read stays a part of the content.
    """

    calls_functions: bool
    calls: list[CalledFunction] = field(default_factory=list)
    _mode: _Mode = _Mode.START
    _held: str = ""
    _breaks_dropped: bool = False

    def feed(self, text: str) -> Piece:
        self._held += text
        think, content = "", ""
        while True:
            mode = self._mode
            if mode is _Mode.START:
                self._start()
            elif mode is _Mode.THINK:
                think += self._until(END_THINK, _Mode.SAY)
            elif mode is _Mode.SAY:
                content += self._say(self._until(CALL, _Mode.CALL) if self.calls_functions else self._all())
            else:
                content += self._call()
            if self._mode is mode:
                return Piece(think, content)

    def end(self) -> Piece:
        """What was held back; no more text comes."""
        held = self._all()
        if self._mode is _Mode.THINK:
            return Piece(think=held)
        if self._mode is not _Mode.CALL:
            return Piece(content=self._say(held))
        call = _read_call(held)
        if call is None:
            return Piece(content=CALL + held)
        self.calls.append(call)
        return Piece()

    def _start(self) -> None:
        bare = self._held.lstrip()
        if bare.startswith(THINK):
            self._held = bare[len(THINK) :]
            self._mode = _Mode.THINK
        elif not THINK.startswith(bare):
            self._mode = _Mode.SAY

    def _until(self, tag: str, then: _Mode) -> str:
        """What certainly stands before ``tag``; with the tag itself the mode changes."""
        before, separator, after = self._held.partition(tag)
        if separator:
            self._held = after
            self._mode = then
            self._breaks_dropped = tag == END_THINK
            return before
        pending = next((size for size in range(len(tag) - 1, 0, -1) if self._held.endswith(tag[:size])), 0)
        certain = len(self._held) - pending
        before, self._held = self._held[:certain], self._held[certain:]
        return before

    def _say(self, text: str) -> str:
        # Line breaks after thoughts and around calls belong to the form.
        if self._breaks_dropped:
            text = text.lstrip("\n")
            self._breaks_dropped = not text
        return "" if self.calls and text.isspace() else text

    def _call(self) -> str:
        end = _end_of_call(self._held)
        if end is None:
            return ""
        inside, self._held = self._held[:end], self._held[end + len(END_CALL) :]
        self._mode = _Mode.SAY
        call = _read_call(inside)
        if call is None:
            return CALL + inside + END_CALL
        self.calls.append(call)
        return ""

    def _all(self) -> str:
        held, self._held = self._held, ""
        return held


def _end_of_call(text: str) -> int | None:
    """Where the call is closed: a tag inside of a JSON string is a part of that string."""
    end = text.find(END_CALL)
    while end >= 0:
        if _ESCAPED.sub("", text[:end]).count('"') % 2 == 0:
            return end
        end = text.find(END_CALL, end + 1)
    return None


def _read_call(text: str) -> CalledFunction | None:
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", {})
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return CalledFunction(name=value["name"], arguments=written)
