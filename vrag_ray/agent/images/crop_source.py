"""From a policy's wish to look closer to the picture it means, and to the region of it. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vrag_ray.agent.actions import Crop
from vrag_ray.agent.chat import PictureRequest
from vrag_ray.agent.images.remembered import Drawn, remembered_views
from vrag_ray.agent.memory.graph import MemoryItem
from vrag_ray.agent.memory_items import item_of, nearest
from vrag_ray.agent.observation import Prompt, Sighting
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.imaging.coordinates import BoxCodec, Size, View, snapped_to_words, with_margin
from vrag_ray.types import FULL_PAGE, PageText, PassageKind, VragError

UNKNOWN_SIZE = Size(1000, 1000)
"""Stands in for the size of a picture that was not drawn: a policy that reads words sees no pixels."""


@dataclass(frozen=True, slots=True)
class CropSource:
    """What is cropped: ``seen`` as it was shown in ``view``; ``item`` and ``node_id`` where it is a remembered one."""

    seen: Sighting
    view: View
    t_frame: float | None
    item: MemoryItem | None = None
    node_id: str = ""


def source_of_crop(action: Crop, prompt: Prompt, protocol: WireProtocol, drawn: Drawn | None) -> CropSource:
    """What ``action`` means after ``prompt``. ``drawn`` is None for a policy that is shown no pictures.

    Raises ``VragError``, in words the policy can act on, where it names nothing that can be cropped.
    """
    name = action.information_id.strip()
    shown = next((turn.shown[-1] for turn in reversed(prompt.turns) if turn.shown), None)
    pending = prompt.observation
    seen = shown if not name else pending.find(name) if pending is not None else None
    if seen is not None and item_of(seen.id, prompt.graph) is None:
        _check_kind(seen)
        if drawn is None:
            return CropSource(seen, View(seen.region or FULL_PAGE, UNKNOWN_SIZE), seen.t_frame)
        chosen = _frame(seen, protocol.views(seen), action.timestamp)
        return CropSource(seen, _view(seen, chosen, protocol, drawn), chosen.t_frame)
    reference = item_of(name or (seen.id if seen is not None else ""), prompt.graph)
    if reference is None:
        raise VragError(_nothing_meant(name, prompt))
    return _remembered(reference, action.timestamp, prompt, protocol, drawn)


def closer_look(action: Crop, source: CropSource, page: PageText | None, codec: BoxCodec) -> Sighting:
    """The region of ``source`` that ``action`` names, with a margin, and grown so that it cuts no word of ``page``.

    ``codec`` decodes the box of the action, in the frame of ``source.view``; the region is in fractions of the page.
    Raises ``CoordinateError`` for numbers that are no box. The id is still that of the source.
    """
    box = snapped_to_words(with_margin(codec.decode(action.bbox, source.view)), page.words if page is not None else ())
    return replace(source.seen, region=box, page=page, source=source.seen.id, t_frame=source.t_frame)


def _remembered(
    reference: tuple[str, int], timestamp: float | None, prompt: Prompt, protocol: WireProtocol, drawn: Drawn | None
) -> CropSource:
    node_id, index = reference
    item = prompt.graph.node(node_id).items[index]
    name = f"{node_id}#{index + 1}"
    seen = Sighting(
        name,
        item.doc_id,
        item.locator,
        item.kind,
        item.title,
        item.uri,
        item.score,
        passage_text="",
        region=item.box,
        t_frame=item.t_frame,
    )
    _check_kind(seen)
    view = View(seen.region or FULL_PAGE, UNKNOWN_SIZE)
    if drawn is not None:
        closer = next((picture for turn in prompt.turns for picture in turn.shown if picture.id == name), None)
        if closer is not None:
            view = _view(seen, protocol.views(closer)[0], protocol, drawn)
        else:
            view = _view(
                seen, remembered_views(prompt.graph, prompt.allotments, protocol.family).get(name), protocol, drawn
            )
    return CropSource(seen, view, _moment(item, timestamp), item, node_id)


def _view(seen: Sighting, request: PictureRequest | None, protocol: WireProtocol, drawn: Drawn) -> View:
    picture = drawn.get(request) if request is not None else None
    if picture is None and protocol.family.codec.needs_size:
        raise VragError(f"{seen.id} is not in view: search for it again to look closer")
    return picture.view(seen.region) if picture is not None else View(seen.region or FULL_PAGE, UNKNOWN_SIZE)


def _frame(seen: Sighting, views: Sequence[PictureRequest], timestamp: float | None) -> PictureRequest:
    if len(views) == 1:
        return views[0]
    if timestamp is None:
        raise VragError(f"{seen.id} is a video: say which of its frames by timestamp, in seconds")
    stamp = nearest(timestamp, [view.t_frame for view in views if view.t_frame is not None])
    return next(view for view in views if view.t_frame == stamp)


def _moment(item: MemoryItem, timestamp: float | None) -> float | None:
    start, end = item.locator.t_start, item.locator.t_end
    if item.t_frame is not None or timestamp is None or start is None or end is None:
        return item.t_frame
    return min(end, max(start, timestamp))


def _nothing_meant(name: str, prompt: Prompt) -> str:
    if not name:
        return "there is no picture to look at: search first"
    known = [sighting.id for sighting in prompt.observation.sightings] if prompt.observation is not None else []
    return (
        f"there is no {name[:60]!r} to crop: name one of the last results ({', '.join(known) or 'none'}) "
        "or a remembered item as <node id>#<number>"
    )


def _check_kind(seen: Sighting) -> None:
    if seen.kind is PassageKind.TEXT:
        raise VragError(f"{seen.id} is text: only a picture or a video frame can be cropped")
