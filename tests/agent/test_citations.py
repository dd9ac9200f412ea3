"""The box of a citation: of a crop, of a quote, of the passage, or where the search saw its query."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from tests.support.agent_pages import HEIGHT, WIDTH, Shelf, prose, put
from tests.support.scripted_agent import Script, Watcher, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import TextPart
from vrag_ray.agent.citations import Citation, at_value
from vrag_ray.agent.episode import Episode
from vrag_ray.agent.events import CorrectionEvent, CropEvent, MemorizeEvent, RunStatus, SearchDoneEvent
from vrag_ray.agent.needs import NeedSearch
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.support import Support
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig, EvidenceForm, Marks
from vrag_ray.corpus.elements import elements_of_clip
from vrag_ray.types import Box, Completion, Cue, Locator, PageText, PassageKind, around
from vrag_ray.types.elements import ElementKind

SEEN = Box(0.25, 0.5, 0.5, 0.75)
SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="harbour map")
ANSWER = AddAnswerNode(parent_ids=("a",), answer="there [1]", citations=("a#1",))
FORMS = list(EvidenceForm)


def keep(name: str, quote: str = "") -> SummarizeAndMemorize:
    entry = MemorizeEntry(information_id=name, is_useful=True, priority_score=4, quote=quote)
    return SummarizeAndMemorize(summarize="", memorize=(entry,))


def drawn(words: str = "", **more: Box) -> Shelf:
    shelf = Shelf()
    shelf.add("Map", put(50, 50, words) if words else (), **({"region": SEEN} | more))
    return shelf


def cited(shelf: Shelf, *lines: str | SummarizeAndMemorize | Crop, protocol: WireProtocol) -> tuple[Citation, Watcher]:
    policy = Watcher(*([SEARCH, *lines, ANSWER] if isinstance(protocol, GraphProtocol) else lines), protocol=protocol)
    run, _ = run_to_end(policy, shelf)
    record = run.record()
    assert record.corrections == 0 and record.status is RunStatus.ANSWERED
    [citation, *_] = record.citations
    return citation, policy


ROW = put(50, 50, "shore power (MWh) 5,449 1,443 4,784")


@pytest.mark.parametrize(
    ("answer", "figure"),
    [
        ("1,443: \u201cshore power (MWh) 5,449 1,443 4,784\u201d [1]", "1,443"),
        ("It was 1443 MWh in 2023 [1].", "1,443"),
        # Several of the row, one that is not in it, and one that the question knows.
        ("It rose from 1,443 to 4,784 MWh [1].", None),
        ("It was 1,444 MWh [1].", None),
        ("It was not 5,449 MWh [1].", None),
    ],
)
def test_the_value_of_a_citation_is_the_one_figure_of_its_row_that_the_answer_states(
    answer: str, figure: str | None
) -> None:
    row = Citation(
        number=1, doc_id="d", title="t", uri="u", kind=PassageKind.PAGE, page=1, node_id="a",
        bbox=around(word.box for word in ROW).as_tuple(),
    )  # fmt: skip
    elsewhere = put(50, 400, "1,443")
    question = "Was the shore power 5,449 MWh in 2023?"
    page = PageText("d", Locator(page=1), "", (*ROW, *elsewhere), WIDTH, HEIGHT)
    boxes = {word.text: word.box for word in ROW}
    assert at_value(row, answer, question, page).value_bbox == (boxes[figure].as_tuple() if figure else None)
    whole = row.model_copy(update={"bbox": None})
    assert at_value(whole, answer, "", page) == whole
    cells = [box.padded(0.01, 0.002) for box in boxes.values()]
    table = replace(page, cells=tuple(cell.as_tuple() for cell in cells))
    enclosed = boxes[figure].padded(0.01, 0.002).as_tuple() if figure else None
    assert at_value(row, answer, question, table).value_bbox == enclosed


def box_and_origin(citation: Citation) -> tuple[object, bool]:
    return citation.bbox, citation.seen_by_search


@pytest.mark.parametrize("form", FORMS)
def test_what_is_only_drawn_is_cited_where_the_search_saw_the_query(form: EvidenceForm) -> None:
    name = "Picture 1" if form.has_pictures else "Text 1"
    citation, _ = cited(drawn(), keep(name), protocol=GraphProtocol(evidence=form))
    assert box_and_origin(citation) == (SEEN.as_tuple(), True)
    tags = ("<search>map</search>", "<answer>there</answer>")
    citation, _ = cited(drawn(), *tags, protocol=TagsProtocol(evidence=form))
    assert box_and_origin(citation) == (SEEN.as_tuple(), True)


def test_an_answer_straight_from_the_results_is_cited_there_too() -> None:
    policy = Watcher(SEARCH, ANSWER.model_copy(update={"citations": ("Picture 1",)}))
    run, _ = run_to_end(policy, drawn())
    assert [box_and_origin(citation) for citation in run.record().citations] == [(SEEN.as_tuple(), True)]


def test_a_quote_names_the_element_in_which_it_stands() -> None:
    shelf = Shelf()
    first = prose(
        100, "The keel was laid in the year 1911 by the firm of", "Lund and Sons of Harlow, who built it alone."
    )
    second = prose(200, "The mast was set in the year 1912 by another firm,", "whose name is lost.")
    shelf.add("Map", [*first, *second])
    quote = "whose name is lost."
    citation, _ = cited(shelf, keep("Text 1", quote), protocol=GraphProtocol(evidence=EvidenceForm.TEXT))
    assert citation.element is not None and citation.bbox is not None
    assert (citation.element.number, citation.element.last) == (2, 2)
    whole, tight = Box(*citation.element.bbox), Box(*citation.bbox)
    assert whole == around([word.box for word in second])
    assert whole.union(tight) == whole and tight.y0 > whole.y0


NUMBERED = GraphProtocol(evidence=EvidenceForm.TEXT, marks=Marks.WORDS)


def keep_elements(*numbers: object, quote: str = "", summary: str = "") -> str:
    """As a model writes it."""
    entry = {"information_id": "Text 1", "is_useful": True, "priority_score": 4, "elements": numbers, "quote": quote}
    call = {"name": "summarize_and_memorize", "arguments": {"summarize": summary, "memorize": [entry]}}
    return f"<tool_call>{json.dumps(call)}</tool_call>"


def letter() -> Shelf:
    """A page of three paragraphs, of which the last is too long to be its own quote."""
    shelf = Shelf()
    keel = prose(100, "The keel was laid in the year 1911 by the firm of", "Lund and Sons of Harlow, who built it.")
    mast = prose(200, "The mast was set in the year 1912 by another firm,", "whose name is lost.")
    sails = prose(300, *["The sails were cut in the year 1913 by the sailors of the harbour."] * 6)
    shelf.add("Map", [*keel, *mast, *sails])
    return shelf


def test_what_a_model_names_by_its_number_is_cited_with_its_box() -> None:
    shelf = letter()
    [first, second, third] = shelf.pages[shelf.hits[0].passage.doc_id, "p1"].elements
    citation, policy = cited(shelf, keep_elements(2), protocol=NUMBERED)
    shown = [part.text for part in NUMBERED.messages(policy.prompts[1])[-1].parts if isinstance(part, TextPart)]
    assert "\n[2] The mast was set in the year 1912" in "".join(shown)
    assert citation.element is not None and citation.bbox is not None
    assert (citation.element.number, citation.element.last, citation.element.bbox) == (2, 2, second.box.as_tuple())
    assert citation.quote == " ".join(second.text.split())
    assert Box(*citation.bbox).union(second.box) == second.box
    citation, _ = cited(letter(), keep_elements("1-2"), protocol=NUMBERED)
    assert citation.element is not None
    assert (citation.element.number, citation.element.last) == (1, 2)
    assert citation.element.bbox == first.box.union(second.box).as_tuple()
    citation, _ = cited(letter(), keep_elements(3), protocol=NUMBERED)
    assert (citation.quote, citation.bbox) == ("", third.box.as_tuple())
    citation, _ = cited(letter(), keep_elements(3, quote="cut in the year 1913"), protocol=NUMBERED)
    assert citation.quote == "cut in the year 1913" and citation.bbox is not None
    assert Box(*citation.bbox).area < third.box.area / 6


def test_facts_that_stand_elsewhere_on_the_page_move_what_is_remembered() -> None:
    """Small models copy a number out of the example, and say the facts right."""
    learnt = keep_elements(1, summary="The mast was set in 1912.")
    policy = Watcher(SEARCH, learnt, ANSWER, protocol=NUMBERED)
    run, events = run_to_end(policy, letter())
    [memorized] = [event for event in events if isinstance(event, MemorizeEvent)]
    assert memorized.notes == ("what was learnt stands in part 2 of Text 1 and not in 1: that is remembered",)
    [citation] = run.record().citations
    assert citation.element is not None and citation.element.number == 2
    # As many facts in what was named: it stays.
    _, events = run_to_end(
        Watcher(SEARCH, keep_elements(2, summary="It was set in 1912."), ANSWER, protocol=NUMBERED), letter()
    )
    assert [event.notes for event in events if isinstance(event, MemorizeEvent)] == [()]


@pytest.mark.parametrize("form", [EvidenceForm.PICTURE, EvidenceForm.BOTH])
def test_a_crop_is_cited_by_its_own_box_whatever_elements_say_its_facts(form: EvidenceForm) -> None:
    crop = Crop(information_id="Picture 1", bbox=(0, 0, 990, 700))
    entry = MemorizeEntry(information_id="Picture 2", is_useful=True, priority_score=4)
    keep = SummarizeAndMemorize(summarize="The mast was set in 1912.", memorize=(entry,))
    policy = Watcher(SEARCH, crop, keep, ANSWER, protocol=GraphProtocol(evidence=form, marks=Marks.WORDS))
    run, events = run_to_end(policy, letter())
    [looked] = [event.place.bbox for event in events if isinstance(event, CropEvent)]
    assert [citation.bbox for citation in run.record().citations] == [looked]


def test_what_holds_most_of_what_was_learnt_is_remembered_first() -> None:
    """The answer cites the first item of a node."""
    shelf = Shelf()
    keel, mast = "The keel of the harbour map was laid in 1911.", "Lund and Sons of Harlow set the mast in 1912."
    shelf.add("Map", [*prose(100, keel), *prose(200, "Nothing is known of the sails."), *prose(300, mast)])
    learnt = keep_elements(2, summary="Lund and Sons of Harlow set the mast in 1912, after 1911.")
    _, events = run_to_end(Watcher(SEARCH, learnt, ANSWER, protocol=NUMBERED), shelf)
    [memorized] = [event for event in events if isinstance(event, MemorizeEvent)]
    assert [item.elements for item in memorized.items] == [(3, 3), (1, 1)]


@pytest.mark.parametrize("marks", list(Marks))
def test_a_label_or_a_quote_that_holds_no_fact_is_not_what_is_remembered(marks: Marks) -> None:
    protocol = GraphProtocol(evidence=EvidenceForm.TEXT, marks=marks)

    def memorized(summary: str, label: str, quote: str = "") -> MemorizeEvent:
        shelf = letter()
        shelf.add("Harbour map", prose(100, "The harbour map has four sheets."))
        entry = MemorizeEntry(information_id=label, is_useful=True, priority_score=4, quote=quote)
        keep = SummarizeAndMemorize(summarize=summary, memorize=(entry,))
        _, events = run_to_end(Watcher(SEARCH, keep, ANSWER, protocol=protocol), shelf)
        [event] = [event for event in events if isinstance(event, MemorizeEvent)]
        [results] = [event.results for event in events if isinstance(event, SearchDoneEvent)]
        titles = {result.information_id: result.title for result in results}
        assert set(titles.values()) == {"Map", "Harbour map"}
        return event

    other = memorized("The mast was set in 1912.", "Text 2")
    [item] = other.items
    assert (item.title, item.elements) == ("Map", (2, 2))
    assert other.notes == ("what was learnt stands in Text 1 and not in Text 2: that is remembered",)
    idle = memorized("The mast was set in 1912.", "Text 1", "whose name is lost.")
    assert [item.elements for item in idle.items] == [(2, 2)]
    assert idle.notes == ("the quote given for Text 1 says nothing of what was learnt: part 2 does",)
    good = memorized("The mast was set in 1912.", "Text 1", "set in the year 1912")
    assert [(item.quote, item.elements, good.notes) for item in good.items] == [("set in the year 1912", None, ())]


def test_parts_that_stand_apart_are_remembered_apart() -> None:
    policy = Watcher(SEARCH, keep_elements(3, 1), ANSWER, protocol=NUMBERED)
    run, events = run_to_end(policy, letter())
    [memorized] = [event for event in events if isinstance(event, MemorizeEvent)]
    assert [item.elements for item in memorized.items] == [(1, 1), (3, 3)]
    assert run.record().citations[0].element.number == 1  # type: ignore[union-attr]


def test_a_number_that_is_not_on_the_page_is_corrected() -> None:
    policy = Watcher(SEARCH, keep_elements(9), keep_elements(1), ANSWER, protocol=NUMBERED)
    run, events = run_to_end(policy, letter())
    [correction] = [event for event in events if isinstance(event, CorrectionEvent)]
    assert correction.message == "Text 1 has no part with the number 9: its numbers go from 1 to 3"
    assert run.record().status is RunStatus.ANSWERED


def test_an_answer_straight_from_the_results_names_parts_too() -> None:
    policy = Watcher(SEARCH, ANSWER.model_copy(update={"citations": ("Text 1:2", "text 1: 1-2")}), protocol=NUMBERED)
    run, _ = run_to_end(policy, letter())
    elements = [citation.element for citation in run.record().citations]
    assert [(element.number, element.last) for element in elements if element is not None] == [(2, 2), (1, 2)]


def test_what_has_no_elements_is_quoted_as_before() -> None:
    shelf = Shelf()
    shelf.add("Map", text="harbour map of Delft")
    citation, _ = cited(shelf, keep_elements(4, quote="of Delft"), protocol=NUMBERED)
    assert (citation.quote, citation.element) == ("of Delft", None)


def test_a_figure_that_stands_beside_what_is_cited_does_not_support_a_sentence() -> None:
    """It names the keel and gives the year of the mast; the firm's name may stand anywhere on the page."""
    answer_text = "Lund and Sons of Harlow laid the keel in 1912 [1]."
    policy = Watcher(SEARCH, keep_elements(1), ANSWER.model_copy(update={"answer": answer_text}), protocol=NUMBERED)
    [sentence] = run_to_end(policy, letter())[0].record().sentences
    assert (sentence.support, sentence.missing) == (Support.UNSUPPORTED, ("1912",))
    policy = Watcher(SEARCH, keep_elements(2), ANSWER.model_copy(update={"answer": answer_text}), protocol=NUMBERED)
    [sentence] = run_to_end(policy, letter())[0].record().sentences
    assert (sentence.support, sentence.missing) == (Support.CITED, ())


def test_a_place_where_only_the_search_saw_the_query_names_no_element() -> None:
    citation, _ = cited(drawn("a map"), keep("Picture 1"), protocol=GraphProtocol(evidence=EvidenceForm.PICTURE))
    assert citation.seen_by_search and citation.element is None


def test_a_crop_is_cited_by_its_own_box() -> None:
    crop = Crop(information_id="Picture 1", bbox=(0, 0, 200, 200))
    shelf = drawn()
    policy = Watcher(SEARCH, crop, keep("Picture 2"), ANSWER)
    run, events = run_to_end(policy, shelf)
    [looked] = [event.place.bbox for event in events if isinstance(event, CropEvent)]
    assert [box_and_origin(citation) for citation in run.record().citations] == [(looked, False)]


@pytest.mark.parametrize("form", [EvidenceForm.TEXT, EvidenceForm.BOTH])
def test_a_quote_is_cited_by_its_words(form: EvidenceForm) -> None:
    name = "Picture 1" if form.has_pictures else "Text 1"
    shelf = drawn("harbour map of Delft")
    citation, _ = cited(shelf, keep(name, "of Delft"), protocol=GraphProtocol(evidence=form))
    words = shelf.pages[citation.doc_id, "p1"].words
    assert box_and_origin(citation) == (words[2].box.union(words[3].box).as_tuple(), False)


def test_a_quote_of_unknown_place_is_not_placed_where_the_query_was_seen() -> None:
    shelf = Shelf()
    shelf.add("Map", text="harbour map of Delft", region=SEEN)
    for form in (EvidenceForm.PICTURE, EvidenceForm.BOTH):
        citation, _ = cited(shelf, keep("Picture 1", "of Delft"), protocol=GraphProtocol(evidence=form))
        assert (citation.quote, box_and_origin(citation)) == ("of Delft", (None, False))


def test_a_model_without_eyes_cites_the_lines_that_matched_before_what_was_seen() -> None:
    shelf = drawn("harbour map of Delft")
    citation, _ = cited(shelf, keep("Text 1"), protocol=GraphProtocol(evidence=EvidenceForm.TEXT))
    assert shelf.hits[0].passage.box is not None
    assert box_and_origin(citation) == (shelf.hits[0].passage.box.as_tuple(), False)


def test_where_no_leg_can_tell_the_whole_page_is_cited() -> None:
    shelf = Shelf()
    shelf.add("harbour map")
    citation, _ = cited(shelf, keep("Picture 1"), protocol=GraphProtocol())
    assert box_and_origin(citation) == (None, False)


def test_regions_that_the_search_saw_are_neither_shown_nor_remembered_nor_listed_as_looked_at() -> None:
    """The model is given the whole page, with and without a region; only the citation knows of it."""
    plain = Shelf()
    plain.add("Map harbour")
    seen = Shelf()
    seen.add("Map harbour", region=SEEN)
    policies = [Watcher(SEARCH, keep("Picture 1"), ANSWER) for _ in range(2)]
    events = [run_to_end(policy, shelf)[1] for policy, shelf in zip(policies, (plain, seen), strict=True)]
    assert policies[0].chats == policies[1].chats
    for event in events[1]:
        if isinstance(event, MemorizeEvent):
            assert [item.box for item in event.items] == [None]
        if isinstance(event, SearchDoneEvent):
            assert [item.bbox for item in event.results] == [None]


def test_a_clip_is_cited_by_its_time() -> None:
    shelf = Shelf()
    shelf.add("Film of a harbour", kind=PassageKind.CLIP, locator=Locator(t_start=0.0, t_end=9.0), region=SEEN)
    run, _ = run_to_end(Script(SEARCH, keep("Video 1"), ANSWER), shelf)
    assert [box_and_origin(citation) for citation in run.record().citations] == [(None, False)]


def test_a_run_that_is_out_of_time_cites_what_it_remembers_in_the_same_way() -> None:
    shelf = drawn()
    episode = Episode("q?", AgentConfig(), GraphProtocol(), reads_pages=False)
    render = GraphProtocol().render
    episode.completed(Completion(render(SEARCH)))
    assert isinstance(episode.need, NeedSearch)
    episode.searched(asyncio.run(shelf.search(["map"], top_k=1)))
    episode.completed(Completion(render(keep("Picture 1"))))
    episode.expire("the time is up")
    assert episode.answer is not None
    assert [box_and_origin(citation) for citation in episode.answer.citations] == [(SEEN.as_tuple(), True)]


def test_records_of_before_are_read_as_looked_at() -> None:
    run, _ = run_to_end(Watcher(SEARCH, keep("Picture 1"), ANSWER), drawn())
    text = run.record().to_json()
    assert RunRecord.from_json(text) == run.record()
    old = RunRecord.from_json(text.replace('"seen_by_search":true,', ""))
    assert old.citations[0].seen_by_search is False


def test_a_caption_is_cited_from_its_start_to_its_end() -> None:
    shelf = Shelf()
    spoken = "[2.0-4.5] The pump stands\n[4.5-7.0] in the harbour map room\n[10.0-13.0] Goodbye"
    shelf.add("Film", text=spoken, kind=PassageKind.CLIP, locator=Locator(t_start=0.0, t_end=20.0))
    for quote, times in (
        ("in the harbour map room", (4.5, 7.0)),
        ("Goodbye", (10.0, 13.0)),
        ("The pump", (2.0, 4.5)),
        ("", (0.0, 20.0)),
    ):
        citation, _ = cited(shelf, keep("Text 1", quote), protocol=GraphProtocol(evidence=EvidenceForm.TEXT))
        assert (citation.quote, citation.t_start, citation.t_end) == (quote, *times)


WRITTEN, BELOW = Box(0.1, 0.1, 0.6, 0.2), Box(0.1, 0.3, 0.5, 0.4)


def talk() -> Shelf:
    """A clip with two slides, what is spoken over the first, and two lines written on the second."""
    shelf = Shelf()
    clip = Locator(t_start=0.0, t_end=20.0)
    doc_id = shelf.add("Harbour map, a talk", text="[1.0-4.0] Good morning", kind=PassageKind.CLIP, locator=clip)
    cues = [Cue(1.0, 4.0, "Good morning"), Cue(8.0, 20.0, "Dredging", WRITTEN), Cue(8.0, 20.0, "4.7 million", BELOW)]
    page = shelf.pages[doc_id, clip.key]
    parts = elements_of_clip(cues, [(0.0, 8.0), (8.0, 20.0)])
    shelf.pages[doc_id, clip.key] = replace(page, text="\n".join(map(str, cues)), elements=parts)
    return shelf


@pytest.mark.parametrize(
    ("quote", "times", "box", "kind"),
    [
        ("Good morning", (1.0, 4.0), None, ElementKind.CUE),
        ("4.7 million", (8.0, 20.0), BELOW, ElementKind.PARAGRAPH),
        ("Dredging 4.7 million", (8.0, 20.0), WRITTEN.union(BELOW), ElementKind.PARAGRAPH),
    ],
)
def test_what_is_written_in_a_film_is_cited_with_its_place_for_as_long_as_it_stays(
    quote: str, times: tuple[float, float], box: Box | None, kind: ElementKind
) -> None:
    citation, _ = cited(talk(), keep("Text 1", quote), protocol=GraphProtocol(evidence=EvidenceForm.TEXT))
    assert (citation.t_start, citation.t_end) == times
    assert citation.bbox == (None if box is None else box.as_tuple())
    assert citation.element is not None and citation.element.kind is kind
    assert citation.moment == (times[0] if kind is ElementKind.CUE else times[1] - 0.5)


def test_a_model_names_text_and_speech_of_a_film_by_number() -> None:
    protocol = GraphProtocol(evidence=EvidenceForm.TEXT, marks=Marks.WORDS)
    entry = MemorizeEntry(information_id="Text 1", is_useful=True, priority_score=4, elements=(5,))
    citation, watcher = cited(
        talk(), SummarizeAndMemorize(summarize="it cost 4.7 million", memorize=(entry,)), protocol=protocol
    )
    assert (citation.t_start, citation.t_end, citation.bbox) == (8.0, 20.0, BELOW.as_tuple())
    assert (citation.quote, citation.element and citation.element.number) == ("4.7 million", 5)
    shown = "\n".join(part.text for message in watcher.chats[1] for part in message.parts if isinstance(part, TextPart))
    assert "[2] [1.0-4.0] Good morning\n[4] [8.0-20.0] Dredging\n[5] [8.0-20.0] 4.7 million" in shown
    assert "[1]" not in shown.split("<evidence>")[1]


def test_the_moment_of_a_film_that_was_kept_is_cited_as_its_shot() -> None:
    entry = MemorizeEntry(information_id="Video 1", is_useful=True, priority_score=4, key_timestamp=(11.0,))
    keeps = SummarizeAndMemorize(summarize="", memorize=(entry,))
    citation, _ = cited(talk(), keeps, protocol=GraphProtocol())
    assert (citation.t_start, citation.t_end, citation.bbox) == (8.0, 20.0, None)
    assert citation.element is not None and citation.element.kind is ElementKind.SHOT
