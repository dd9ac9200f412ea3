"""Numbers of elements on pictures: which a picture has, and how the driver puts them there. Pure functions."""

from __future__ import annotations

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.observation import Sighting
from vrag_ray.config import EvidenceForm, Marks
from vrag_ray.imaging.coordinates import Size, View
from vrag_ray.imaging.marks import Mark, PictureMarks, marked
from vrag_ray.types import FULL_PAGE, Box, PassageKind, VragError

NUMBERS_OF = {
    Marks.MARGIN: " In the margins of a page stand the numbers of its parts, each at a bracket as high as its part.",
    Marks.BOXES: " On a page its parts are outlined, each with its number in the colour of its outline.",
}
"""What an instruction says of the numbers on pictures."""


def given_marks(marks: Marks, evidence: EvidenceForm) -> Marks:
    """``marks`` as far as a model that is given ``evidence`` can have them: in words alone where it is shown no
    pictures, and none before words that it is not given."""
    if marks is Marks.OFF or (marks.on_pictures and evidence.has_pictures):
        return marks
    return Marks.WORDS if evidence.has_text else Marks.OFF


def picture_marks(sighting: Sighting, style: Marks) -> PictureMarks | None:
    """The numbers of the elements that stand in ``sighting``; None where it has none, is a clip, or is a remembered
    item, of which no element can be named."""
    if sighting.is_remembered or sighting.page is None or not sighting.elements:
        return None
    if sighting.kind is PassageKind.CLIP:
        # Its pictures are frames of many moments, and speech is in none of them.
        return None
    region = sighting.region or FULL_PAGE
    unit = View(region, Size(1, 1))
    marks = tuple(Mark(element.number, Box(*unit.from_page(element.box))) for element in sighting.elements)
    aspect = sighting.page.aspect * (region.x1 - region.x0) / (region.y1 - region.y0)
    return PictureMarks(style, marks, aspect)


def with_marks(picture: Picture, request: PictureRequest) -> Picture | VragError:
    """What ``request`` asks for, from the ``picture`` of its ``unmarked`` part; an error where no margin fits."""
    if request.marks is None:
        return picture
    try:
        done = marked(picture.png, request.marks, request.patch, request.max_pixels)
    except (OSError, ValueError, VragError) as error:
        return VragError(f"its elements cannot be numbered: {error}")
    return Picture(done.png, done.size, done.left, done.right)
