"""Reading exercises: a picture as the agent sees it, and what stands in it. For the stage before the agent's own.

From random weights, a model learns to see from dense answers: an exercise asks for all sixteen cells of a picture,
where a run of the agent asks for one or two. What it has to find out is where a cell is: replies that name their cells
go on in reading order from any cell, which is learnt first, or jump about as they were asked to. In the same way it
learns to point, which a run asks for only where there is fine print. ``practice`` teaches it to say what it was told.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.mosaic.world.chance import drawn_from
from benchmarks.mosaic.world.colours import COLOURS, GREY_NAME, page_name
from benchmarks.mosaic.world.drawing import draw, page_pixels, page_side, print_box
from benchmarks.mosaic.world.expert import print_crop
from benchmarks.mosaic.world.notes import NOTHING
from benchmarks.mosaic.world.page import BODY, CELLS, Page
from vrag_ray.agent.chat import ImagePart, Message, PictureRequest, Role
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.imaging.coordinates import ModelFamily, with_margin
from vrag_ray.types import Box, Locator

MOST_PRINTS = 8
POINTED_AT, CLAIMED = 4, 8


class Reading(StrEnum):
    """What is asked of a picture."""

    ALL = "all"
    """Every cell's colour in reading order, run together: one token a cell."""
    CELLS = "cells"
    """Every cell's colour after the cell's name, as in the expert's notes, in reading order from any cell."""
    REQUESTED = "requested"
    """The same for some cells, in the order in which they were asked for."""
    CLAIMS = "claims"
    """Whether claims about cells are true: what the cell shows, the claim, and ``NOTHING`` where these differ."""
    PLACES = "places"
    """The numbers to crop with in order to read the fine print of the cells asked for."""
    PAGES = "pages"
    """The names of pages that each two cells of a row spell."""
    PRINT = "print"
    """The colour with which an enlarged fine print begins."""


_TASKS = {
    Reading.ALL: "Read all cells.",
    Reading.CELLS: "Read all cells with their names.",
    Reading.REQUESTED: "Read these cells: ",
    Reading.CLAIMS: "Which of this is true: ",
    Reading.PLACES: "Where is the fine print of these cells: ",
    Reading.PAGES: "Read all cells as names of pages.",
    Reading.PRINT: "Read the fine print.",
}
SEEING = (Reading.ALL, Reading.CELLS, Reading.REQUESTED)
"""For a model that cannot see at all. With more than these in the first stage it learns several times slower."""
COMPARISONS = (Reading.CELLS, Reading.CLAIMS, Reading.CLAIMS, Reading.CLAIMS)
"""For one that sees. One that talks as well does not begin to compare in hundreds of batches."""
NAMES = (Reading.ALL, Reading.CELLS, Reading.CLAIMS, Reading.CLAIMS, Reading.PAGES, Reading.PAGES)
"""For one that compares and is about to learn to talk. One that talks well says by heart how a name goes on that it is
to read, and does not find out any more where the second half of it stands."""
WORDS = (
    Reading.ALL,
    Reading.REQUESTED,
    Reading.CLAIMS,
    Reading.CLAIMS,
    Reading.PLACES,
    Reading.PAGES,
    Reading.PAGES,
    Reading.PRINT,
)
"""For one that can: beside the agent's own calls, so that it forgets nothing."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """A chat up to where the assistant speaks, and what it should say."""

    reading: Reading
    messages: tuple[Message, ...]
    reply: str


def reading_exercise(
    protocol: WireProtocol, *, seed: int, index: int, readings: tuple[Reading, ...] = SEEING
) -> Exercise:
    """Exercise ``index``, the same for the same seed: one of ``readings`` of a random picture, of no world's page."""
    chance = drawn_from("exercise", seed, index)
    reading = chance.choice(readings)
    prints = chance.sample(BODY, 0 if reading is Reading.PAGES else chance.randrange(1, MOST_PRINTS + 1))
    page = Page(
        name=page_name(chance.choice(COLOURS), chance.choice(COLOURS)),
        cells=tuple(chance.choice(COLOURS) for _ in CELLS),
        prints=tuple(prints),
    )
    closer = with_margin(print_box(prints[0])) if reading is Reading.PRINT else None
    shown = {cell: GREY_NAME if cell in page.prints else page.colour(cell).value for cell in CELLS}
    items = _items_for(reading, shown, chance)
    label = "Picture 3" if closer is not None else f"Picture {chance.randrange(1, 3)}"
    part = ", part of Picture 1" if closer is not None else ""
    message = Message.of(
        Role.USER,
        f"<tool_response>\n{label} ({page.name}, page 1{part}):",
        ImagePart(_picture(page, closer, protocol)),
        f"\n</tool_response>\n{_TASKS[reading]}{''.join(items)}",
    )
    return Exercise(reading, (message,), _reply(reading, page, shown, items or _from_any(chance), protocol.family))


def _items_for(reading: Reading, shown: dict[str, str], chance: random.Random) -> list[str]:
    if reading is Reading.CLAIMS:
        cells = chance.sample(CELLS, chance.randrange(1, CLAIMED + 1))
        return [f"{cell} {shown[cell] if chance.random() < 0.5 else chance.choice(COLOURS).value}" for cell in cells]
    if reading is Reading.REQUESTED:
        return [f"{cell} " for cell in chance.sample(CELLS, chance.randrange(1, len(CELLS) + 1))]
    return [f"{cell} " for cell in chance.sample(BODY, POINTED_AT)] if reading is Reading.PLACES else []


def _from_any(chance: random.Random) -> list[str]:
    start = chance.randrange(len(CELLS))
    return [f"{cell} " for cell in (*CELLS[start:], *CELLS[:start])]


def _reply(reading: Reading, page: Page, shown: dict[str, str], items: list[str], family: ModelFamily) -> str:
    match reading:
        case Reading.ALL:
            return "".join(shown.values())
        case Reading.PRINT:
            return page.colour(page.prints[0]).value
        case Reading.PAGES:
            return "".join(page_name(*page.cells[at : at + 2]) for at in range(0, len(CELLS), 2))
        case Reading.PLACES:
            return ", ".join(f"{cell}{', '.join(map(str, print_crop(cell.strip(), family)))}" for cell in items)
        case Reading.CLAIMS:
            return "".join(_checked(claim, shown[claim[:2]]) for claim in items)
        case Reading.CELLS | Reading.REQUESTED:
            return "".join(f"{cell}{shown[cell.strip()]}" for cell in items)


def _checked(claim: str, colour: str) -> str:
    """As in a note on a branch."""
    cell, _, claimed = claim.partition(" ")
    return f"{cell} {colour}{claimed}{'' if claimed == colour else NOTHING}"


def _picture(page: Page, region: Box | None, protocol: WireProtocol) -> bytes:
    family = protocol.family
    area = page_side(family) ** 2
    request = PictureRequest(page.name, Locator(page=1), region, None, family.patch, area, area)
    return draw(page_pixels(page), request).png
