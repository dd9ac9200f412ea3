"""Two experts in one run: a planner that decides, and a grounding expert that looks closer at what a search brought.

VRAG-RL's cold start (arXiv 2505.22019, eq. 3 to 6). The planner has every turn but the one right after a search; that
one belongs to the grounding expert, whose job is the crop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vrag_ray.agent.actions import Action, Crop
from vrag_ray.agent.chat import Delta
from vrag_ray.agent.events import storable
from vrag_ray.agent.images.crop_source import source_of_crop
from vrag_ray.agent.observation import Prompt, Sighting
from vrag_ray.agent.ports import Policy, Say
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.imaging.coordinates import ModelFamily
from vrag_ray.training.sharegpt.write import Exchange
from vrag_ray.types import Completion, FamilyName, PassageKind, VragError
from vrag_ray.types.copies import with_changes

_NO_THOUGHT = "<think></think>"
_EXAMPLE_BOX = (100.0, 150.0, 300.0, 250.0)
_UNITS = {
    FamilyName.QWEN2_5_VL: "in pixels of the picture as you see it",
    FamilyName.QWEN3_VL: "in thousandths of the picture's width and height, from 0 to 1000",
}


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns of each expert. ``passed`` are turns that were the grounding expert's and that it left to the other."""

    planned: int = 0
    grounded: int = 0
    passed: int = 0


class TwoExperts:
    """The policy of one run. ``exchanges`` grows with every turn.

    ``frame`` is the family of the grounding expert: the numbers that it writes are turned into those of the protocol's
    own family, relative to the same picture. A reply is stored in the protocol's plain form, thoughts first, so that
    what is learnt from it has one form, whichever model spoke; a reply that cannot be read stays as it came. An
    exchange holds what the protocol tells any policy at that point: the extra order to the grounding expert is not part
    of it.
    """

    sees_pictures = True

    def __init__(self, planner: Policy, grounder: Policy, protocol: WireProtocol, frame: ModelFamily) -> None:
        self.exchanges: list[Exchange] = []
        self.turns = Turns()
        self._planner = planner
        self._grounder = grounder
        self._protocol = protocol
        self._frame = frame

    @property
    def reads_pages(self) -> bool:
        """Where the experts are given words."""
        return self._protocol.evidence.has_text

    async def complete(self, prompt: Prompt, say: Say) -> Completion:  # noqa: ARG002  nobody watches a construction
        """Raises ``VragError`` when the expert whose turn it is cannot reply."""
        usage: Mapping[str, int] = {}
        notices: tuple[str, ...] = ()
        sighting = shown_by_search(prompt)
        if sighting is not None and not prompt.must_answer:
            done = await self._grounder.complete(self._ordered(prompt, sighting), _unheard)
            usage, notices = done.usage, done.notices
            text = self._crop(done, prompt)
            if text is not None:
                self.turns = replace(self.turns, grounded=self.turns.grounded + 1)
                return self._completion(prompt, text, usage, notices)
            self.turns = replace(self.turns, passed=self.turns.passed + 1)
        done = await self._planner.complete(prompt, _unheard)
        self.turns = replace(self.turns, planned=self.turns.planned + 1)
        both = {name: usage.get(name, 0) + done.usage.get(name, 0) for name in (*usage, *done.usage)}
        return self._completion(
            prompt, plain_form(self._protocol, done.text, done.reasoning), both, (*notices, *done.notices)
        )

    def _completion(self, prompt: Prompt, text: str, usage: Mapping[str, int], notices: tuple[str, ...]) -> Completion:
        self.exchanges.append(Exchange(self._protocol.messages(prompt), text))
        return Completion(text=text, usage=usage, notices=notices)

    def _ordered(self, prompt: Prompt, sighting: Sighting) -> Prompt:
        """The same prompt with the order to crop beside what the search brought."""
        name = sighting.id if self._protocol.rules.names_nodes else ""
        form = self._protocol.render(Crop(information_id=name, bbox=_EXAMPLE_BOX))
        order = (
            f"Before anything else, look closer at what decides the question. Reply with one crop in the form\n{form}\n"
            f"with x1, y1, x2, y2 {_UNITS[self._frame.name]}. If all that matters can be read as it stands, reply: "
            "no crop."
        )
        *earlier, last = prompt.turns
        return replace(prompt, turns=(*earlier, replace(last, note=order)))

    def _crop(self, done: Completion, prompt: Prompt) -> str | None:
        """The grounding expert's crop in the protocol's numbers; None where the reply is none that can be made."""
        reply = self._protocol.parse(storable(done.text))
        if not isinstance(reply.action, Crop):
            return None
        try:
            source = source_of_crop(reply.action, prompt, self._protocol, prompt.pictures)
            box = self._frame.codec.decode(reply.action.bbox, source.view)
        except VragError:
            # It means no picture in view, or a box without area: as good as no crop, and the planner goes on.
            return None
        if self._frame == self._protocol.family:
            return plain_form(self._protocol, done.text, done.reasoning)
        numbers = self._protocol.family.codec.encode(box, source.view)
        crop = with_changes(reply.action, {"bbox": tuple(map(float, numbers))})
        return _written(self._protocol, crop, reply.think or done.reasoning)


def shown_by_search(prompt: Prompt) -> Sighting | None:
    """The last picture that a search has just brought into view; None after any other turn."""
    last = prompt.turns[-1] if prompt.turns else None
    if last is None or any(sighting.source for sighting in last.shown):
        return None
    return next((picture for picture in reversed(last.shown) if picture.kind is not PassageKind.TEXT), None)


def plain_form(protocol: WireProtocol, text: str, reasoning: str = "") -> str:
    """A reply as the protocol writes it, ``reasoning`` as its thoughts where it has none of its own."""
    text = storable(text)
    reply = protocol.parse(text)
    if reply.action is None:
        return text
    plain = _written(protocol, reply.action, reply.think or storable(reasoning))
    # Thoughts may talk of tags: what would not be read as it was meant stays as it came.
    return plain if protocol.parse(plain).action == reply.action else text


def _written(protocol: WireProtocol, action: Action, think: str) -> str:
    form = protocol.render(action)
    if not think.strip():
        return form
    return f"<think>{think.strip()}</think>\n{form.removeprefix(_NO_THOUGHT).lstrip()}"


def _unheard(delta: Delta) -> None:
    """Matches ``ports.Say``."""
