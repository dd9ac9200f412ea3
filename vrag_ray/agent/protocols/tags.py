"""The ``tags`` protocol of VRAG: ``<think>``, then one of ``<search>``, ``<bbox>`` and ``<answer>`` in a reply.

The wire form is the one that the released Qwen2.5-VL-7B-VRAG was trained on: the whole chat is kept; what a search or
a crop brings is a user message with one picture and nothing else; a picture has 256 to 512 patches of 28 x 28 pixels;
a box is ``[x1, y1, x2, y2]`` in pixels of the picture shown last. Of another family of models, patches and boxes are
that family's, and the instruction says so. What the original leaves open is defined here: boxes
of crops map through the crop to the page, results that were all seen and searches that found nothing say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop
from vrag_ray.agent.chat import ImagePart, Message, PictureRequest, Role, Tool
from vrag_ray.agent.images.budget import LEFT_OUT
from vrag_ray.agent.observation import Prompt, Sighting, Turn
from vrag_ray.agent.wire_protocol import PictureLimits, Reply, Rules
from vrag_ray.imaging.coordinates import FAMILIES, ModelFamily
from vrag_ray.types import FamilyName, PassageKind

MIN_PATCHES, MAX_PATCHES = 256, 512
SEARCH_DEPTH = 10
"""Hits among which the first unseen one is looked for."""
_SHAPE = (
    "Each reply thinks inside <think></think> and then takes exactly one action: <search>query</search>, "
    "<bbox>[x1, y1, x2, y2]</bbox> or <answer>answer</answer>."
)
_INSTRUCTION = (
    "Answer the question from pages of a document collection. You see no page until you search. "
    f"{_SHAPE} A search shows you a page that may help. A bbox shows you that part of the last picture enlarged, in "
    "{units}. Whenever you see something new, think about it first. Search and look as often as you "
    "need; once you know the answer, give it in few words, for example <answer>42 tonnes</answer>."
)
_BOX_UNITS = {
    FamilyName.QWEN2_5_VL: "pixels of that picture",
    FamilyName.QWEN3_VL: "thousandths of that picture's width and height, 0 to 1000",
}
_NOT_A_BOX = {
    FamilyName.QWEN2_5_VL: "in pixels of the last picture",
    FamilyName.QWEN3_VL: "in thousandths of the last picture's width and height, 0 to 1000",
}
ANSWER_NOW = "This is the last turn: reply with <think></think> and <answer></answer> now."
_THINK = re.compile(r"<think>(.*?)(?:</think>|(?=<(?:search|bbox|answer)>)|\Z)", re.DOTALL)
_ACTION = re.compile(r"<(search|bbox|answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})")


@dataclass(frozen=True, slots=True)
class TaggedReply:
    """A reply cut at its tags. ``thought`` and ``action`` are those parts as they were written, tags included.

    ``tag`` is ``search``, ``bbox`` or ``answer``, empty where there is no action; ``rest`` is what is no thought.
    """

    think: str
    thought: str
    tag: str
    body: str
    action: str
    rest: str


def cut(text: str) -> TaggedReply:
    """Any text at all at its tags: the first thought, and the first action that does not stand inside of it."""
    thought = _THINK.search(text)
    think, as_written = (thought[1].strip(), thought[0]) if thought else ("", "")
    # A tag that is only talked about inside the thoughts is no action.
    rest = text if thought is None else text[: thought.start()] + text[thought.end() :]
    found = _ACTION.search(rest)
    if found is None:
        return TaggedReply(think, as_written, "", "", "", rest)
    return TaggedReply(think, as_written, found[1], found[2].strip(), found[0], rest)


@dataclass(frozen=True, slots=True)
class TagsProtocol:
    """``shows`` results a search; 1 is what the released checkpoint knows."""

    shows: int = 1
    family: ModelFamily = FAMILIES[FamilyName.QWEN2_5_VL]
    limits: PictureLimits | None = None

    @property
    def rules(self) -> Rules:
        return Rules(
            must_memorize=False,
            names_nodes=False,
            rebuilds=False,
            answer_form="<answer>…</answer>",
            asks_for=max(SEARCH_DEPTH, self.shows),
            shows=self.shows,
            skips_seen=True,
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        return ()

    def parse(self, text: str) -> Reply:
        reply = cut(text)
        if not reply.tag:
            return Reply(reply.think or reply.rest.strip(), None, f"the reply holds no action. {_SHAPE}")
        return _action(reply.tag, reply.body, reply.think, self.family.name)

    def render(self, action: Action) -> str:
        if isinstance(action, AddSearchNode):
            return f"<think></think>\n<search>{action.query}</search>"
        if isinstance(action, Crop):
            return f"<think></think>\n<bbox>[{', '.join(f'{number:g}' for number in action.bbox)}]</bbox>"
        if isinstance(action, AddAnswerNode):
            return f"<think></think>\n<answer>{action.answer}</answer>"
        raise ValueError(f"the tags protocol has no {action.name}")

    def views(self, sighting: Sighting) -> tuple[PictureRequest, ...]:
        if sighting.kind is PassageKind.TEXT or sighting.max_pictures == 0:
            return ()
        area = self.family.patch**2
        request = PictureRequest(
            sighting.doc_id,
            sighting.locator,
            sighting.region,
            sighting.t_frame,
            self.family.patch,
            MIN_PATCHES * area,
            MAX_PATCHES * area,
        )
        return (request,)

    def pictures(self, prompt: Prompt) -> tuple[PictureRequest, ...]:
        return tuple(view for turn in prompt.turns for sighting in turn.in_view for view in self.views(sighting))

    def messages(self, prompt: Prompt) -> tuple[Message, ...]:
        instruction = _INSTRUCTION.format(units=_BOX_UNITS[self.family.name])
        messages = [Message.of(Role.USER, f"{instruction}\nQuestion: {prompt.question}")]
        for turn in prompt.turns:
            messages.append(Message.of(Role.ASSISTANT, turn.reply))
            messages.append(Message.of(Role.USER, *self._seen(turn, prompt)))
        if prompt.must_answer:
            last = messages.pop()
            messages.append(Message.of(Role.USER, *last.parts, f"\n{ANSWER_NOW}"))
        return tuple(messages)

    def _seen(self, turn: Turn, prompt: Prompt) -> Iterator[ImagePart | str]:
        if turn.note or not turn.shown:
            yield turn.note
        for sighting in turn.shown:
            if sighting.kind is PassageKind.TEXT:
                yield sighting.text
            elif sighting.id in turn.left_out:
                yield f"({sighting.locator} is {LEFT_OUT})"
            else:
                drawn = [prompt.pictures.get(view) for view in self.views(sighting)] or [None]
                for picture in drawn:
                    yield ImagePart(picture.png) if picture is not None else f"({sighting.locator} cannot be shown)"


def _action(tag: str, body: str, think: str, family: FamilyName) -> Reply:
    if tag == "search":
        if not body:
            return Reply(think, None, "the search is empty: write what to look for inside <search></search>")
        return Reply(think, AddSearchNode(id="", parent_ids=(), query=body))
    if tag == "answer":
        return Reply(think, AddAnswerNode(parent_ids=(), answer=body))
    numbers = [float(number) for number in _NUMBER.findall(body)[:5]]
    if len(numbers) != 4:
        return Reply(think, None, f"a bbox is four numbers, <bbox>[x1, y1, x2, y2]</bbox>, {_NOT_A_BOX[family]}")
    return Reply(think, Crop(bbox=(numbers[0], numbers[1], numbers[2], numbers[3])))
