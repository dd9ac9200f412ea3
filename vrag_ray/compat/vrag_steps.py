"""A VRAG run as the triples that the original's generator yields, with pictures to look at."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from vrag_ray.agent.actions import Crop
from vrag_ray.agent.chat import ImagePart
from vrag_ray.agent.protocols.tags import TaggedReply, cut
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.compat.http_agent import Happening
from vrag_ray.compat.observers import ModelCall, ModelReply
from vrag_ray.imaging.coordinates import Size, raw_pixels, whole_page
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from PIL.Image import Image

    Step = tuple[str, str | Image, str | Image]

OUTLINE = (160, 32, 240)
OUTLINE_PIXELS = 7


class VragSteps:
    """Reads the happenings of one run, whose replies are in ``protocol``."""

    def __init__(self, protocol: WireProtocol) -> None:
        self._protocol = protocol
        self._acted: TaggedReply | None = None
        self._answer = ""

    def read(self, happenings: Generator[Happening]) -> Generator[Step, None, Step]:
        """``(action, content, raw)`` as it happens; the answer is the last one, and the generator's value too.

        Raises VragError where the run failed.
        """
        for happened in happenings:
            if isinstance(happened, ModelReply):
                yield from self._replied(happened)
            elif isinstance(happened, ModelCall):
                yield from self._shown(happened)
            elif isinstance(happened, RunRecord):
                if happened.error:
                    raise VragError(happened.error)
                last = ("answer", happened.answer, self._answer)
                yield last
                return last
        raise VragError("the run has no end")

    def _replied(self, model_reply: ModelReply) -> Iterator[Step]:
        reply = cut(model_reply.completion.text)
        # A server that reports thoughts apart from the text has taken their tags off.
        think, thought = (reply.think, reply.thought) if reply.think else (model_reply.completion.reasoning,) * 2
        if think:
            yield "think", think, thought
        self._acted = reply
        if reply.tag == "answer":
            self._answer = reply.action
        elif reply.tag:
            yield reply.tag, reply.body, reply.action

    def _shown(self, call: ModelCall) -> Iterator[Step]:
        """What the last action brought into view. A call that is repeated after a lost reply brings nothing new."""
        acted, self._acted = self._acted, None
        if acted is None:
            return
        new = [part.png for part in call.messages[-1].parts if isinstance(part, ImagePart)]
        if acted.tag == "search":
            for png in new:
                yield "search_image", _image(png), acted.action
        elif acted.tag == "bbox" and new:
            seen = [part.png for message in call.messages[:-1] for part in message.parts if isinstance(part, ImagePart)]
            yield "crop_image", _image(new[-1]), self._with_box(_image(seen[-1]), acted)

    def _with_box(self, image: Image, acted: TaggedReply) -> Image:
        """The picture as the model saw it, with the box that it wrote."""
        from PIL import ImageDraw

        action = self._protocol.parse(acted.action).action
        if isinstance(action, Crop):
            size = Size(*image.size)
            box = self._protocol.family.codec.decode(action.bbox, whole_page(size))
            ImageDraw.Draw(image).rectangle(raw_pixels(box, size), outline=OUTLINE, width=OUTLINE_PIXELS)
        return image


def _image(png: bytes) -> Image:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return image.convert("RGB")
