"""In what servers of OpenAI's chat completions differ: one table, and what is read from a refusal with it.

A field that an endpoint refuses by name is left out, or sent by its other name, from then on: ``SentFields`` remembers
which. Nothing here does IO.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from vrag_ray.config import ReplyConstraint

THINKING_FIELDS = ("enable_thinking", "chat_template_kwargs", "reasoning_effort")
UNAVAILABLE = 503
LIMITS = ("max_tokens", "max_completion_tokens")
"""Two names of one field: most tokens of the reply."""
NEEDED = frozenset({"model", "messages", "tools"})
"""Without them, the request would be another one: their refusal ends it."""
MOST_WORDS = 300
_NO_SYSTEM = re.compile(
    r"\b(system|developer)['\"`]?( (role|message|prompt|instruction)s?)?( \w+){0,3}"
    r" (not supported|unsupported|not enabled|not allowed)\b"
    r"|(not|n't) (support|allow|accept)( the| a| any)? ['\"`]?(system|developer)\b",
    re.IGNORECASE,
)
"""Of models whose chat template has no place for a system message, such as Gemma's."""
_NO_CALLS = re.compile(r"\broles?\b|\btool[ _](messages?|results?|responses?|calls?|call_ids?)\b", re.IGNORECASE)
"""Of servers that take functions, and no earlier calls or results of them."""
_NUMBER = re.compile(r"(?<![\w.,-])(\d{1,3}(?:,\d{3})+|\d+)(?!\w|[.,-]\w)")
"""One that stands alone: no part of a model's name."""
FEWEST_TOKENS = 16
"""A limit of a reply below it is no limit: the number means something else."""
Thinking = Mapping[bool, Mapping[str, object]]
_TEMPLATE: Thinking = {on: {"chat_template_kwargs": {"enable_thinking": on}} for on in (True, False)}
_SWITCH: Thinking = {on: {"enable_thinking": on} for on in (True, False)}
_EFFORT: Thinking = {True: {"reasoning_effort": "medium"}, False: {"reasoning_effort": "none"}}


@dataclass(frozen=True, slots=True)
class KnownServer:
    """What one kind of server takes and says.

    ``addresses`` are hosts or, with a leading colon, ports at which it is known to be; a server without any is
    recognised by its words alone. ``owner`` is what it names as the owner of its models. ``constraint`` is how a
    request says what form a reply has to have. ``thinking`` switches the model's thinking phase on and off, ``limit``
    is its name of the limit of a reply. The other fields are words of its refusals, in lower case: of a prompt that is
    ``too_long``, of pictures for a model that is ``blind``, of a thinking phase that the model lacks (``thoughtless``),
    of a field that is refused (``refusing``), and of a server whose model is not in memory yet (``loading``).
    """

    name: str
    addresses: tuple[str, ...] = ()
    owner: str = ""
    constraint: ReplyConstraint = ReplyConstraint.JSON_SCHEMA
    thinking: Thinking = field(default_factory=dict)
    limit: str = LIMITS[0]
    too_long: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    thoughtless: tuple[str, ...] = ()
    refusing: tuple[str, ...] = ()
    loading: tuple[str, ...] = ()


KNOWN_SERVERS = (
    KnownServer(
        "OpenAI",
        addresses=("api.openai.com",),
        thinking=_EFFORT,
        limit="max_completion_tokens",
        too_long=("context_length_exceeded", "maximum context length", "string_above_max_length"),
        blind=("image_url is only supported by certain models", "does not support image"),
        refusing=(
            "unknown parameter",
            "unsupported parameter",
            "unsupported value",
            "unsupported_value",
            "unrecognized request argument",
            "is not supported",
            "does not support",
        ),
    ),
    KnownServer(
        "DashScope",
        addresses=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
        thinking=_SWITCH,
        too_long=("range of input length should be",),
        blind=("unexpected item type in content",),
        thoughtless=("thinking_budget parameter must be",),
        refusing=("is restricted to", "must be set to"),
    ),
    KnownServer(
        "Gemini",
        addresses=("generativelanguage.googleapis.com",),
        thinking=_EFFORT,
        too_long=("exceeds the maximum number of tokens allowed",),
        refusing=("cannot find field",),
    ),
    KnownServer(
        "vLLM",
        owner="vllm",
        constraint=ReplyConstraint.STRUCTURED_OUTPUTS,
        thinking=_TEMPLATE,
        too_long=("maximum context length", "maximum model length"),
        blind=("is not a multimodal model", "at most 0 image"),
        refusing=(
            "extra inputs are not permitted",
            "extra_forbidden",
            "extra fields not permitted",
            "unexpected keyword argument",
        ),
    ),
    KnownServer(
        "llama.cpp",
        owner="llamacpp",
        constraint=ReplyConstraint.GRAMMAR,
        thinking=_TEMPLATE,
        too_long=("exceed_context_size_error", "exceeds the available context size"),
        blind=("image input is not supported", "unsupported content part type"),
        refusing=("unsupported param",),
        loading=("loading model",),
    ),
    KnownServer(
        "Ollama",
        addresses=(":11434",),
        thinking=_EFFORT,
        too_long=("exceeds the context length", "exceeds maximum context length"),
        blind=("missing data required for image input", "does not support image input"),
        thoughtless=("does not support thinking",),
        refusing=("invalid reasoning value", "not supported for this model"),
    ),
    KnownServer("a gateway of this project", owner="vrag_ray", constraint=ReplyConstraint.OFF, thinking=_TEMPLATE),
)
UNKNOWN_SERVER = KnownServer("another server", thinking={on: {**_SWITCH[on], **_TEMPLATE[on]} for on in (True, False)})
"""It may be any of those that have no address of their own, or a gateway to one of the others."""


def server_at(base_url: str) -> KnownServer:
    """The known server at an address; ``UNKNOWN_SERVER`` where the address does not say."""
    where = urlsplit(base_url)
    places = (where.hostname or "", f":{where.port}")
    return next(
        (server for server in KNOWN_SERVERS if any(place in server.addresses for place in places)), UNKNOWN_SERVER
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply that is not a success. ``words`` is what it says to people, ``fields`` the fields that it names apart."""

    status: int
    words: str
    body: str
    """All of the body, in lower case."""
    fields: tuple[str, ...] = ()

    @classmethod
    def of(cls, status: int, body: str) -> Refusal:
        """From the body, in whichever of the known forms it is."""
        try:
            parsed: object = json.loads(body)
        except ValueError:
            text = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>", " ", body)
            return cls(status, _shortened(text), body.lower())
        return cls(status, _shortened(words_of(parsed)) or _shortened(body), body.lower(), tuple(_fields(parsed)))

    @property
    def is_too_long(self) -> bool:
        """Whether the prompt is longer than the model takes."""
        return self._says(*(server.too_long for server in KNOWN_SERVERS))

    @property
    def is_blind(self) -> bool:
        """Whether pictures were refused, because the model has no eyes."""
        return self._says(*(server.blind for server in KNOWN_SERVERS))

    @property
    def is_loading(self) -> bool:
        """Whether the server will answer once it has its model in memory."""
        return self.status == UNAVAILABLE and self._says(*(server.loading for server in KNOWN_SERVERS))

    def refused(self, sent: Collection[str]) -> tuple[str, ...]:
        """Those of the fields that were ``sent`` that are refused by name; none for a refusal of another kind."""
        if self.is_too_long or self.is_blind:
            return ()
        if self._says(*(server.thoughtless for server in KNOWN_SERVERS)):
            return tuple(name for name in THINKING_FIELDS if name in sent)
        if not self._says(*(server.refusing for server in KNOWN_SERVERS)):
            return ()
        return tuple(name for name in sent if name not in NEEDED and (name in self.fields or self._names(name)))[:1]

    @property
    def is_of_system(self) -> bool:
        """Whether the model takes no system message."""
        return _NO_SYSTEM.search(self.words) is not None

    def most_tokens(self, sent: Mapping[str, object]) -> int | None:
        """The most tokens of a reply that the server takes, where it refuses the number that was ``sent``."""
        for limit in LIMITS:
            number = sent.get(limit)
            if isinstance(number, int) and not self.is_too_long and (limit in self.fields or limit in self.words):
                numbers = (int(digits.replace(",", "")) for digits in _NUMBER.findall(self.words))
                plausible = (most for most in numbers if FEWEST_TOKENS <= most < number and most != self.status)
                return max(plausible, default=None)
        return None

    def _says(self, *signs: tuple[str, ...]) -> bool:
        return any(sign in self.body for server in signs for sign in server)

    def _names(self, name: str) -> bool:
        """A word that is no word of English stands for the field wherever it is, another one where it is called so."""
        patterns = [rf"['\"`]{name}['\"`]", rf"(?:param|parameter|arguments?(?: supplied)?|fields?):? {name}\b"]
        if "_" in name:
            patterns.append(rf"\b{name}\b")
        if name == "stream":
            patterns.append(r"\b[Ss]treaming\b(?! options)")
        return re.search("|".join(patterns), self.words) is not None


@dataclass(slots=True)
class SentFields:
    """What one endpoint has refused so far; shared by all requests to it. ``dropped`` and ``renamed`` name the fields,
    each with the endpoint's own words."""

    model: str
    dropped: dict[str, str] = field(default_factory=dict)
    limit: str = ""
    """The name of the limit of a reply, where another one was refused."""
    most: tuple[int, str] | None = None
    """The most tokens of a reply, where more were refused."""
    no_system: str = ""
    """The words in which system messages were refused."""
    no_calls: str = ""
    """The words in which earlier calls of functions, or their results, were refused."""

    def fitted(self, fields: Mapping[str, object]) -> tuple[dict[str, object], tuple[str, ...]]:
        """The fields to send, and a notice for each one that is left out or changed."""
        notices = [_notice(self.model, name, self.dropped[name]) for name in fields if name in self.dropped]
        sent = {
            (self.limit or name) if name in LIMITS else name: value
            for name, value in fields.items()
            if name not in self.dropped
        }
        if "stream" not in sent:
            sent.pop("stream_options", None)
        for name in LIMITS:
            number = sent.get(name)
            if self.most is not None and isinstance(number, int) and number > self.most[0]:
                sent[name], words = self.most
                notices.append(
                    f"the endpoint of model {self.model} refuses {name} {number} ({words}): {sent[name]} was sent in "
                    "its place"
                )
        messages = _without_system(sent) if self.no_system else None
        if messages is not None:
            sent["messages"] = messages
            notices.append(
                f"the endpoint of model {self.model} takes no system message ({self.no_system}): its text was sent as "
                "the user's"
            )
        return sent, tuple(notices)

    def learn(self, refusal: Refusal, sent: Mapping[str, object]) -> tuple[str, ...] | None:
        """Remember what is refused of the fields that were ``sent``. None where no field is refused; else another try
        may help, and what there is to say beside the notices of ``fitted``.
        """
        most = refusal.most_tokens(sent)
        if most is not None:
            self.most = (most, refusal.words)
            return ()
        names = refusal.refused(sent)
        if not names and refusal.is_of_system and _without_system(sent) is not None:
            self.no_system = refusal.words
            return ()
        if not names and not self.no_calls and _NO_CALLS.search(refusal.words) and _has_calls(sent):
            self.no_calls = refusal.words
            return ()
        if not names:
            return None
        notices = []
        for name in names:
            if name in LIMITS and not self.limit:
                self.limit = next(limit for limit in LIMITS if limit != name)
                notices.append(f"the endpoint of model {self.model} refuses {name}: {self.limit} was sent in its place")
            elif name not in LIMITS:
                self.dropped[name] = refusal.words
            elif name == self.limit:
                # Under both names, since a request is made with one of them.
                self.dropped |= dict.fromkeys(LIMITS, refusal.words)
        return tuple(notices)


def calls_notice(model: str, words: str) -> str:
    """Of a request whose earlier calls were sent in words, since the endpoint refused them in ``words`` of its own."""
    return f"the endpoint of model {model} takes no earlier calls of functions ({words}): they were sent as text"


def _has_calls(fields: Mapping[str, object]) -> bool:
    messages = fields.get("messages")
    return isinstance(messages, list) and any("tool_calls" in message for message in messages)


def _without_system(fields: Mapping[str, object]) -> list[dict[str, object]] | None:
    """The messages with the text of a system message at the beginning of the user's next one, or as one of the user;
    None where none is a system message."""
    messages = fields.get("messages")
    if not isinstance(messages, list) or all(message["role"] != "system" for message in messages):
        return None
    folded: list[dict[str, object]] = []
    before = ""
    for message in messages:
        content = message["content"]
        if message["role"] == "system":
            before += (content if isinstance(content, str) else "".join(part["text"] for part in content)) + "\n\n"
        elif before and message["role"] == "user":
            opened = before + content if isinstance(content, str) else [{"type": "text", "text": before}, *content]
            folded.append({**message, "content": opened})
            before = ""
        else:
            folded += [{"role": "user", "content": before.strip()}] if before else []
            folded.append(message)
            before = ""
    return [*folded, {"role": "user", "content": before.strip()}] if before else folded


def _notice(model: str, name: str, words: str) -> str:
    effect = "the thinking phase is as the server is set" if name in THINKING_FIELDS else "it was left out"
    if name == "stream_options":
        effect = "tokens are not counted"
    return f"the endpoint of model {model} refuses {name} ({words}): {effect}"


def words_of(parsed: object) -> str:
    """What an error body says to people; "" where it has none of the known forms."""
    return "; ".join(dict.fromkeys(filter(None, _texts(parsed))))


def _texts(parsed: object) -> Iterator[str]:
    """The sentences of an error body: ``error`` or ``detail`` or ``message``, nested, in a list, or plain."""
    if isinstance(parsed, str):
        yield " ".join(parsed.split())
    elif isinstance(parsed, list):
        for entry in parsed:
            yield from _texts(entry)
    elif isinstance(parsed, dict):
        if isinstance(parsed.get("msg"), str):
            where = ".".join(map(str, parsed.get("loc", ()))) if isinstance(parsed.get("loc"), list) else ""
            yield f"{where}: {parsed['msg']}" if where else parsed["msg"]
        for name in ("error", "message", "detail", "errors"):
            yield from _texts(parsed.get(name))


def _fields(parsed: object) -> Iterator[str]:
    """The fields that an error body names in a place of their own: OpenAI's ``param``, FastAPI's ``loc``."""
    if isinstance(parsed, list):
        for entry in parsed:
            yield from _fields(entry)
    elif isinstance(parsed, dict):
        param, place = parsed.get("param"), parsed.get("loc")
        if isinstance(param, str) and param:
            yield re.split(r"[.\[]", param)[0]
        if isinstance(place, list):
            yield from (str(part) for part in place if part != "body")
        for name in ("error", "message", "detail", "errors"):
            yield from _fields(parsed.get(name))


def _shortened(text: str) -> str:
    # Half of a character (a surrogate) could not be written on.
    flat = " ".join(text.encode(errors="replace").decode().split())
    return flat if len(flat) <= MOST_WORDS else flat[:MOST_WORDS].rsplit(" ", 1)[0] + " …"
