"""The box of a citation: of a crop, of a quote, of the passage, or where the search saw its query."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.agent_pages import Shelf, prose, put
from tests.support.scripted_agent import Script, Watcher, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.citations import Citation
from vrag_ray.agent.episode import Episode
from vrag_ray.agent.events import CropEvent, MemorizeEvent, RunStatus, SearchDoneEvent
from vrag_ray.agent.needs import NeedSearch
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig, EvidenceForm
from vrag_ray.types import Box, Completion, Locator, PassageKind, around

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
    assert [box_and_origin(one) for one in run.record().citations] == [(SEEN.as_tuple(), True)]


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


def test_a_place_where_only_the_search_saw_the_query_names_no_element() -> None:
    citation, _ = cited(drawn("a map"), keep("Picture 1"), protocol=GraphProtocol(evidence=EvidenceForm.PICTURE))
    assert citation.seen_by_search and citation.element is None


def test_a_crop_is_cited_by_its_own_box() -> None:
    crop = Crop(information_id="Picture 1", bbox=(0, 0, 200, 200))
    shelf = drawn()
    policy = Watcher(SEARCH, crop, keep("Picture 2"), ANSWER)
    run, events = run_to_end(policy, shelf)
    [looked] = [event.place.bbox for event in events if isinstance(event, CropEvent)]
    assert [box_and_origin(one) for one in run.record().citations] == [(looked, False)]


@pytest.mark.parametrize("form", [EvidenceForm.TEXT, EvidenceForm.BOTH])
def test_a_quote_is_cited_by_its_words(form: EvidenceForm) -> None:
    name = "Picture 1" if form.has_pictures else "Text 1"
    shelf = drawn("harbour map of Delft")
    citation, _ = cited(shelf, keep(name, "of Delft"), protocol=GraphProtocol(evidence=form))
    words = shelf.pages[citation.doc_id, "p1"].words
    assert box_and_origin(citation) == (words[2].box.union(words[3].box).as_tuple(), False)


def test_a_quote_whose_place_is_not_known_is_not_said_to_stand_where_the_query_was_seen() -> None:
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


def test_what_the_search_saw_is_neither_shown_nor_remembered_nor_told_as_looked_at() -> None:
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
            assert [found.bbox for found in event.results] == [None]


def test_a_clip_is_cited_by_its_time() -> None:
    shelf = Shelf()
    shelf.add("Film of a harbour", kind=PassageKind.CLIP, locator=Locator(t_start=0.0, t_end=9.0), region=SEEN)
    run, _ = run_to_end(Script(SEARCH, keep("Video 1"), ANSWER), shelf)
    assert [box_and_origin(one) for one in run.record().citations] == [(None, False)]


def test_a_run_that_is_out_of_time_cites_what_it_remembers_in_the_same_way() -> None:
    shelf = drawn()
    episode = Episode("q?", AgentConfig(), GraphProtocol(), reads_pages=False)
    render = GraphProtocol().render
    episode.completed(Completion(render(SEARCH)))
    assert isinstance(episode.need, NeedSearch)
    episode.searched(asyncio.run(shelf.search("map", top_k=1, filter=None)))
    episode.completed(Completion(render(keep("Picture 1"))))
    episode.expire("the time is up")
    assert episode.answer is not None
    assert [box_and_origin(one) for one in episode.answer.citations] == [(SEEN.as_tuple(), True)]


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
