"""A question that comes with a picture: the search, what the model is shown, and what stays of it."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.agent_pages import library
from tests.support.pictures import grey_png
from tests.support.scripted_agent import Script, Watcher, pictures_in, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import QUESTION, Message, QuestionPicture, TextPart
from vrag_ray.agent.episode import SEARCHED_ONLY, Episode
from vrag_ray.agent.events import PictureRef, RunStatus, StartEvent
from vrag_ray.agent.needs import NeedCompletion, NeedPictures, NeedSearch
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.wire_protocol import PictureLimits, WireProtocol
from vrag_ray.config import AgentConfig, EvidenceForm
from vrag_ray.types import Completion, SearchAnswer, VragError

PICTURE = QuestionPicture(grey_png(100), hashlib.sha256(b"as it was sent").hexdigest(), 14)
SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="units sold by region")
AGAIN = AddSearchNode(id="b", parent_ids=("a",), query="workshop founded")
KEEP = SummarizeAndMemorize(
    summarize="s", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4),)
)
ANSWER = AddAnswerNode(parent_ids=("a",), answer="15")
TAG_LINES = ("<search>units sold</search>", "<search>workshop</search>", "<answer>15</answer>")


def test_the_first_search_is_made_with_the_picture_and_every_later_one_without() -> None:
    shelf = library()
    run_to_end(Watcher(SEARCH, KEEP, AGAIN, KEEP, ANSWER), shelf, picture=PICTURE)
    assert shelf.queries == [SEARCH.query, AGAIN.query]
    assert shelf.pictures_asked == [PICTURE.png, None]


def test_a_first_search_that_fails_has_used_the_picture_up() -> None:
    episode = Episode("q?", AgentConfig(), GraphProtocol(), picture=PICTURE)
    render = GraphProtocol().render
    episode.completed(Completion(render(SEARCH)))
    assert isinstance(episode.need, NeedSearch) and episode.need.picture == PICTURE.png
    episode.search_failed("no leg takes pictures")
    episode.completed(Completion(render(SummarizeAndMemorize(summarize="nothing"))))
    episode.completed(Completion(render(AGAIN)))
    assert isinstance(episode.need, NeedSearch) and episode.need.picture is None


def test_it_is_drawn_once_and_part_of_every_prompts_first_user_message() -> None:
    for protocol, lines in ((GraphProtocol(), (SEARCH, KEEP, ANSWER)), (TagsProtocol(), TAG_LINES)):
        policy = Watcher(*lines, protocol=protocol)
        shelf = library()
        run, _ = run_to_end(policy, shelf, picture=PICTURE)
        assert run.record().status is RunStatus.ANSWERED
        assert not any(request.doc_id == QUESTION for request in shelf.drawn), "the source does not have it"
        patch = protocol.family.patch
        for chat in policy.chats:
            user_message = next(message for message in chat if message.role == "user")
            introduced = "The question came with this picture:"
            place = next(
                at
                for at, part in enumerate(user_message.parts)
                if isinstance(part, TextPart) and introduced in part.text
            )
            before = "".join(part.text for part in user_message.parts[: place + 1] if isinstance(part, TextPart))
            assert before.endswith(f"Question: What was North in 2022?\n{introduced}")
            width, height = pictures_in((Message(user_message.role, user_message.parts[place + 1 : place + 2]),))[0]
            assert width % patch == height % patch == 0
        assert policy.chats[1][: len(policy.chats[0])] == policy.chats[0], "earlier messages must not change"


@pytest.mark.parametrize(
    "protocol", [GraphProtocol(evidence=EvidenceForm.TEXT), TagsProtocol(evidence=EvidenceForm.TEXT)]
)
def test_a_text_only_model_reads_that_the_picture_was_searched_with(protocol: WireProtocol) -> None:
    shelf = library()
    lines = TAG_LINES if isinstance(protocol, TagsProtocol) else (SEARCH, ANSWER)
    policy = Watcher(*lines, protocol=protocol)
    run, _ = run_to_end(policy, shelf, picture=PICTURE)
    assert not any(pictures_in(chat) for chat in policy.chats)
    assert "The question came with a picture. You are given no pictures" in next(
        message.text for message in policy.chats[0] if message.role == "user"
    )
    assert shelf.pictures_asked[0] == PICTURE.png
    assert run.record().notices == (SEARCHED_ONLY,)


def test_rules_that_see_nothing_say_so_too() -> None:
    run, _ = run_to_end(Script(SEARCH, KEEP, ANSWER), library(), picture=PICTURE)
    assert SEARCHED_ONLY in run.record().notices


def test_records_and_events_hold_its_name_and_never_its_bytes() -> None:
    run, events = run_to_end(Watcher(SEARCH, KEEP, ANSWER), library(), picture=PICTURE)
    record, reference = run.record(), PictureRef(sha256=PICTURE.sha256, size=14)
    assert isinstance(events[0], StartEvent)
    assert record.picture == events[0].picture == reference
    text = record.to_json()
    assert RunRecord.from_json(text) == record
    assert len(text) < 20_000 and "iVBOR" not in text
    assert PICTURE.png.hex() not in repr(PICTURE)
    run, events = run_to_end(Watcher(SEARCH, KEEP, ANSWER), library())
    assert run.record().picture is None


def test_a_picture_that_cannot_be_resized_is_replaced_by_words_and_a_notice() -> None:
    broken = QuestionPicture(grey_png(100)[:40], "0" * 64, 40)
    policy = Watcher(SEARCH, KEEP, ANSWER)
    run, _ = run_to_end(policy, library(), picture=broken)
    assert "The question came with a picture, which cannot be shown." in policy.chats[0][1].text
    assert any(notice.startswith("the picture of the question could not be shown") for notice in run.record().notices)
    assert run.record().status is RunStatus.ANSWERED


def test_it_takes_one_of_the_pictures_of_a_prompt_and_is_never_what_is_left_out() -> None:
    limits = PictureLimits(images=8, memory=0, question=1)
    assert limits.results == 5
    policy = Watcher(*("<search>units sold</search>", "<bbox>[0, 0, 300, 300]</bbox>") * 4, "<answer>1</answer>",
                     protocol=TagsProtocol(limits=PictureLimits(images=3, question=1)))  # fmt: skip
    run_to_end(policy, library(), picture=PICTURE)
    for chat in policy.chats:
        assert len(pictures_in(chat)) <= 3
        assert len(pictures_in(chat[:1])) == 1


def test_an_episode_asks_for_it_before_its_first_prompt() -> None:
    episode = Episode("q?", AgentConfig(), GraphProtocol(), sees_pictures=True, picture=PICTURE)
    assert isinstance(episode.need, NeedPictures)
    assert [request.doc_id for request in episode.need.pictures] == [QUESTION]
    episode.pictured([VragError("no")])
    assert isinstance(episode.need, NeedCompletion)
    with pytest.raises(VragError, match="not for a search"):
        episode.searched(SearchAnswer(((),), 1, 1, "hybrid", 1))
