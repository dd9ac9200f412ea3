"""The ``graph`` protocol: one JSON tool call a turn, ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``.

Parsing is tolerant of what models write (no closing tag, code fences, trailing commas, Python literals, arguments
as a JSON string, words around the call) and strict about what it means: anything else is a problem in words that
the model can act on. Only a policy's reply is ever parsed here, never retrieved content.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import json5
from pydantic import TypeAdapter, ValidationError

from vrag_ray.agent.actions import Action
from vrag_ray.agent.chat import Message, PictureRequest, Tool
from vrag_ray.agent.images.remembered import kept_views
from vrag_ray.agent.observation import Prompt, Sighting
from vrag_ray.agent.protocols import graph_chat
from vrag_ray.agent.protocols.question import question_view
from vrag_ray.agent.wire_protocol import TEXT_LIMITS, PictureLimits, Reply, Rules, TextLimits
from vrag_ray.config import EvidenceForm
from vrag_ray.imaging.coordinates import FAMILIES, ModelFamily
from vrag_ray.imaging.frame_times import sample_times
from vrag_ray.types import FamilyName, PassageKind

TOOLS = ("add_search_node", "summarize_and_memorize", "crop", "add_answer_node")
BLIND_TOOLS = tuple(name for name in TOOLS if name != "crop")
"""Of a model that is shown no pictures."""
MAX_REPLY_CHARS = 200_000
MAX_LOOSE_CHARS = 20_000
"""Of a call that is not JSON: reading JSON5 takes a second for so many."""
_EXPECTED = 'one <tool_call>{{"name": …, "arguments": {{…}}}}</tool_call> with a name out of {tools}'

_ESCAPED = "\\u003c"
_THINK = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FENCE = re.compile(r"^```[a-z]*\s*|\s*```$")
_JSON = json.JSONDecoder(strict=False)
_ACTION: TypeAdapter[Action] = TypeAdapter(Action)


@dataclass(frozen=True, slots=True)
class GraphProtocol:
    """VimRAG's three tools and, where pictures are shown, ``crop``.

    A picture of a search has at most ``picture_pixels``, a frame of a video at most ``frame_pixels``; a clip is seen
    at ``video_fps`` frames a second, at most ``max_frames``, and at most as many as ``limits`` leave to it.
    """

    family: ModelFamily = FAMILIES[FamilyName.QWEN3_VL]
    picture_pixels: int = 1280 * 28 * 28
    frame_pixels: int = 128 * 32 * 32
    video_fps: float = 1.0
    max_frames: int = 32
    limits: PictureLimits | None = None
    evidence: EvidenceForm = EvidenceForm.PICTURE
    texts: TextLimits = TEXT_LIMITS

    @property
    def rules(self) -> Rules:
        return Rules(must_memorize=True, names_nodes=True, rebuilds=True, answer_form="add_answer_node")

    @property
    def tools(self) -> tuple[Tool, ...]:
        return graph_chat.tools(self.family, self.evidence)

    def parse(self, text: str) -> Reply:
        names = TOOLS if self.evidence.has_pictures else BLIND_TOOLS
        expected = _EXPECTED.format(tools=", ".join(names))
        if len(text) > MAX_REPLY_CHARS:
            return Reply(
                "", None, f"the reply has {len(text)} characters, more than {MAX_REPLY_CHARS}: send {expected}"
            )
        thoughts = _THINK.findall(text)
        rest = _THINK.sub("", text)
        call = _CALL.search(rest)
        think = "\n".join([*thoughts, rest[: call.start()] if call else ""]).strip()
        # The object itself says where it ends: a page quoted inside of it may hold a closing tag.
        start = call.start(1) if call else 0
        value = _first_object(rest, start)
        if value is None:
            whole = _braces(rest[start:])
            body = whole if whole is not None else call.group(1) if call else None
            if body is None:
                return Reply(think or rest.strip(), None, f"the reply holds no tool call: send {expected}")
            value = _loose_json(body)
        if not isinstance(value, dict):
            return Reply(think, None, f"the tool call is not a JSON object: send {expected}")
        return _typed(value, think, names, expected)

    def render(self, action: Action) -> str:
        arguments = action.model_dump(mode="json", exclude={"name"}, exclude_defaults=True)
        call = json.dumps({"name": action.name, "arguments": arguments}, ensure_ascii=False)
        # Quoted pages may hold tags: inside the call they must stay text.
        return f"<tool_call>{call.replace('<', _ESCAPED)}</tool_call>"

    def views(self, sighting: Sighting) -> tuple[PictureRequest, ...]:
        if not self.evidence.has_pictures or sighting.kind is PassageKind.TEXT or sighting.max_pictures == 0:
            return ()
        start, end = sighting.locator.t_start, sighting.locator.t_end
        is_clip = start is not None and end is not None
        times: tuple[float | None, ...] = (sighting.t_frame,)
        if start is not None and end is not None and sighting.t_frame is None:
            most_frames = min(self.max_frames, sighting.max_pictures or self.max_frames)
            times = sample_times(start, end, self.video_fps, most_frames)
        # A crop has the pixels of a whole picture: they are what it was made for.
        most = self.frame_pixels if is_clip and sighting.region is None else self.picture_pixels
        least = most if sighting.region is not None else self.family.patch**2
        return tuple(
            PictureRequest(sighting.doc_id, sighting.locator, sighting.region, t, self.family.patch, least, most)
            for t in times
        )

    def pictures(self, prompt: Prompt) -> tuple[PictureRequest, ...]:
        if not self.evidence.has_pictures:
            return ()
        asked = (self._question_view,) if prompt.with_picture else ()
        shown = (view for turn in prompt.turns for sighting in turn.in_view for view in self.views(sighting))
        return (*asked, *kept_views(prompt.graph, prompt.kept, self.family).values(), *shown)

    def messages(self, prompt: Prompt) -> tuple[Message, ...]:
        form = graph_chat.ChatForm(self.family, self.evidence, self.texts, self.views, self._question_view)
        return tuple(graph_chat.messages(prompt, form))

    @property
    def _question_view(self) -> PictureRequest:
        return question_view(self.family.patch, self.family.patch**2, self.picture_pixels)


def _typed(call: Mapping[str, object], think: str, names: tuple[str, ...], expected: str) -> Reply:
    name = call.get("name")
    if name not in names:
        return Reply(think, None, f"there is no tool {str(name)[:60]!r}: send {expected}")
    arguments = call.get("arguments", {})
    if isinstance(arguments, str):
        arguments = _loose_json(arguments)
    if not isinstance(arguments, dict):
        return Reply(think, None, f"the arguments of {name} are not a JSON object")
    try:
        return Reply(think, _ACTION.validate_python({**arguments, "name": name}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # The first part of the location repeats the tool's name.
        where = ".".join(str(part) for part in first["loc"][1:])
        return Reply(think, None, f"{name}: argument {where or 'arguments'}: {first['msg']}")


def _first_object(text: str, start: int) -> object:
    """The JSON object that begins with the first brace from ``start``; None where there is none, or it is no JSON."""
    brace = text.find("{", start)
    try:
        value: object = _JSON.raw_decode(text, brace)[0] if brace >= 0 else None
    except (ValueError, RecursionError):
        return None
    return value


def _loose_json(text: str) -> object:
    """The JSON or Python value in ``text``, None where there is none."""
    bare = _FENCE.sub("", text.strip()).strip()
    braced = _braces(bare)
    for candidate in (bare, braced):
        if candidate is None:
            continue
        try:
            value: object = _JSON.decode(candidate)
        except (ValueError, RecursionError):
            continue
        return value
    if len(bare) <= MAX_LOOSE_CHARS:
        try:
            loose: object = json5.loads(braced or bare)
        except (ValueError, RecursionError):
            pass
        else:
            return loose
    try:
        literal: object = ast.literal_eval(bare)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return literal


def _braces(text: str) -> str | None:
    """The first balanced ``{…}`` of ``text``; braces inside JSON strings do not count."""
    start = text.find("{")
    if start < 0:
        return None
    depth, quoted, escaped = 0, False, False
    for place in range(start, len(text)):
        char = text[place]
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return text[start : place + 1]
    return None
