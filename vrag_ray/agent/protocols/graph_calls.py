"""The calls of the ``graph`` protocol: as tools with JSON schemas, in words, and as the grammar of one step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import PictureRequest, Tool
from vrag_ray.agent.images.remembered import remembered_views
from vrag_ray.agent.observation import Prompt, Sighting
from vrag_ray.agent.reply_form import TEXT, TITLE, ReplyForm, Schema, json_rules
from vrag_ray.agent.wire_protocol import Views
from vrag_ray.config import EvidenceForm, Marks
from vrag_ray.imaging.coordinates import ModelFamily
from vrag_ray.types import FamilyName, PassageKind

Call = AddSearchNode | SummarizeAndMemorize | Crop | AddAnswerNode
_ESCAPED = "\\u003c"
_BOX_UNITS = {
    FamilyName.QWEN2_5_VL: "in pixels of the picture as you see it",
    FamilyName.QWEN3_VL: "in thousandths of its width and height, 0 to 1000",
}
_ANY_STRING: Schema = {"type": "string"}
_BOOLEAN: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "number"}
_PRIORITY: Schema = {"type": "integer", "minimum": 1, "maximum": 5}
_SEARCHED, _LEARNT, _ANSWERED = (
    "breaking strength of the mooring rope",
    "The mooring rope broke at 412 kN.",
    "412 kN [1]",
)
COPIED = frozenset({_SEARCHED, _LEARNT, _ANSWERED})
"""What the examples say: a model that says it too has not read the question."""
_BOX: Schema = {"type": "array", "items": _NUMBER, "minItems": 4, "maxItems": 4}
_INTEGERS: Schema = {"type": "array", "items": {"type": "integer"}}
NUMBERS_THAT_PROVE = {
    Marks.WORDS: "the numbers in brackets before the parts that prove it",
    Marks.MARGIN: "the numbers in the margin, beside the parts that prove it",
    Marks.BOXES: "the numbers at the outlined parts that prove it",
}
MOST_ELEMENTS = 6
"""Elements of one page in a reply that is held to a grammar."""
MOST_CITATIONS = 12
"""Of an answer that is held to a grammar."""
MOST_STAMPS = 8
"""Key times of one video in a reply that is held to a grammar."""


def tool_call(action: Call) -> str:
    """``action`` as the protocol writes it."""
    arguments = action.model_dump(mode="json", exclude={"name"}, exclude_unset=True)
    call = json.dumps({"name": action.name, "arguments": arguments}, ensure_ascii=False)
    # Quoted pages may hold tags: inside the call they must stay text.
    return f"<tool_call>{call.replace('<', _ESCAPED)}</tool_call>"


def is_copied(action: Call) -> bool:
    """Whether a model has taken an example for what it is to do."""
    if isinstance(action, Crop):
        return False
    if isinstance(action, AddSearchNode):
        words = action.query
    else:
        words = action.summarize if isinstance(action, SummarizeAndMemorize) else action.answer
    return words.strip() in COPIED


# As tools, and in words ---------------------------------------------------------------------------------------


@cache
def tools(
    family: ModelFamily, evidence: EvidenceForm = EvidenceForm.PICTURE, marks: Marks = Marks.OFF
) -> tuple[Tool, ...]:
    """The actions with JSON schemas; no ``crop`` without pictures. ``bbox`` is described in the family's numbers.

    With ``marks`` an entry to remember has the numbers of elements.
    """
    sees = evidence.has_pictures
    labels = "Picture 1, Video 2 or Text 1" if sees else "Text 1"
    numbered = marks is not Marks.OFF
    part = f"{'Picture' if marks.on_pictures else 'Text'} 1:7 (part 7 of it), " if numbered else ""
    parents = {"type": "array", "items": _ANY_STRING, "description": "ids of the nodes that led here"}
    stamps = {"type": "array", "items": _NUMBER, "description": "of a video: seconds to keep"}
    entry = _object(
        {
            "information_id": _text(f"its label: {labels}"),
            "is_useful": _BOOLEAN,
            "priority_score": {**_PRIORITY, "description": "1 to 5"},
            **({"key_timestamp": stamps} if sees else {}),
            **({"elements": {**_INTEGERS, "description": NUMBERS_THAT_PROVE[marks]}} if numbered else {}),
            "quote": _text("the words in it that prove it"),
        },
        ("information_id", "is_useful", "priority_score"),
    )
    every = (
        _tool(
            AddSearchNode,
            "Search the collection and open a node for the results.",
            {"id": _text("a new short title"), "parent_ids": parents, "query": _text("a few words to look for")},
            ("id", "parent_ids", "query"),
        ),
        _tool(
            SummarizeAndMemorize,
            "Close the open node.",
            {
                "summarize": _text("what was learnt, or that nothing was, in one to three sentences"),
                "memorize": {"type": "array", "items": entry, "description": "an entry for each item worth keeping"},
            },
            ("summarize", "memorize"),
        ),
        _tool(
            Crop,
            "Enlarge a part of a picture, of the last results or remembered.",
            {
                "information_id": _text("the label of the picture, or a remembered item such as mooring rope#1"),
                "bbox": {**_BOX, "description": f"x1, y1, x2, y2 {_BOX_UNITS[family.name]}"},
                "timestamp": {**_NUMBER, "description": "of a video: the second of the frame"},
            },
            ("information_id", "bbox"),
        ),
        _tool(
            AddAnswerNode,
            "End with the answer.",
            {
                "parent_ids": parents,
                "answer": _text("the answer, with [1], [2] where it rests on citations"),
                "citations": {
                    "type": "array",
                    "items": _ANY_STRING,
                    "description": f"labels of results or remembered items: {labels}, {part}mooring rope#1",
                },
                "abstain": {**_BOOLEAN, "description": "true where the evidence does not suffice"},
            },
            ("parent_ids", "answer"),
        ),
    )
    return every if sees else tuple(tool for tool in every if tool.name != "crop")


@cache
def examples(family: ModelFamily, evidence: EvidenceForm, marks: Marks = Marks.OFF) -> tuple[str, ...]:
    """Every call as a whole, with what it is for: small models copy the form that they see last, so they see the right
    one. The run that they are of is about nothing that a user asks.
    """
    sees = evidence.has_pictures
    video = " (key_timestamp: the seconds of a video to keep)" if sees else ""
    label = "Picture 1" if sees else "Text 1"
    if marks is not Marks.OFF:
        entry = MemorizeEntry(information_id=label, is_useful=True, priority_score=4, elements=(7,))
        proof = f"elements: {NUMBERS_THAT_PROVE[marks]}"
    else:
        entry = MemorizeEntry(information_id=label, is_useful=True, priority_score=4, quote="broke at 412 kN")
        proof = "quote: the words in it that prove it"
    every = (
        (
            "To search, and open a node for the results:",
            AddSearchNode(id="mooring rope", parent_ids=("root",), query=_SEARCHED),
        ),
        (
            "After a search, to close its node with what was learnt and an entry for each item worth keeping "
            f"(priority_score 1 to 5, {proof}){video}:",
            SummarizeAndMemorize(summarize=_LEARNT, memorize=(entry,)),
        ),
        (
            "To enlarge a part of a picture, of the last results or remembered (bbox: x1, y1, x2, y2 "
            f"{_BOX_UNITS[family.name]}; of a video also timestamp, the second of the frame):",
            Crop(information_id="Picture 1", bbox=(120, 300, 480, 560)),
        ),
        (
            "To end with the answer, with [1], [2] where it rests on citations (abstain: true where the evidence does "
            "not suffice):",
            AddAnswerNode(parent_ids=("mooring rope",), answer=_ANSWERED, citations=("mooring rope#1",), abstain=False),
        ),
    )
    return tuple(f"{words}\n{tool_call(call)}" for words, call in every if sees or not isinstance(call, Crop))


# As the grammar of a step -------------------------------------------------------------------------------------


def reply_form(
    prompt: Prompt, evidence: EvidenceForm, family: ModelFamily, views: Views, marks: Marks = Marks.OFF
) -> ReplyForm:
    """The calls that are possible at this step, with the ids that exist in it.

    No answer before a search, no search before the open node is closed, nothing but the answer in the last step, and
    crops of what is shown only.
    """
    calls = list(_possible(prompt, evidence, family, views, marks))
    each = [_exact({"name": {"enum": [name]}, "arguments": arguments}) for name, arguments in calls]
    rules = f'{json_rules("call", {"anyOf": each})}\nreply ::= "<tool_call>" call "</tool_call>"'
    names = list(dict.fromkeys(name for name, _ in calls))
    arguments = {"anyOf": [arguments for _, arguments in calls]}
    return ReplyForm(rules, _exact({"name": {"enum": names}, "arguments": arguments}))


def _possible(
    prompt: Prompt, evidence: EvidenceForm, family: ModelFamily, views: Views, marks: Marks
) -> Iterator[tuple[str, Schema]]:
    """The name and the arguments of each call that the episode would take."""
    results = prompt.observation.sightings if prompt.observation is not None else ()
    numbered = [sighting for sighting in results if _has_numbers(sighting, prompt, evidence, views, marks)]
    nodes = _out_of([node.id for node in prompt.graph.nodes], least=1)
    items = [f"{node.id}#{n}" for node in prompt.graph.nodes for n in range(1, len(node.items) + 1)]
    if not prompt.must_answer:
        if results:
            entries = list(_entries(results, numbered, evidence))
            memorize = {
                "type": "array",
                "items": {"anyOf": entries} if entries[1:] else entries[0],
                "maxItems": len(results),
            }
            yield "summarize_and_memorize", _exact({"summarize": _ANY_STRING, "memorize": memorize})
        elif not prompt.searched_out:
            yield "add_search_node", _exact({"id": TITLE, "parent_ids": nodes, "query": TEXT})
        pictures, frames = _in_view(prompt, family, views) if evidence.has_pictures else ([], [])
        if pictures:
            yield "crop", _exact({"information_id": {"enum": pictures}, "bbox": _BOX})
        if frames:
            yield "crop", _exact({"information_id": {"enum": frames}, "bbox": _BOX, "timestamp": _NUMBER})
    if prompt.must_answer or len(prompt.graph.nodes) > 1:
        parts = [f"{sighting.id}:{element.number}" for sighting in numbered for element in sighting.elements]
        citations = _out_of([*(sighting.id for sighting in results), *parts, *items], most=MOST_CITATIONS)
        answer = {"parent_ids": nodes, "answer": TEXT, "citations": citations, "abstain": _BOOLEAN}
        yield "add_answer_node", _exact(answer)


def _has_numbers(sighting: Sighting, prompt: Prompt, evidence: EvidenceForm, views: Views, marks: Marks) -> bool:
    """Whether the prompt gives the numbers of its elements: before its words, or on a picture that could be drawn."""
    if marks is Marks.OFF or not sighting.elements:
        return False
    return evidence.has_text or any(view.marks is not None and view in prompt.pictures for view in views(sighting))


def _entries(results: Sequence[Sighting], numbered: Sequence[Sighting], evidence: EvidenceForm) -> Iterator[Schema]:
    """The schema for one result. One of those that are ``numbered`` has a form with its own numbers."""
    for sightings in (
        [sighting for sighting in results if sighting not in numbered],
        *([sighting] for sighting in numbered),
    ):
        if not sightings:
            continue
        videos = evidence.has_pictures and any(sighting.kind is PassageKind.CLIP for sighting in sightings)
        stamps: Schema = {"type": "array", "items": _NUMBER, "maxItems": MOST_STAMPS}
        numbers = [element.number for element in sightings[0].elements] if sightings[0] in numbered else []
        elements: Schema = {"type": "array", "items": {"enum": numbers}, "minItems": 1, "maxItems": MOST_ELEMENTS}
        yield _exact(
            {
                "information_id": {"enum": [sighting.id for sighting in sightings]},
                "is_useful": _BOOLEAN,
                "priority_score": _PRIORITY,
                **({"key_timestamp": stamps} if videos else {}),
                **({"elements": elements} if numbers else {"quote": _ANY_STRING}),
            }
        )


def _in_view(prompt: Prompt, family: ModelFamily, views: Views) -> tuple[list[str], list[str]]:
    """What can be cropped: single pictures by their labels, and videos of several frames."""
    shown: dict[str, tuple[PictureRequest, ...]] = {
        sighting.id: views(sighting) for turn in prompt.turns for sighting in turn.in_view
    }
    shown |= {name: (view,) for name, view in remembered_views(prompt.graph, prompt.allotments, family).items()}
    drawn = {name: views for name, views in shown.items() if any(view in prompt.pictures for view in views)}
    return [name for name, views in drawn.items() if len(views) == 1], [
        name for name, views in drawn.items() if len(views) > 1
    ]


def _out_of(values: Sequence[str], least: int = 0, most: int | None = None) -> Schema:
    """A list of some of ``values``."""
    if not values:
        return {"type": "array", "items": _ANY_STRING, "maxItems": 0}
    return {
        "type": "array",
        "items": {"enum": list(values)},
        "minItems": least,
        "maxItems": min(len(values), most or len(values)),
    }


def _exact(properties: Mapping[str, object]) -> Schema:
    """An object with all of ``properties`` and no more, as strict servers want one described."""
    return {**_object(properties, tuple(properties)), "additionalProperties": False}


def _text(description: str) -> Schema:
    return {**_ANY_STRING, "description": description}


def _object(properties: Mapping[str, object], required: tuple[str, ...]) -> dict[str, object]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _tool(action: type[Call], description: str, properties: Mapping[str, object], required: tuple[str, ...]) -> Tool:
    unknown = set(properties) - set(action.model_fields)
    assert not unknown, f"{action.__name__} has no {unknown}"
    name = str(action.model_fields["name"].default)
    return Tool(name, description, json.dumps(_object(properties, required), ensure_ascii=False))
