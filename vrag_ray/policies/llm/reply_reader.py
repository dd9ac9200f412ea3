"""Reads the body of a chat completion in any of the forms that servers write: events, JSON in one piece or one object a
line, whatever its header calls it. Nothing here does IO.

Of a reply only what is used is looked at, so that a member that is missing, null or of another type does no harm.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vrag_ray.agent.chat import Delta
from vrag_ray.policies.llm.endpoint_quirks import Refusal, words_of
from vrag_ray.policies.llm.thought_tags import TaggedThoughts
from vrag_ray.types import Completion

Json = Mapping[str, object]
OK, SERVER_ERRORS = 200, 500
BROKEN = "broken"
_FINISHES = (
    ("length", r"length|max.*token|token.*limit|context.window"),
    ("content_filter", r"filter|safety|sensitive|moderat|recitation|prohibited|blocklist|spii|refusal|guardrail"),
    (BROKEN, r"error|abort|cancel|insufficient|time.?out|fail|malformed|unexpected|interrupt|overload|unavailable"),
    ("stop", r"stop|eos|end|tool|function|complete|done|finish"),
)
"""What the finish reasons of servers mean, by a part of their names; the first match counts."""
_NO_REASON = ("", "null", "none")
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "thought", "reasoning_details")
"""Members with a model's thoughts. Some servers send the same words in two of them: the first counts."""
_TEXTS = ("text", "thinking", "reasoning", "summary", "content", "refusal")
"""Members of a part of content or thoughts that may have its words."""
_EVENT_FIELD = re.compile(r"(data|event|id|retry)?:|data$")
_BLANKS = re.compile(r"\s*")
_HALF = re.compile("[\ud800-\udfff]")
_FIRST_HALF = re.compile("[\ud800-\udbff]\\Z")


class EndpointError(Exception):
    """The endpoint reports a failure in the body of a reply. ``whole`` where it refuses the request with it; else the
    reply broke off."""

    def __init__(self, refusal: Refusal, *, whole: bool) -> None:
        super().__init__(refusal.words)
        self.refusal = refusal
        self.whole = whole


class NoChatCompletionError(Exception):
    """The body is something else, such as the page of a proxy; the message has its words."""


class UnfinishedError(Exception):
    """The body ends before the reply does; the message has what the endpoint says of it, or nothing."""


@dataclass(slots=True)
class _Call:
    """A function call as it comes in pieces."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    @property
    def is_whole(self) -> bool:
        return any(isinstance(value, dict) for value in _documents(self.arguments) or ())


@dataclass(slots=True)
class _Characters:
    """Puts together characters whose halves (surrogates) came in two pieces; a half alone becomes U+FFFD."""

    held: str = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        text = self.held + text
        self.held = ""
        if not last and _FIRST_HALF.search(text):
            text, self.held = text[:-1], text[-1]
        return _mended(text)


@dataclass(slots=True)
class ReplyReader:
    """Bytes go in as they come, and what they say comes out. The body has to end with ``end``."""

    _line: bytes = b""
    _started: bool = False
    _event: str = ""
    _data: list[str] = field(default_factory=list)
    _plain: list[str] = field(default_factory=list)
    """Lines that are no events."""
    _streams: bool = False
    _stray: str = ""
    """Words that came since the last piece of the reply and belong to none."""

    is_done: bool = False
    """No more comes of this reply."""
    _is_whole: bool = False
    """It came as one message."""
    _heard: bool = False
    _finish: str = ""
    _usage: dict[str, int] = field(default_factory=dict)
    _text: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _open_calls: dict[int, _Call] = field(default_factory=dict)
    """The call that goes on at each index of the stream."""
    _contents: _Characters = field(default_factory=_Characters)
    _thoughts: _Characters = field(default_factory=_Characters)
    _tagged: TaggedThoughts = field(default_factory=TaggedThoughts)

    @property
    def refusal(self) -> str:
        """The words in which the model itself declines."""
        return _mended("".join(self._refusal)).strip()

    def feed(self, data: bytes) -> Iterator[Delta]:
        """Raises EndpointError where the endpoint reports a failure, UnfinishedError for a piece that is damaged."""
        # Of bytes, only CR and LF end a line; of text, characters that JSON may hold do too.
        lines = (self._line + data).splitlines(keepends=True)
        self._line = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            yield from self._take_line(line)

    def end(self) -> Iterator[Delta]:
        """The last of a reply. Raises EndpointError, NoChatCompletionError or UnfinishedError where it is none."""
        yield from self._take_line(self._line)
        yield from self._take_event()
        plain = "\n".join(self._plain).strip()
        documents = _documents(plain)
        for document in documents or ():
            if isinstance(document, dict):
                yield from self._take_object(document)
            else:
                self._stray = plain
        if documents is None:
            self._stray = plain
        words = Refusal.of(OK, self._stray).words
        if words and not self._heard and not self._streams and (documents is not None or not plain.startswith("{")):
            raise NoChatCompletionError(words)
        # Without a finish reason, ``[DONE]`` says that it is whole, unless other words came in its place.
        ended = self._is_whole or (self.is_done and self._heard and not self._stray)
        if not self._finish and not ended:
            raise UnfinishedError(words if self._started else "the body is empty")
        if _finish_of(self._finish) == BROKEN:
            raise EndpointError(Refusal(OK, f"finish_reason {self._finish}", ""), whole=False)
        yield from self._deltas(
            self._thoughts.feed("", last=True), *self._tagged.feed(self._contents.feed("", last=True))
        )
        yield from self._deltas("", *self._tagged.end())

    def completion(self, name: str, notices: Sequence[str]) -> Completion:
        """All of it, after ``end``. Function calls become the text that the protocols read: one form, whichever way the
        model called. ``name`` is the model's, for a notice."""
        calls = [
            f"<tool_call>{_mended(_call_json(call.name, call.arguments))}</tool_call>"
            for call in self._calls
            if call.name or call.arguments
        ]
        finish = _finish_of(self._finish)
        unknown = f"{name} ended its reply with finish_reason {self._finish}, which has no known meaning"
        return Completion(
            text="".join([*self._text, *calls]),
            reasoning="".join(self._reasoning),
            finish=finish or "stop",
            usage=self._usage,
            notices=(*notices, *([] if finish else [unknown])),
        )

    def _take_line(self, raw: bytes) -> Iterator[Delta]:
        line = raw.decode(errors="replace").rstrip("\r\n")
        if not self._started:
            self._started = bool(line)
            line = line.removeprefix("\ufeff")
        if not line:
            yield from self._take_event()
        elif not _EVENT_FIELD.match(line):
            self._plain.append(line)
        else:
            self._streams = True
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name == "event":
                self._event = value

    def _take_event(self) -> Iterator[Delta]:
        data, event = "\n".join(self._data).strip(), self._event
        self._data, self._event = [], ""
        if not data or self.is_done:
            return
        if data.startswith("[DONE]"):
            self.is_done = True
            return
        documents = _documents(data)
        if event == "error":
            raise EndpointError(Refusal.of(_status_of(documents), data), whole=False)
        if documents is None and data.startswith(("{", "[")):
            raise UnfinishedError(f"a piece of it is no JSON: {Refusal.of(OK, data).words}")
        for document in documents or ():
            if isinstance(document, dict):
                yield from self._take_object(document)
        if documents is None:
            self._stray = data

    def _take_object(self, chunk: Json) -> Iterator[Delta]:
        whole = not self._streams and not self._heard
        status = _status_of([chunk])
        choices = [choice for choice in _listed(chunk.get("choices")) if isinstance(choice, dict)]
        reports = chunk.get("error") or "error" in (chunk.get("object"), chunk.get("type"))
        if reports or (whole and not choices and words_of(chunk)):
            refuses = whole or (not self._heard and OK < status < SERVER_ERRORS)
            raise EndpointError(Refusal.of(status, json.dumps(chunk)), whole=refuses)
        self._count(chunk.get("usage"))
        if not choices and (whole or words_of(chunk)):
            self._stray = json.dumps(chunk, ensure_ascii=False)
        for choice in choices:
            # Others than the first are replies of their own, which no request is for.
            if _count_of(choice.get("index")) in (None, 0):
                yield from self._take_choice(choice)

    def _take_choice(self, choice: Json) -> Iterator[Delta]:
        if choice.get("error"):
            failure = {"error": choice["error"]}
            raise EndpointError(Refusal.of(_status_of([failure]), json.dumps(failure)), whole=False)
        self._stray = ""
        self._count(choice.get("usage"))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason.strip().lower() not in _NO_REASON:
            self._finish = reason.strip()
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(message, dict) and not isinstance(delta, dict):
            # Where a whole message follows its pieces, it repeats them.
            delta = None if self._heard else message
            self._is_whole = True
        members: Json = delta if isinstance(delta, dict) else {}
        self._heard = True
        for position, piece in enumerate(_listed(members.get("tool_calls")) or _listed(members.get("function_call"))):
            if isinstance(piece, dict):
                self._take_call(piece, position)
        thoughts, content = _parts(members.get("content") or choice.get("text"))
        thought_texts = (_words(members.get(name)) for name in _THOUGHTS)
        thoughts = next((words for words in thought_texts if words), "") + thoughts
        self._refusal.append(_words(members.get("refusal")))
        yield from self._deltas(self._thoughts.feed(thoughts), *self._tagged.feed(self._contents.feed(content)))

    def _deltas(self, thoughts: str, tagged: str, content: str) -> Iterator[Delta]:
        thoughts += tagged
        self._reasoning.append(thoughts)
        self._text.append(content)
        if thoughts or content:
            yield Delta(thoughts, content)

    def _take_call(self, piece: Json, position: int) -> None:
        """A piece of a call goes on with an earlier one or begins one: ids and indices are missing, empty or the same
        for all calls, by server."""
        described = piece.get("function")
        function: Json = described if isinstance(described, dict) else piece
        call_id, name, arguments = _words(piece.get("id")), _words(function.get("name")), function.get("arguments")
        written = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
        index = piece.get("index")
        if isinstance(index, int):
            call = self._open_calls.get(index)
        else:
            # Without an index, two entries of one list are two calls.
            call = self._calls[-1] if self._calls and position == 0 else None
        repeats = call is not None and bool(call_id) and call_id == call.id
        if call is not None and repeats and call.is_whole and written in ("", call.arguments):
            return
        if (
            call is None
            or (call_id and call.id and not repeats)
            or (name and call.is_whole)
            or (name and call.name and name != call.name and not repeats)
        ):
            call = _Call()
            self._calls.append(call)
        if isinstance(index, int):
            self._open_calls[index] = call
        call.id = call.id or call_id
        call.name += name if name != call.name else ""
        call.arguments += written

    def _count(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        counts = {
            "prompt_tokens": _count_of(usage.get("prompt_tokens", usage.get("input_tokens"))),
            "completion_tokens": _count_of(usage.get("completion_tokens", usage.get("output_tokens"))),
            "cached_tokens": _count_of(details.get("cached_tokens")) if isinstance(details, dict) else None,
        }
        self._usage |= {name: count for name, count in counts.items() if count is not None}


def _finish_of(reason: str) -> str:
    """``stop``, ``length``, ``content_filter`` or ``BROKEN``; "" for a reason that is none of those known."""
    if not reason:
        return "stop"
    return next((finish for finish, names in _FINISHES if re.search(names, reason.lower())), "")


def _status_of(documents: Sequence[object] | None) -> int:
    """The HTTP status that an error object gives as its code; else that of the reply."""
    for document in documents or ():
        error = document.get("error") if isinstance(document, dict) else None
        for place in (error, document):
            code = _count_of(place.get("code")) if isinstance(place, dict) else None
            if code is not None and 400 <= code < 600:
                return code
    return OK


def _documents(text: str) -> list[object] | None:
    """The JSON values of which ``text`` consists, one behind the other; None where it holds anything else."""
    decoder, values, at = json.JSONDecoder(), list[object](), 0
    text = text.strip()
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        values.append(value)
        blanks = _BLANKS.match(text, end)
        at = blanks.end() if blanks else end
    return values


def _listed(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _parts(content: object) -> tuple[str, str]:
    """The thoughts and the words of a message's content: text, or a list of parts."""
    thoughts, words = "", ""
    for part in _listed(content):
        kind = part.get("type") if isinstance(part, dict) else ""
        if isinstance(kind, str) and re.search("think|thought|reason", kind):
            thoughts += _words(part)
        else:
            words += _words(part)
    return thoughts, words


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_words(part) for part in value)
    if isinstance(value, dict):
        return next((words for words in (_words(value.get(name)) for name in _TEXTS) if words), "")
    return "" if value is None or isinstance(value, bool) else str(value)


def _count_of(value: object) -> int | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return int(number) if math.isfinite(number) and number >= 0 else None


def _mended(text: str) -> str:
    """Text that can be written as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _HALF.search(text) else text


def _call_json(name: str, arguments: str) -> str:
    return json.dumps({"name": name, "arguments": arguments or "{}"}, ensure_ascii=False).replace("<", "\\u003c")
