"""Runs over a world without a collection, a model or asyncio: pages are found by their names, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.mosaic.world.page import Page
from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.episode import Episode
from vrag_ray.agent.needs import Done, NeedCompletion, NeedPictures, NeedSearch
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.types import (
    LEXICAL,
    Completion,
    Hit,
    Locator,
    Passage,
    PassageKind,
    SearchAnswer,
    VragError,
    passage_id,
)

ReplyTo = Callable[[Prompt], str]
Draw = Callable[[PictureRequest], Picture]


@dataclass(frozen=True, slots=True)
class Call:
    """One reply and the prompt that it was given to."""

    prompt: Prompt
    reply: str


def run_in_memory(
    question: str, reply: ReplyTo, pages: Sequence[Page], draw: Draw, protocol: WireProtocol, config: AgentConfig
) -> tuple[Episode, tuple[Call, ...]]:
    """One whole run. A document's id is its page's name."""
    episode = Episode(question, config, protocol, reads_pages=False, sees_pictures=True)
    return episode, tuple(_calls(episode, reply, pages, draw))


def _calls(episode: Episode, reply: ReplyTo, pages: Sequence[Page], draw: Draw) -> Iterator[Call]:
    while not isinstance(need := episode.need, Done):
        if isinstance(need, NeedCompletion):
            call = Call(need.prompt, reply(need.prompt))
            episode.completed(Completion(call.reply))
            yield call
        elif isinstance(need, NeedSearch):
            episode.searched(_results(need.query, need.top_k, pages))
        elif isinstance(need, NeedPictures):
            episode.pictured([draw(request) for request in need.pictures])
        else:
            raise VragError(f"a run over mosaics does not need {type(need).__name__}")


def _results(query: str, top_k: int, pages: Sequence[Page]) -> SearchAnswer:
    """By words shared with the query, then by name."""
    words = set(query.split())
    shared = sorted((-len(words & set(page.name.split())), page.name) for page in pages)
    hits = tuple(_hit(name, float(-count)) for count, name in shared[:top_k] if count)
    return SearchAnswer((hits,), 1, 1, LEXICAL, 1)


def _hit(name: str, score: float) -> Hit:
    place = Locator(page=1)
    passage = Passage(passage_id(name, place, 0), name, PassageKind.IMAGE, place, 0, name)
    return Hit(passage, name, name.replace(" ", "-") + ".png", score)
