"""Chats in which all fixed text of this world's prompts and replies occurs: an expert's, a bungler's, exercises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.mosaic.exercises import Reading, reading_exercise
from benchmarks.mosaic.in_memory_rollout import Call, ReplyTo, run_in_memory
from benchmarks.mosaic.world.agent import mosaic_agent, mosaic_protocol
from benchmarks.mosaic.world.drawing import page_side
from benchmarks.mosaic.world.expert import MosaicExpert, print_crop
from benchmarks.mosaic.world.mosaic import Mosaic
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import Message, Picture, PictureRequest, Role
from vrag_ray.agent.observation import Prompt
from vrag_ray.imaging.coordinates import Size
from vrag_ray.types import FamilyName
from vrag_ray.types.copies import with_changes

Chat = tuple[Message, ...]

NOISE = 0.4
SAMPLES = 8
EXERCISES = 64


def tokenizer_corpus_chats(family: FamilyName) -> Iterator[Chat]:
    """Each with the assistant's reply as its last message."""
    protocol = mosaic_protocol(family)
    side = page_side(protocol.family)
    world = Mosaic.generate(seed=0)

    def blank(_: PictureRequest) -> Picture:
        return Picture(b"", Size(side, side))

    def played(question: str, reply: ReplyTo, max_steps: int) -> Iterator[Chat]:
        config = mosaic_agent(family, max_steps=max_steps)
        _, calls = run_in_memory(question, reply, world.pages, blank, protocol, config)
        yield from (_whole(protocol.messages(call.prompt), call) for call in calls)

    usual = mosaic_agent(family).max_steps
    for sample in range(SAMPLES):
        expert = MosaicExpert(world, protocol, noise=NOISE, sample=sample)
        for index, example in enumerate(world.train):
            # In one sample too few steps, so that the call for an answer is heard at every stage.
            yield from played(example.question, expert.reply, usual if sample else 2 + index % 4)
    for script in _bungles(world.pages[0].name, world.pages[1].name, print_crop("b2", protocol.family)):
        lines = [line if isinstance(line, str) else protocol.render(line) for line in script]
        for steps in range(2, len(lines) + 2):
            yield from played(world.train[0].question, _in_order(lines, steps), steps)
    for index in range(EXERCISES):
        exercise = reading_exercise(protocol, seed=0, index=index, readings=tuple(Reading))
        yield (*exercise.messages, Message.of(Role.ASSISTANT, exercise.reply))


def _whole(messages: Sequence[Message], call: Call) -> Chat:
    return (*messages, Message.of(Role.ASSISTANT, call.reply))


def _in_order(lines: Sequence[str], steps: int) -> ReplyTo:
    def reply(prompt: Prompt) -> str:
        return lines[min(steps - prompt.steps_left, len(lines) - 1)]

    return reply


def _bungles(page: str, other: str, box: tuple[float, float, float, float]) -> Iterator[tuple[Action | str, ...]]:
    """What a policy in training gets wrong: each is answered by a correction, whose words are wanted here."""
    search = AddSearchNode(id="s1", parent_ids=("root",), query=page)
    more = AddSearchNode(id="s2", parent_ids=("s1",), query=other)
    keep = _entry(1, useful=True), _entry(2, useful=True)
    memorise = SummarizeAndMemorize(summarize="nothing", memorize=keep)
    answer = AddAnswerNode(parent_ids=("s1",), answer="red")
    closer = Crop(information_id="Picture 1", bbox=box)
    yield search, more, search, memorise, search, memorise, answer
    yield search, memorise, with_changes(more, {"query": page}), with_changes(more, {"id": "s1"}), answer
    yield (
        search,
        memorise,
        with_changes(more, {"parent_ids": ("s1", "s2")}),
        with_changes(more, {"parent_ids": ()}),
    )
    yield search, memorise, with_changes(more, {"parent_ids": ("root", "s1")}), memorise, answer
    yield memorise, closer, answer, "", "red", '<tool_call>{"name": "crop"', '<tool_call>{"name": "look"}</tool_call>'
    for picture in (2, 3):
        closest = with_changes(closer, {"information_id": f"Picture {picture}"})
        yield (
            search,
            closer,
            closest,
            closest,
            SummarizeAndMemorize(summarize="c2 red", memorize=(*keep, _entry(3, useful=True))),
            answer,
        )
    empty = with_changes(closer, {"bbox": (*box[:2], *box[:2])})
    yield search, empty, SummarizeAndMemorize(summarize="", memorize=(_entry(4, useful=True),)), memorise, closer
    yield search, memorise, with_changes(answer, {"parent_ids": ("s3",)}), with_changes(answer, {"answer": ""})


def _entry(picture: int, *, useful: bool) -> MemorizeEntry:
    return MemorizeEntry(information_id=f"Picture {picture}", is_useful=useful, priority_score=5 if useful else 1)
