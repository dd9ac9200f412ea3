"""Videos, pages, crops and memory share the pictures that a model takes in one prompt."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.agent_pages import Shelf
from tests.support.harbour_films import SECONDS, films, keep, search
from tests.support.scripted_agent import Watcher, pictures_in, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, Crop, SummarizeAndMemorize
from vrag_ray.agent.chat import Message
from vrag_ray.agent.images.budget import LEFT_OUT, even_shares
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig, AgentName, CorpusConfig
from vrag_ray.imaging.frame_times import sample_times
from vrag_ray.policies.llm.prompt_limits import ModelLimits
from vrag_ray.policies.registry import wire_protocol

CONFIG = AgentConfig(picture_pixels=16 * 32 * 32, frame_pixels=4 * 32 * 32, memory_pixels=20 * 32 * 32)
ANSWER = AddAnswerNode(parent_ids=("root",), answer="42")


def protocol_of(max_images: int, agent: AgentName = AgentName.VIMRAG, config: AgentConfig = CONFIG) -> WireProtocol:
    return wire_protocol(agent, config, CorpusConfig(), ModelLimits(max_images))


def crop(timestamp: float, right: float = 500) -> Crop:
    return Crop(information_id="Video 1", bbox=(0, 0, right, 500), timestamp=timestamp)


def played(shelf: Shelf, max_images: int, *lines: AddSearchNode | Crop | SummarizeAndMemorize) -> Watcher:
    policy = Watcher(*lines, ANSWER, protocol=protocol_of(max_images))
    run_to_end(policy, shelf, config=CONFIG)
    return policy


def stamps_in(message: Message) -> list[str]:
    return [line for line in message.text.splitlines() if line.endswith("seconds>")]


@pytest.mark.parametrize(("max_images", "shares"), [(32, (9, 8, 8)), (16, (3, 3, 3))])
def test_three_videos_share_what_memory_and_crops_leave(max_images: int, shares: Sequence[int]):
    policy = played(films(3), max_images, search("a"))
    [_, observed] = [policy.chats[1][1], policy.chats[1][-1]]
    assert len(pictures_in(policy.chats[1])) == sum(shares)
    expected = [f"<{t:.1f} seconds>" for share in shares for t in sample_times(0.0, SECONDS, 1.0, share)]
    assert stamps_in(observed) == expected, "evenly spaced over each clip, as with all frames"


def test_a_page_takes_one_picture_and_the_videos_the_rest():
    policy = played(films(2, pages=1), 32, search("a"))
    assert len(pictures_in(policy.chats[1])) == 25
    assert len(stamps_in(policy.chats[1][-1])) == 24


def test_what_is_remembered_is_still_shown_when_crops_fill_the_prompt():
    looks = [crop(2.0 + place, right=500 + 10 * place) for place in range(6)]
    policy = played(films(3), 16, search("a"), keep(0.0, 30.0, 60.0), search("b", "a"), *looks)
    for chat in policy.chats:
        assert len(pictures_in(chat)) <= 16
    last = policy.chats[-1]
    assert last[1].text.count("Remembered a#") == 3
    assert len(pictures_in(last[:2])) == 3, "the remembered frames come first and are all there"
    assert LEFT_OUT in last[3].text, "of the oldest turn, the last results are named in words"
    assert LEFT_OUT not in policy.chats[4][3].text
    assert LEFT_OUT not in last[-1].text
    assert len(pictures_in(last[-1:])) == 1, "the newest look is shown"


def test_times_to_remember_are_those_of_the_frames_that_were_shown():
    policy = Watcher(search("a"), keep(1.0, 59.0), ANSWER, protocol=protocol_of(16))
    run, _ = run_to_end(policy, films(3), config=CONFIG)
    shown = sample_times(0.0, SECONDS, 1.0, 3)
    assert [item.t_frame for item in run.record().graph.node("a").items] == [shown[0], shown[2]]


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 60))
def test_shares_are_even_and_use_all_the_room(requested: list[int], room: int):
    shares = even_shares(requested, room)
    assert sum(shares) == min(room, sum(requested))
    assert all(0 <= share <= want for share, want in zip(shares, requested, strict=True))
    if room >= len(requested):
        assert all(share >= 1 for share, want in zip(shares, requested, strict=True) if want)
    short = [share for share, want in zip(shares, requested, strict=True) if share < want]
    assert not short or max(shares) <= min(short) + 1


REPLIES = st.one_of(
    st.builds(search, st.sampled_from("abcdef"), st.sampled_from(["root", "a", "b", "c"])),
    st.builds(keep, st.floats(0, 60), st.floats(0, 60)),
    st.builds(crop, st.floats(0, 60)),
    st.builds(
        lambda node, number, box: Crop(information_id=f"{node}#{number}", bbox=box),
        st.sampled_from("abc"),
        st.integers(1, 4),
        st.tuples(*[st.floats(0, 1000)] * 4),
    ),
    st.builds(lambda box: Crop(information_id="", bbox=box), st.tuples(*[st.floats(0, 1000)] * 4)),
)
TAGS = st.sampled_from(
    ["<search>harbour</search>", "<bbox>[0, 0, 500, 500]</bbox>", "<bbox>[9, 9, 200, 300]</bbox>", "nothing"]
)


@settings(max_examples=60)
@given(st.lists(REPLIES, max_size=14), st.integers(10, 24), st.integers(0, 3), st.integers(0, 3))
def test_no_prompt_shows_more_than_the_model_takes_whatever_it_replies(
    lines: list[AddSearchNode | Crop | SummarizeAndMemorize], max_images: int, clips: int, pages: int
):
    config = CONFIG.model_copy(update={"max_steps": 16})
    policy = Watcher(*lines, ANSWER, protocol=protocol_of(max_images, config=config))
    run_to_end(policy, films(clips, pages), config=config)
    for chat, prompt in zip(policy.chats, policy.prompts, strict=True):
        assert len(pictures_in(chat)) <= max_images
        remembered = sum(part.text.startswith("\nRemembered") for part in chat[1].parts if hasattr(part, "text"))
        assert remembered == len(prompt.allotments), "memory is never what is left out"


@settings(max_examples=30)
@given(st.lists(TAGS, max_size=14), st.integers(3, 6))
def test_the_whole_chat_of_tags_stays_within_the_limit_too(lines: list[str], max_images: int):
    config = CONFIG.model_copy(update={"max_steps": 16})
    protocol = protocol_of(max_images, AgentName.VRAG, config)
    policy = Watcher(*lines, "<answer>42</answer>", protocol=protocol)
    run_to_end(policy, films(2, pages=6), config=config)
    assert all(len(pictures_in(chat)) <= max_images for chat in policy.chats)
    newest = [turn for turn in policy.prompts[-1].turns if turn.shown]
    assert all(not turn.left_out for turn in newest[-1:])


def test_visual_tokens_count_as_well_as_pictures():
    """A context of 2,000 tokens: 1,500 less the reply for pictures, of which a crop takes 256 and a frame 4."""
    config = CONFIG.model_copy(update={"picture_pixels": 256 * 32 * 32, "max_reply_tokens": 400, "search_top_k": 1})
    protocol = wire_protocol(AgentName.VIMRAG, config, CorpusConfig(), ModelLimits(40, tokens=2000))
    assert protocol.limits is not None
    assert protocol.limits.visual_tokens == 1100
    policy = Watcher(search("a"), *(crop(1.0 + place) for place in range(8)), ANSWER, protocol=protocol)
    run_to_end(policy, films(1), config=config)
    for chat in policy.chats:
        assert sum(width * height for width, height in pictures_in(chat)) <= 1100 * 32 * 32
    assert len(pictures_in(policy.chats[2])) == 33
    assert LEFT_OUT in policy.chats[-1][3].text
