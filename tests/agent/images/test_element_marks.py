"""A policy that sees is shown the numbers of elements on pictures, and points at elements by them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.agent_pages import Shelf, prose, table
from tests.support.scripted_agent import Watcher, pictures_in, run_to_end
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import ImagePart, Message
from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import CorrectionEvent, CropEvent, Event, MemorizeEvent, ReadEvent, RunStatus
from vrag_ray.agent.images.element_marks import NUMBERS_OF
from vrag_ray.agent.observation import Sighting
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.support import Support
from vrag_ray.config import AgentConfig, AgentName, CorpusConfig, EvidenceForm, Marks
from vrag_ray.imaging.coordinates import FAMILIES, ModelFamily, with_margin
from vrag_ray.imaging.marks import MARGIN_COLOUR
from vrag_ray.policies.registry import InstructionError, wire_protocol
from vrag_ray.types import Box, FamilyName, Locator, PageText, VragError
from vrag_ray.types.elements import Element, ElementKind

MARGIN = GraphProtocol(marks=Marks.MARGIN)
SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="harbour keel mast")
ANSWER = AddAnswerNode(parent_ids=("a",), answer="It was set in 1912 [1].", citations=("a#1",))
FIGURE = Box(0.1, 0.6, 0.5, 0.9)


def keep(*numbers: int, name: str = "Picture 1", summary: str = "") -> SummarizeAndMemorize:
    entry = MemorizeEntry(information_id=name, is_useful=True, priority_score=4, elements=numbers)
    return SummarizeAndMemorize(summarize=summary, memorize=(entry,))


def harbour() -> Shelf:
    """A page of two paragraphs, a table whose cells have numbers too, and a figure; all are in the left half."""
    shelf = Shelf()
    keel = prose(100, "The keel of the harbour boat", "was laid in the year 1911.")
    mast = prose(200, "The mast was set in the year", "1912 by another firm.")
    rows = (("Year", "Sails"), ("1911", "2"), ("1912", "4"))
    doc_id = shelf.add("Map", [*keel, *mast, *table(50, 300, (0, 100), *rows)])
    page = shelf.pages[doc_id, "p1"]
    figure = Element(page.elements[-1].number + 1, ElementKind.PICTURE, FIGURE, "")
    shelf.pages[doc_id, "p1"] = replace(page, elements=(*page.elements, figure))
    return shelf


def elements_of(shelf: Shelf) -> tuple[Element, ...]:
    [page] = shelf.pages.values()
    return tuple(element for element in page.elements if element.table is None)


def shown(chat: Sequence[Message]) -> NDArray[np.uint8]:
    """The pixels [rows, columns, 3] of the last picture of a chat."""
    png = [part.png for message in chat for part in message.parts if isinstance(part, ImagePart)][-1]
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def run_with(protocol: GraphProtocol, shelf: Shelf, *lines: Action) -> tuple[Watcher, Run, Sequence[Event]]:
    policy = Watcher(*lines, protocol=protocol)
    # As policies do for which no words are given: the marks alone have the page read.
    policy.reads_pages = False
    run, events = run_to_end(policy, shelf)
    return policy, run, events


def test_a_marked_picture_is_seen_and_its_number_becomes_the_box_of_the_citation() -> None:
    shelf = harbour()
    policy, run, events = run_with(MARGIN, shelf, SEARCH, keep(2, summary="Set in 1912."), ANSWER)
    picture = shown(policy.chats[1])
    margin = (picture[:, :32] != MARGIN_COLOUR).any(axis=2)
    assert (picture[:, 32:] == 200).all(), "the page is as it was drawn"
    assert picture.shape[0] * picture.shape[1] <= MARGIN.picture_pixels
    for element in elements_of(shelf):
        lines = slice(*(round(edge * len(picture)) for edge in (element.box.y0, element.box.y1)))
        assert margin[lines].any(), f"number {element.number} stands at its height"
    [citation] = run.record().citations
    mast = elements_of(shelf)[1]
    assert citation.element is not None
    assert (citation.element.number, citation.element.bbox) == (2, mast.box.as_tuple())
    assert citation.bbox is not None and mast.box.union(Box(*citation.bbox)) == mast.box
    assert run.record().sentences[0].support is Support.CITED
    assert [type(event) for event in events].count(ReadEvent) == 1


def test_the_source_draws_the_page_alone_in_the_pixels_that_the_margin_leaves() -> None:
    shelf = harbour()
    policy, _, _ = run_with(MARGIN, shelf, SEARCH, keep(2), ANSWER)
    [request, remembered] = shelf.drawn
    assert request.marks is None and request.max_pixels < MARGIN.picture_pixels
    [size] = pictures_in(policy.chats[1])
    assert size[0] * size[1] <= MARGIN.picture_pixels
    assert pictures_in(policy.chats[2])[0] == pictures_in(policy.chats[-1])[0]
    assert remembered.marks is None, "what is remembered is shown without numbers: it is cited by its reference"


def test_outlines_are_drawn_on_the_page() -> None:
    shelf = harbour()
    policy, run, _ = run_with(GraphProtocol(marks=Marks.BOXES), shelf, SEARCH, keep(2, summary="Set in 1912."), ANSWER)
    picture = shown(policy.chats[1])
    height, width, _ = picture.shape
    for element in elements_of(shelf):
        x = round((element.box.x0 + element.box.x1) / 2 * width)
        assert (picture[round(element.box.y0 * height) - 2, x] != 200).any()
    [citation] = run.record().citations
    assert citation.element is not None and citation.element.number == 2


@pytest.mark.parametrize("marks", [Marks.MARGIN, Marks.BOXES])
def test_a_figure_has_a_number_and_is_cited_whatever_other_words_say(marks: Marks) -> None:
    shelf = harbour()
    [*_, figure] = elements_of(shelf)
    lines = SEARCH, keep(figure.number, summary="The mast was set in the year 1912."), ANSWER
    _, run, events = run_with(GraphProtocol(marks=marks), shelf, *lines)
    [citation] = run.record().citations
    assert citation.bbox == FIGURE.as_tuple()
    assert citation.element is not None and citation.element.kind is ElementKind.PICTURE
    assert [event.notes for event in events if isinstance(event, MemorizeEvent)] == [()]
    assert run.record().sentences[0].support is Support.UNCHECKED, "what it shows is not in words"


def test_a_number_that_is_not_on_the_page_is_corrected() -> None:
    shelf = harbour()
    [*_, last_row] = [cell for cell in next(iter(shelf.pages.values())).elements if cell.table is not None]
    for wrong in (last_row.number, 99):
        _, run, events = run_with(MARGIN, harbour(), SEARCH, keep(wrong), keep(2), ANSWER)
        [correction] = [event.message for event in events if isinstance(event, CorrectionEvent)]
        assert correction.startswith(f"Picture 1 has no part with the number {wrong}")
        assert run.record().citations[0].element is not None


def test_an_answer_names_a_part_of_a_picture_without_a_memory_of_it() -> None:
    answer = ANSWER.model_copy(update={"citations": ("Picture 1:2",)})
    _, run, _ = run_with(MARGIN, harbour(), SEARCH, answer)
    [citation] = run.record().citations
    assert citation.element is not None and (citation.element.number, citation.element.last) == (2, 2)


@pytest.mark.parametrize("family", [FAMILIES[name] for name in FamilyName])
@pytest.mark.parametrize("marks", list(Marks))
def test_a_crop_of_a_marked_picture_lands_where_the_model_saw_it(family: ModelFamily, marks: Marks) -> None:
    """The box around the mast is measured in the picture that was shown, margin and all."""
    protocol = GraphProtocol(family=family, marks=marks)
    shelf = harbour()
    policy, _, _ = run_with(protocol, shelf, SEARCH, ANSWER)
    height, width, _ = shown(policy.chats[1]).shape
    margin = family.patch if marks is Marks.MARGIN else 0
    target = Box(0.05, 0.2, 0.65, 0.3)
    x0, x1 = (margin + edge * (width - margin) for edge in (target.x0, target.x1))
    y0, y1 = target.y0 * height, target.y1 * height
    if not family.codec.needs_size:
        x0, x1, y0, y1 = x0 / width * 1000, x1 / width * 1000, y0 / height * 1000, y1 / height * 1000
    crop = Crop(information_id="Picture 1", bbox=(x0, y0, x1, y1))
    policy, _, events = run_with(protocol, harbour(), SEARCH, crop, keep(2, name="Picture 2"), ANSWER)
    [region] = [event.place.bbox for event in events if isinstance(event, CropEvent)]
    assert region == pytest.approx(with_margin(target).as_tuple(), abs=1e-6)


def test_a_crop_has_the_numbers_of_the_elements_in_it_and_a_crop_of_it_is_true_too() -> None:
    shelf = harbour()
    crop = Crop(information_id="Picture 1", bbox=(0, 230, 1000, 320))
    protocol = MARGIN
    policy, _, events = run_with(protocol, shelf, SEARCH, crop, keep(2, name="Picture 2", summary="1912"), ANSWER)
    [place] = [event.place for event in events if isinstance(event, CropEvent)]
    picture = shown(policy.chats[2])
    rows = np.flatnonzero((picture[:, :25] != MARGIN_COLOUR).any(axis=(1, 2)))
    assert len(rows) and rows[-1] - rows[0] < 16, "one number alone"
    [*_, sighting] = policy.prompts[2].turns[-1].shown
    [view] = protocol.views(sighting)
    assert view.marks is not None and [mark.number for mark in view.marks.marks] == [2]
    height, width, _ = picture.shape
    assert height * width <= protocol.picture_pixels
    # The right half of the closer look.
    middle = (32 + (width - 32) / 2) / width * 1000
    again = Crop(information_id="Picture 2", bbox=(middle, 0, 1000, 1000))
    _, _, events = run_with(protocol, harbour(), SEARCH, crop, again, keep(2), ANSWER)
    [_, closest] = [event.place.bbox for event in events if isinstance(event, CropEvent)]
    assert place.bbox is not None and closest is not None
    assert closest[0] == pytest.approx((place.bbox[0] + place.bbox[2]) / 2 - 0.01, abs=0.12)
    assert closest[1] == pytest.approx(place.bbox[1] - 0.01, abs=1e-6)
    assert [event for event in events if isinstance(event, CorrectionEvent)] == []


def test_a_crop_of_the_margin_alone_is_corrected_by_where_the_page_is() -> None:
    crop = Crop(information_id="Picture 1", bbox=(0, 100, 20, 300))
    _, _, events = run_with(MARGIN, harbour(), SEARCH, crop, keep(2), ANSWER)
    [correction] = [event.message for event in events if isinstance(event, CorrectionEvent)]
    assert "no area in the page, which goes from x = 3" in correction


def test_a_crop_of_a_remembered_picture_has_no_numbers_for_none_can_be_named() -> None:
    crop = Crop(information_id="a#1", bbox=(0, 200, 1000, 500))
    policy, _, _ = run_with(MARGIN, harbour(), SEARCH, keep(2, summary="1912"), crop, ANSWER)
    [closer] = policy.prompts[3].turns[-1].shown
    assert closer.is_remembered and closer.elements
    assert [view.marks for view in MARGIN.views(closer)] == [None]


def test_a_page_that_cannot_be_read_is_shown_without_numbers_and_the_notices_say_so() -> None:
    class Unread(Shelf):
        async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
            return [VragError("the decoder was killed") for _ in pages]

    shelf = Unread(**vars(harbour()))
    policy, run, _ = run_with(MARGIN, shelf, SEARCH, keep(), ANSWER)
    assert (shown(policy.chats[1]) == 200).all()
    assert run.record().notices == (
        "page 1 of Map could not be read, and its picture has no numbers: the decoder was killed",
    )
    form = MARGIN.reply_form(policy.prompts[1])
    assert "elements" not in str(form.schema) and "Picture 1:" not in str(form.schema)


def test_a_picture_that_has_no_room_for_its_numbers_is_named() -> None:
    protocol = GraphProtocol(marks=Marks.MARGIN, picture_pixels=32 * 32)
    _, run, _ = run_with(protocol, harbour(), SEARCH, keep(), ANSWER)
    assert "page 1 could not be shown: its elements cannot be numbered" in run.record().notices[0]


def test_a_model_that_sees_no_pictures_has_its_pages_read_as_before() -> None:
    policy = Watcher(SEARCH, keep(), ANSWER, protocol=MARGIN)
    policy.reads_pages = policy.sees_pictures = False
    _, events = run_to_end(policy, harbour())
    assert not any(isinstance(event, ReadEvent) for event in events)


def first(protocol: GraphProtocol) -> str:
    return run_with(protocol, harbour(), SEARCH, ANSWER)[0].chats[0][0].text


def test_the_rules_say_what_the_numbers_are_and_only_where_they_are() -> None:
    beside, outlined = "In the margins of a page", "its parts are outlined"
    bracketed = "Before each part of a page stands its number"
    plain = first(GraphProtocol())
    assert first(GraphProtocol(marks=Marks.WORDS)) == plain, "no words, and nothing on the picture"
    for marks, sentence in ((Marks.MARGIN, beside), (Marks.BOXES, outlined)):
        alone = first(GraphProtocol(marks=marks))
        assert sentence in alone and bracketed not in alone and '"elements": [7]' in alone
        both = first(GraphProtocol(marks=marks, evidence=EvidenceForm.BOTH))
        assert sentence in both and bracketed in both
        blind = first(GraphProtocol(marks=marks, evidence=EvidenceForm.TEXT))
        assert sentence not in blind and bracketed in blind
    assert beside not in plain and outlined not in plain and "elements" not in plain


def test_a_reply_held_to_a_grammar_names_numbers_of_the_picture_and_no_others() -> None:
    shelf = harbour()
    policy, _, _ = run_with(MARGIN, shelf, SEARCH, keep(2), ANSWER)
    schema = str(MARGIN.reply_form(policy.prompts[1]).schema)
    numbers = [element.number for element in elements_of(shelf)]
    assert f"'enum': {numbers}" in schema
    assert all(f"'Picture 1:{number}'" in schema for number in numbers)


def test_videos_have_no_numbers() -> None:
    sighting = Sighting(
        "Video 1", "d", replace(next(iter(harbour().pages.values())).locator, page=None, t_start=0.0, t_end=4.0),
        kind=harbour().hits[0].passage.kind, title="", uri="", score=0, passage_text="",
        page=next(iter(harbour().pages.values())), with_figures=True,
    )  # fmt: skip
    views = MARGIN.views(sighting)
    assert len(views) == 4 and all(view.marks is None for view in views)


@pytest.mark.parametrize("marks", [Marks.MARGIN, Marks.BOXES])
def test_marks_on_pictures_need_pictures(marks: Marks) -> None:
    with pytest.raises(ValueError, match=f"marks {marks} draws numbers on pictures, but evidence text shows none"):
        AgentConfig(marks=marks, evidence=EvidenceForm.TEXT)


def test_marks_on_pictures_need_an_instruction_that_explains_them(tmp_path: Path) -> None:
    file = tmp_path / "own.txt"
    names = "add_search_node summarize_and_memorize add_answer_node"
    file.write_text(names, encoding="utf-8")
    config = AgentConfig.model_validate({"instruction": {"vimrag": str(file)}, "marks": "margin"})
    with pytest.raises(InstructionError, match="does not say what the numbers on pictures are for"):
        wire_protocol(AgentName.VIMRAG, config, CorpusConfig(), None)
    file.write_text("{tools}", encoding="utf-8")
    config = AgentConfig.model_validate({"instruction": {"vimrag": str(file)}, "marks": "margin"})
    protocol = wire_protocol(AgentName.VIMRAG, config, CorpusConfig(), None)
    assert isinstance(protocol, GraphProtocol) and protocol.marks_pictures
    assert "the numbers in the margin" in first(protocol)


TAGS = TagsProtocol(marks=Marks.MARGIN)


def harbours() -> Shelf:
    """Two pages, each of two paragraphs."""
    shelf = Shelf()
    for name, year in (("north", 1911), ("south", 1951)):
        first = prose(100, f"The keel of the {name} boat", f"was laid in the year {year}.")
        shelf.add(name, [*first, *prose(200, f"The mast of the {name} boat was", f"set in the year {year + 1}.")])
    return shelf


def run_tags(
    *lines: str, protocol: TagsProtocol = TAGS, max_steps: int = 12
) -> tuple[Watcher, RunRecord, Sequence[Event]]:
    policy = Watcher(*lines, protocol=protocol)
    policy.reads_pages = protocol.evidence.has_text
    run, events = run_to_end(policy, harbours(), config=AgentConfig(max_steps=max_steps))
    return policy, run.record(), events


SEARCHES = ("<search>north boat</search>", "<search>south boat</search>")


def test_marks_in_an_answer_of_tags_become_citations_of_the_elements_that_they_name() -> None:
    answer = "<answer>In 1951 [1], and the other in 1912 [1:2]; both, as said [1, 1:2].</answer>"
    policy, record, _ = run_tags(*SEARCHES, answer)
    assert record.answer == "In 1951 [1], and the other in 1912 [2]; both, as said [1][2]."
    south, north = record.citations
    assert (south.title, north.title) == ("south", "north")
    assert south.element is not None and north.element is not None
    assert (south.element.number, north.element.number) == (1, 2)
    assert "set in the year 1912" in north.quote
    assert north.bbox == north.element.bbox
    assert [sentence.support for sentence in record.sentences] == [Support.CITED]
    assert (shown(policy.chats[1])[:, :28] != MARGIN_COLOUR).any()
    assert NUMBERS_OF[Marks.MARGIN] in policy.chats[0][0].text and "[2:12] for part 12" in policy.chats[0][0].text


def test_a_range_of_elements_is_a_citation_of_all_of_them_also_after_a_crop() -> None:
    _, record, _ = run_tags(SEARCHES[0], "<bbox>[40, 100, 400, 300]</bbox>", "<answer>1911 [1-2]</answer>")
    [citation] = record.citations
    assert citation.element is not None
    assert (citation.element.number, citation.element.last) == (1, 2)


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("[9]", "[9] is no part of page 2: its numbers go from 1 to 2"),
        ("[3:1]", "[3:1] names page 3: 2 pages were shown, numbered from 1"),
        ("[2-1]", "[2-1] is no part of page 2"),
    ],
)
def test_a_mark_that_names_nothing_is_corrected(mark: str, message: str) -> None:
    _, record, events = run_tags(*SEARCHES, f"<answer>1951 {mark}</answer>", "<answer>1951 [1]</answer>")
    [correction] = [event.message for event in events if isinstance(event, CorrectionEvent)]
    assert correction.startswith(message)
    assert record.answer == "1951 [1]" and len(record.citations) == 1


def test_an_answer_of_the_last_step_is_given_without_the_mark_that_names_nothing() -> None:
    _, record, _ = run_tags(SEARCHES[0], "<answer>1911 [9]</answer>", max_steps=2)
    assert (record.status, record.answer) == (RunStatus.ANSWERED, "1911")
    assert [citation.title for citation in record.citations] == ["north"]
    assert any("[9] is no part of page 1" in notice for notice in record.notices)
    assert record.corrections == 1, "a reply that is not well formed counts as such"
    _, record, _ = run_tags(SEARCHES[0], "<answer>[9]</answer>", max_steps=2)
    assert record.status is RunStatus.MAX_STEPS


@pytest.mark.parametrize("form", [EvidenceForm.TEXT, EvidenceForm.BOTH])
def test_tags_number_the_words_of_pages_and_an_answer_cites_their_elements(form: EvidenceForm) -> None:
    protocol = TagsProtocol(evidence=form, marks=Marks.WORDS)
    answer = "<answer>In 1951 [1], and the other in 1912 [1:2].</answer>"
    policy, record, _ = run_tags(*SEARCHES, answer, protocol=protocol)
    assert "[2] The mast of the south boat was" in policy.chats[2][-1].text
    rules = policy.chats[0][0].text
    assert "Before each part of a page stands its number" in rules and "[2:12] for part 12" in rules
    assert record.answer == "In 1951 [1], and the other in 1912 [2]."
    numbers = [(citation.title, citation.element and citation.element.number) for citation in record.citations]
    assert numbers == [("south", 1), ("north", 2)]
    assert [sentence.support for sentence in record.sentences] == [Support.CITED]


@pytest.mark.parametrize("form", [EvidenceForm.TEXT, EvidenceForm.BOTH])
def test_tags_without_marks_give_words_without_numbers(form: EvidenceForm) -> None:
    policy, record, _ = run_tags(*SEARCHES, "<answer>1951 [1]</answer>", protocol=TagsProtocol(evidence=form))
    assert "[1] The keel" not in policy.chats[2][-1].text and "proves it" not in policy.chats[0][0].text
    assert record.answer == "1951 [1]" and [citation.title for citation in record.citations] == ["north", "south"]


def test_an_answer_of_tags_without_marks_cites_all_that_was_shown() -> None:
    _, record, _ = run_tags(*SEARCHES, "<answer>1951</answer>")
    assert [citation.title for citation in record.citations] == ["north", "south"]


@pytest.mark.parametrize(
    "protocol",
    [TagsProtocol(), TagsProtocol(marks=Marks.WORDS), TagsProtocol(marks=Marks.MARGIN, instruction="<answer>")],
)
def test_prompts_and_pictures_for_the_released_checkpoint_have_no_numbers(protocol: TagsProtocol) -> None:
    policy, record, _ = run_tags(*SEARCHES, "<answer>1951 [1]</answer>", protocol=protocol)
    assert (shown(policy.chats[1]) == 200).all()
    assert "numbers of its parts" not in policy.chats[0][0].text
    assert record.answer == "1951 [1]" and [citation.element for citation in record.citations] == [None, None]
