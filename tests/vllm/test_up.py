"""``vrag up --vllm``: a model from a folder, on this machine's CPU, with the limits that were derived for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_up import running_up
from tests.support.tiny_vllm import needs_vllm
from vrag_ray.agent.chat import Message, Role
from vrag_ray.agent.events import AnswerEvent, CorrectionEvent, SearchEvent
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import RunRequest
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.types import VragError

pytestmark = needs_vllm


def _sees(folder: Path) -> None:
    from tiny_model import save_tiny_model

    save_tiny_model(folder)


def _reads(folder: Path) -> None:
    from tiny_model import save_tiny_text_model

    save_tiny_text_model(folder)


# Quick forms of the second: ``test_a_model_without_eyes_has_a_chat_in_words`` here, and what its settings become in
# ``policies/llm/test_prompt_limits.py``.
@pytest.mark.parametrize("save", [_sees, pytest.param(_reads, marks=pytest.mark.exhaustive)])
def test_a_model_from_a_folder_answers_after_one_command(save: Callable[[Path], None], tmp_path: Path) -> None:
    save(tmp_path / "model")
    with running_up(tmp_path, "--vllm", "model", "--no-ui") as (_, output, address):
        assert "no GPU was found, the model runs on the CPU" in output
        assert ("has no eyes" in output) == (save is _reads)
        with Client(address, timeout_s=300) as client:
            assert client.models().default_agent == "vimrag"
            events = list(client.events(RunRequest(question="What did dredging cost?", max_steps=3)))
    assert isinstance(events[-1], AnswerEvent)
    # Random weights say nothing sensible, but nothing that is no call: what is refused is only what was cut off.
    corrections = [event.message for event in events if isinstance(event, CorrectionEvent)]
    assert all("cut off" in message for message in corrections), corrections
    assert any(isinstance(event, SearchEvent) for event in events) or len(corrections) >= 2


def test_a_model_without_eyes_has_a_chat_in_words(tmp_path: Path) -> None:
    _reads(tmp_path)
    form = ChatFormat(str(tmp_path))
    assert form.picture_tokens == () and form.shows_tools
    ids, opening = form.tokens(ChatRequest((Message.of(Role.SYSTEM, "be ", "brief"), Message.of(Role.USER, "hi"))))
    text = form.reply_tokens("")[:0]
    assert text == () and opening == "" and len(ids) > 10
    with pytest.raises(VragError, match="has no eyes"):
        _ = form.processor
