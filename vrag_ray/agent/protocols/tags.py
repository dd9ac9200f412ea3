"""The ``tags`` protocol of VRAG: ``<think>``, then one of ``<search>``, ``<bbox>`` and ``<answer>`` in a reply.

The wire form is the one that the released Qwen2.5-VL-7B-VRAG was trained on: the prompt holds the whole chat; what a
search or a crop brings is a user message with one picture and nothing else; a picture has 256 to 512 patches of 28 x 28
pixels; a box is ``[x1, y1, x2, y2]`` in pixels of the picture shown last. Of another family of models, patches and
boxes are that family's, and the instruction says so; likewise where words are given beside pictures, or in place of
them, which no released checkpoint was trained on. What the original leaves open is defined here: boxes
of crops map through the crop to the page, results that were all seen and searches without hits have a notice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop
from vrag_ray.agent.chat import ImagePart, Message, PictureRequest, Role, Tool
from vrag_ray.agent.images.budget import LEFT_OUT
from vrag_ray.agent.images.element_marks import NUMBERS_OF, given_marks, picture_marks
from vrag_ray.agent.observation import Prompt, Sighting, Turn
from vrag_ray.agent.protocols.page_words import FENCE_RULE, NUMBERED, given_words, one_line, words_for_model
from vrag_ray.agent.protocols.question import question_parts, question_view
from vrag_ray.agent.reply_form import NUMBER_RULE, ReplyForm
from vrag_ray.agent.wire_protocol import TEXT_LIMITS, PictureLimits, Reply, Rules, TextLimits
from vrag_ray.config import EvidenceForm, Marks
from vrag_ray.imaging.coordinates import FAMILIES, ModelFamily
from vrag_ray.types import FamilyName, PassageKind

QUESTION_PLACE = "{question}"
MIN_PATCHES, MAX_PATCHES = 256, 512
SEARCH_DEPTH = 10
"""Hits among which the first unseen one is looked for."""
_SHAPE = (
    "Each reply thinks inside <think></think> and then takes exactly one action: <search>a few words to look for"
    "</search>, <bbox>[x1, y1, x2, y2]</bbox> or <answer>the answer in few words</answer>."
)
_SEARCHED = "breaking strength of the mooring rope"
_EXAMPLE = (
    "A first reply to another question: <think>I look for the test report of the rope.</think>\n"
    f"<search>{_SEARCHED}</search>"
)
_INSTRUCTION = (
    "Answer the question from pages of a document collection. You see no page until you search. "
    f"{_SHAPE} A search shows you a page that may help. A bbox shows you that part of the last picture enlarged, in "
    "{units}. Whenever you see something new, think about it first. Search and look as often as you "
    f"need, never for the same twice. {_EXAMPLE}"
)
_BLIND_SHAPE = (
    "Each reply thinks inside <think></think> and then takes exactly one action: <search>a few words to look for"
    "</search> or <answer>the answer in few words</answer>."
)
_BLIND_INSTRUCTION = (
    "Answer the question from a collection of documents. You know nothing of them until you search. "
    f"{_BLIND_SHAPE} A search gives you the words of a page that may help; you are given no pictures. {FENCE_RULE} "
    "Answer as soon as a page holds the answer; otherwise search for something else, never for the same twice. "
    f"{_EXAMPLE}"
)
_BESIDE = f" Beside a picture stand the words that were read from it, where there are any. {FENCE_RULE}"
_CITED = "14 weeks [12]"
_CITE = (
    f"Behind the answer stands the number of the part that proves it: <answer>{_CITED}</answer> for part 12 of the "
    "last page, [2:12] for part 12 of the second page that a search showed you."
)
_COPIED = frozenset({_SEARCHED, _CITED, "a few words to look for", "the answer in few words"})
_BOX_UNITS = {
    FamilyName.QWEN2_5_VL: "pixels of that picture",
    FamilyName.QWEN3_VL: "thousandths of that picture's width and height, 0 to 1000",
}
_NOT_A_BOX = {
    FamilyName.QWEN2_5_VL: "in pixels of the last picture",
    FamilyName.QWEN3_VL: "in thousandths of the last picture's width and height, 0 to 1000",
}
_NEXT_BLIND = "Answer now if a page above holds the answer, else search for something else. The question was:"
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
    action = _ACTION.search(rest)
    if action is None:
        return TaggedReply(think, as_written, "", "", "", rest)
    return TaggedReply(think, as_written, action[1], action[2].strip(), action[0], rest)


@dataclass(frozen=True, slots=True)
class TagsProtocol:
    """``shows`` results a search; 1 is what the released checkpoint knows."""

    shows: int = 1
    family: ModelFamily = FAMILIES[FamilyName.QWEN2_5_VL]
    limits: PictureLimits | None = None
    evidence: EvidenceForm = EvidenceForm.PICTURE
    texts: TextLimits = TEXT_LIMITS
    instruction: str = ""
    """In place of the built-in one; ``{question}`` in it stands for the question, which else follows it."""
    marks: Marks = Marks.OFF
    """None of them with a custom instruction: nothing would explain them."""

    @property
    def marks_pictures(self) -> bool:
        return self._marks.on_pictures

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
            cites_elements=self._marks is not Marks.OFF,
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        return ()

    def parse(self, text: str) -> Reply:
        reply = cut(text)
        if not reply.tag:
            shape = _SHAPE if self.evidence.has_pictures else _BLIND_SHAPE
            return Reply(reply.think or reply.rest.strip(), None, f"the reply holds no action. {shape}")
        if reply.tag == "bbox" and not self.evidence.has_pictures:
            return Reply(reply.think, None, f"there are no pictures to look at. {_BLIND_SHAPE}")
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
        if not self.evidence.has_pictures or sighting.kind is PassageKind.TEXT or sighting.max_pictures == 0:
            return ()
        area = self.family.patch**2
        is_page = sighting.locator.t_start is None
        request = PictureRequest(
            sighting.doc_id,
            sighting.locator,
            sighting.region,
            sighting.t_frame,
            self.family.patch,
            MIN_PATCHES * area,
            MAX_PATCHES * area,
            picture_marks(sighting, self._marks) if self.marks_pictures and is_page else None,
        )
        return (request,)

    def pictures(self, prompt: Prompt) -> tuple[PictureRequest, ...]:
        question_views = (self._question_view,) if prompt.with_picture and self.evidence.has_pictures else ()
        shown = (view for turn in prompt.turns for sighting in turn.in_view for view in self.views(sighting))
        return (*question_views, *shown)

    def reply_form(self, prompt: Prompt) -> ReplyForm:
        """One action in its tags; no answer before a search, only the answer in the last step."""
        actions = {"answer": r'"<answer>" ( [^<] | "<" [^/] )+ "</answer>"'}
        if not prompt.must_answer:
            actions["search"] = r'"<search>" [^<\n]+ "</search>"'
            if any(
                view in prompt.pictures
                for turn in prompt.turns
                for picture in turn.in_view
                for view in self.views(picture)
            ):
                actions["bbox"] = '"<bbox>[" number ( ", " number ){3} "]</bbox>"'
            if len(prompt.graph.nodes) == 1:
                del actions["answer"]
            elif prompt.searched_out:
                del actions["search"]
        rules = [
            f"reply ::= {' | '.join(actions)}",
            NUMBER_RULE,
            *(f"{name} ::= {rule}" for name, rule in actions.items()),
        ]
        return ReplyForm("\n".join(rules))

    def messages(self, prompt: Prompt) -> tuple[Message, ...]:
        question = question_parts(prompt, self._question_view, self.evidence)
        messages = [Message.of(Role.USER, self._opening(prompt.question), *question)]
        words = given_words(prompt, self.texts, marks=self._marks) if self.evidence.has_text else None
        for number, turn in enumerate(prompt.turns):
            messages.append(Message.of(Role.ASSISTANT, turn.reply))
            if words is None:
                messages.append(Message.of(Role.USER, *self._seen(turn, prompt)))
            else:
                own = [words_for_model(words.get((number, place))) for place in range(len(turn.shown))]
                messages.append(Message.of(Role.USER, *self._read(turn, prompt, own)))
        for line in self._last_lines(prompt):
            messages[-1] = Message.of(Role.USER, *messages[-1].parts, f"\n{line}")
        return tuple(messages)

    def _last_lines(self, prompt: Prompt) -> Iterator[str]:
        """What holds for this reply alone: at the end, so that all before it stays as a server cached it."""
        if prompt.correction:
            yield f"Your last reply was not accepted: {prompt.correction}."
        if prompt.must_answer:
            yield ANSWER_NOW
        elif prompt.turns and not self.evidence.has_pictures:
            # The released checkpoint, which sees, knows no such line.
            yield f"{_NEXT_BLIND} {prompt.question}"

    def _opening(self, question: str) -> str:
        if QUESTION_PLACE in self.instruction:
            return self.instruction.replace(QUESTION_PLACE, question)
        return f"{self.instruction or self._instruction}\nQuestion: {question}"

    @property
    def _instruction(self) -> str:
        if self.evidence.has_pictures:
            instruction = _INSTRUCTION.format(units=_BOX_UNITS[self.family.name])
            instruction += _BESIDE if self.evidence.has_text else ""
        else:
            instruction = _BLIND_INSTRUCTION
        if self._marks is Marks.OFF:
            return instruction
        numbered = NUMBERED if self.evidence.has_text else ""
        return f"{instruction}{numbered}{NUMBERS_OF.get(self._marks, '')} {_CITE}"

    @property
    def _marks(self) -> Marks:
        """As far as its model can be given them."""
        return Marks.OFF if self.instruction else given_marks(self.marks, self.evidence)

    @property
    def _question_view(self) -> PictureRequest:
        area = self.family.patch**2
        return question_view(self.family.patch, MIN_PATCHES * area, MAX_PATCHES * area)

    def _seen(self, turn: Turn, prompt: Prompt) -> Iterator[ImagePart | str]:
        if turn.note or not turn.shown:
            yield turn.note
        for sighting in turn.shown:
            if sighting.kind is PassageKind.TEXT:
                yield sighting.text
            else:
                yield from self._pictures(sighting, turn, prompt)

    def _read(self, turn: Turn, prompt: Prompt, words: Sequence[str]) -> Iterator[ImagePart | str]:
        if turn.note or not turn.shown:
            yield turn.note
        for place, (sighting, text) in enumerate(zip(turn.shown, words, strict=True)):
            if self.evidence.has_pictures and sighting.kind is not PassageKind.TEXT:
                yield from self._pictures(sighting, turn, prompt)
            yield f"{chr(10) if place else ''}{one_line(sighting.title)}, {sighting.locator}:\n{text}"

    def _pictures(self, sighting: Sighting, turn: Turn, prompt: Prompt) -> Iterator[ImagePart | str]:
        if sighting.id in turn.left_out:
            yield f"({sighting.locator} is {LEFT_OUT})"
            return
        for picture in [prompt.pictures.get(view) for view in self.views(sighting)] or [None]:
            yield ImagePart(picture.png) if picture is not None else f"({sighting.locator} cannot be shown)"


def _action(tag: str, body: str, think: str, family: FamilyName) -> Reply:
    if body in _COPIED:
        return Reply(think, None, f"the {tag} has the words of the instruction: write what this question needs")
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
