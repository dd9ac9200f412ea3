"""Reading exercises: the answer stands in the picture."""

from __future__ import annotations

import io
import itertools
import re

import numpy as np
import pytest
from PIL import Image

from benchmarks.mosaic.exercises import SEEING, WORDS, Exercise, Reading, reading_exercise
from benchmarks.mosaic.world.agent import mosaic_protocol
from benchmarks.mosaic.world.colours import COLOURS, GREY, GREY_NAME, Colour, page_name
from benchmarks.mosaic.world.drawing import page_side
from benchmarks.mosaic.world.page import CELLS, cell_at
from tests.support.mosaic_episodes import PROTOCOL
from vrag_ray.agent.chat import ImagePart
from vrag_ray.imaging.coordinates import Size, View
from vrag_ray.types import FULL_PAGE, FamilyName


def exercises(reading: Reading, count: int = 12) -> list[Exercise]:
    return [reading_exercise(PROTOCOL, seed=3, index=index, readings=(reading,)) for index in range(count)]


def picture(exercise: Exercise) -> np.ndarray:
    [png] = [part.png for message in exercise.messages for part in message.parts if isinstance(part, ImagePart)]
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def read(exercise: Exercise) -> dict[str, str]:
    """The nearest colour to the middle of each cell."""
    names = {**{colour.value: colour.rgb for colour in COLOURS}, GREY_NAME: GREY}
    middles = picture(exercise)[14::28, 14::28].reshape(16, 3)
    near = [min(names, key=lambda name, at=at: np.abs(at - names[name]).sum()) for at in middles]
    return dict(zip(CELLS, near, strict=True))


def test_all_cells_are_listed_in_reading_order() -> None:
    for exercise in exercises(Reading.ALL):
        assert exercise.reply == "".join(read(exercise).values())
        assert GREY_NAME in exercise.reply


def cells_in_reply(exercise: Exercise) -> dict[str, str]:
    return dict(re.findall(r"([a-d][1-4]) ([a-z]+?)(?=[a-d][1-4]|$)", exercise.reply))


def requested_cells(exercise: Exercise) -> list[str]:
    [message] = exercise.messages
    return message.text.rpartition(": ")[2].split()


def test_named_cells_are_listed_in_reading_order_from_any_cell() -> None:
    beginnings = set()
    for exercise in exercises(Reading.CELLS, 40):
        assert cells_in_reply(exercise) == read(exercise)
        places = [CELLS.index(cell) for cell in cells_in_reply(exercise)]
        assert all((b - a) % 16 == 1 for a, b in itertools.pairwise(places))
        beginnings.add(places[0])
    assert len(beginnings) > 8


def test_requested_cells_are_listed_in_the_order_of_the_question() -> None:
    lengths = set()
    for exercise in exercises(Reading.REQUESTED, 40):
        shown = read(exercise)
        assert cells_in_reply(exercise) == {cell: shown[cell] for cell in requested_cells(exercise)}
        assert list(cells_in_reply(exercise)) == requested_cells(exercise)
        lengths.add(len(requested_cells(exercise)))
    assert len(lengths) > 8


def test_fine_prints_are_pointed_at_with_the_numbers_that_crop_them() -> None:
    family = PROTOCOL.family
    for exercise in exercises(Reading.PLACES):
        places = re.findall(r"([a-d][1-4]) ((?:[\d.]+, ){3}[\d.]+)", exercise.reply)
        assert [cell for cell, _ in places] == requested_cells(exercise)
        for cell, numbers in places:
            x0, y0, x1, y1 = map(float, numbers.split(", "))
            box = family.codec.decode((x0, y0, x1, y1), View(FULL_PAGE, Size(page_side(family), page_side(family))))
            assert cell_at((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) == cell
            assert box.x1 - box.x0 < 0.03


def test_a_claim_is_repeated_after_what_is_seen_and_nothing_follows_where_they_differ() -> None:
    true = false = 0
    for exercise in exercises(Reading.CLAIMS, 80):
        shown = read(exercise)
        [message] = exercise.messages
        claims = re.findall(r"([a-d][1-4]) ([a-z]+?)(?=[a-d][1-4]|$)", message.text.rpartition(": ")[2])
        replies = [f"{cell} {shown[cell]}{colour}" + "nothing" * (shown[cell] != colour) for cell, colour in claims]
        assert exercise.reply == "".join(replies)
        false += exercise.reply.count("nothing")
        true += len(replies) - exercise.reply.count("nothing")
    assert true > 100 and false > 100


def test_pages_are_identified_by_what_two_cells_of_a_row_spell() -> None:
    for exercise in exercises(Reading.PAGES):
        colours = [Colour(name) for name in read(exercise).values()]
        assert exercise.reply == "".join(page_name(*colours[at : at + 2]) for at in range(0, 16, 2))


def test_an_enlarged_fine_print_is_identified_by_its_first_colour() -> None:
    for exercise in exercises(Reading.PRINT):
        assert np.abs(picture(exercise)[9, 9] - Colour(exercise.reply).rgb).max() < 64


@pytest.mark.parametrize("family", list(FamilyName))
def test_an_exercise_is_the_same_each_time_and_no_other_is_like_it(family: FamilyName) -> None:
    protocol = mosaic_protocol(family)
    first = [reading_exercise(protocol, seed=1, index=index, readings=WORDS) for index in range(20)]
    again = [reading_exercise(protocol, seed=1, index=index, readings=WORDS) for index in range(20)]
    other = [reading_exercise(protocol, seed=2, index=index, readings=WORDS) for index in range(20)]
    assert first == again
    assert len({exercise.reply for exercise in (*first, *other) if exercise.reading is not Reading.PRINT}) == len(
        [exercise for exercise in (*first, *other) if exercise.reading is not Reading.PRINT]
    )
    assert {exercise.reading for exercise in first} == set(WORDS)


def test_the_first_stage_only_asks_for_what_teaches_where_things_are() -> None:
    readings = {reading_exercise(PROTOCOL, seed=0, index=index).reading for index in range(20)}
    assert readings == set(SEEING) == {Reading.ALL, Reading.CELLS, Reading.REQUESTED}
