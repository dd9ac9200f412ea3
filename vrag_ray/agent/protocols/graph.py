"""The ``graph`` protocol: one JSON tool call a turn, ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``.

Parsing is tolerant of what models write (no closing tag, code fences, trailing commas, Python literals, arguments
as a JSON string, words around the call) and strict about what it means: anything else is a problem in words that
the model can act on. Only a policy's reply is ever parsed here, never retrieved content.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from vrag_ray.agent.actions import Action
from vrag_ray.agent.chat import Message, PictureRequest, Tool
from vrag_ray.agent.images.element_marks import given_marks, picture_marks
from vrag_ray.agent.images.remembered import remembered_views
from vrag_ray.agent.observation import Prompt, Sighting
from vrag_ray.agent.protocols import graph_calls, graph_chat
from vrag_ray.agent.protocols.loose_calls import LooseCall, find_call, loose_json
from vrag_ray.agent.protocols.question import question_view
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.agent.wire_protocol import TEXT_LIMITS, PictureLimits, Reply, Rules, TextLimits
from vrag_ray.config import EvidenceForm, Marks
from vrag_ray.imaging.coordinates import FAMILIES, ModelFamily
from vrag_ray.imaging.frame_times import sample_times
from vrag_ray.types import FamilyName, PassageKind
from vrag_ray.types.errors import validation_message

TOOLS = ("add_search_node", "summarize_and_memorize", "crop", "add_answer_node")
BLIND_TOOLS = tuple(name for name in TOOLS if name != "crop")
"""Of a model that is shown no pictures."""
MAX_REPLY_CHARS = 200_000
_EXPECTED = 'one <tool_call>{{"name": …, "arguments": {{…}}}}</tool_call> with a name out of {tools}'

_TAG = "<tool_call>"
_THINK = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)
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
    native_tools: bool = False
    instruction: str = ""
    """In place of the built-in rules."""
    marks: Marks = Marks.OFF
    """Those on pictures are given in words alone to a model that is shown none. Remembered pictures and frames of
    videos have none: what is remembered is cited by its reference."""

    @property
    def rules(self) -> Rules:
        return Rules(must_memorize=True, names_nodes=True, rebuilds=True, answer_form="add_answer_node")

    @property
    def tools(self) -> tuple[Tool, ...]:
        return graph_calls.tools(self.family, self.evidence, self._marks)

    def parse(self, text: str) -> Reply:
        names = TOOLS if self.evidence.has_pictures else BLIND_TOOLS
        expected = _EXPECTED.format(tools=", ".join(names))
        if len(text) > MAX_REPLY_CHARS:
            return Reply(
                "", None, f"the reply has {len(text)} characters, more than {MAX_REPLY_CHARS}: send {expected}"
            )
        thoughts = _THINK.findall(text)
        rest = _THINK.sub("", text)
        tag = rest.find(_TAG)
        think = "\n".join([*thoughts, rest[:tag] if tag >= 0 else ""]).strip()
        call = find_call(rest[tag + len(_TAG) :] if tag >= 0 else rest, names)
        if call.problem:
            return Reply(think if tag >= 0 else think or rest.strip(), None, f"{call.problem}: send {expected}")
        return _typed(call, think, names, expected)

    def render(self, action: Action) -> str:
        return graph_calls.tool_call(action)

    def views(self, sighting: Sighting) -> tuple[PictureRequest, ...]:
        if not self.evidence.has_pictures or sighting.kind is PassageKind.TEXT or sighting.max_pictures == 0:
            return ()
        start, end = sighting.locator.t_start, sighting.locator.t_end
        is_clip = start is not None and end is not None
        times: tuple[float | None, ...] = (sighting.t_frame,)
        if start is not None and end is not None and sighting.t_frame is None:
            most_frames = min(self.max_frames, sighting.max_pictures or self.max_frames)
            times = sample_times(start, end, self.video_fps, most_frames)
        marks = picture_marks(sighting, self._marks) if self.marks_pictures and not is_clip else None
        # A crop has the pixels of a whole picture: they are what it was made for.
        most = self.frame_pixels if is_clip and sighting.region is None else self.picture_pixels
        least = most if sighting.region is not None else self.family.patch**2
        return tuple(
            PictureRequest(sighting.doc_id, sighting.locator, sighting.region, t, self.family.patch, least, most, marks)
            for t in times
        )

    def pictures(self, prompt: Prompt) -> tuple[PictureRequest, ...]:
        if not self.evidence.has_pictures:
            return ()
        question_views = (self._question_view,) if prompt.with_picture else ()
        shown = (view for turn in prompt.turns for sighting in turn.in_view for view in self.views(sighting))
        return (*question_views, *remembered_views(prompt.graph, prompt.allotments, self.family).values(), *shown)

    def reply_form(self, prompt: Prompt) -> ReplyForm:
        return graph_calls.reply_form(prompt, self.evidence, self.family, self.views, self._marks)

    def messages(self, prompt: Prompt) -> tuple[Message, ...]:
        form = graph_chat.ChatForm(
            self.family,
            self.evidence,
            self.texts,
            self.views,
            self._question_view,
            self.native_tools,
            self.instruction,
            self._marks,
        )
        return tuple(graph_chat.messages(prompt, form))

    @property
    def marks_pictures(self) -> bool:
        return self._marks.on_pictures

    @property
    def _marks(self) -> Marks:
        return given_marks(self.marks, self.evidence)

    @property
    def _question_view(self) -> PictureRequest:
        return question_view(self.family.patch, self.family.patch**2, self.picture_pixels)


def _typed(call: LooseCall, think: str, names: tuple[str, ...], expected: str) -> Reply:
    name, arguments = call.name, call.arguments
    if name not in names:
        return Reply(think, None, f"there is no tool {name[:60]!r}: send {expected}")
    if isinstance(arguments, str):
        arguments = loose_json(arguments)
    if not isinstance(arguments, dict):
        return Reply(think, None, f"the arguments of {name} are not a JSON object")
    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        action = _ACTION.validate_python({**given, "name": name})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # The first part of the location repeats the tool's name.
        where = ".".join(str(part) for part in first["loc"][1:])
        return Reply(think, None, f"{name}: argument {where or 'arguments'}: {validation_message(first)}")
    if graph_calls.is_copied(action):
        return Reply(think, None, f"{name}: these are the words of the example: write what this question needs")
    return Reply(think, action)
