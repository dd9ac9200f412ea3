"""What supervised fine-tuning learns: the replies of recorded runs, and of conversations that name no model.

Recorded runs (Parquet) have the tokens that were sampled. Conversations have words and pictures; here they become the
tokens that the model that learns them is given in serving, by its own chat template and image processor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import Role
from vrag_ray.questions.rows import DataError
from vrag_ray.training.construct.store import FAILURES, RUNS
from vrag_ray.training.rollout.recording import call_of
from vrag_ray.training.rollout.trajectory_store import read_calls_by_question, recorded_files
from vrag_ray.training.sharegpt.read import Conversation, read_conversations, sharegpt_file
from vrag_ray.training.trajectory import Call
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat
    from vrag_ray.training.rollout.recording import ExpandImageTokens


@dataclass(frozen=True, slots=True)
class Replies:
    """``calls`` have at most ``limit`` tokens each, prompt and reply together; ``left_out`` replies had more.

    ``longest`` is the largest number of tokens, of those left out too. ``held_out`` are not learnt: their loss is
    measured.
    """

    calls: tuple[Call, ...]
    limit: int
    left_out: int
    longest: int
    held_out: tuple[Call, ...] = ()

    def __str__(self) -> str:
        learnt = f"{len(self.calls)} replies to learn from"
        if self.held_out:
            learnt += f", {len(self.held_out)} held out"
        if not self.left_out:
            return learnt
        return (
            f"{learnt}; {self.left_out} are left out, because with their prompts they have more than {self.limit} "
            f"tokens (the longest {self.longest})"
        )


def read_replies(
    path: Path, form: ChatFormat, expand_image_tokens: ExpandImageTokens, limit: int, share: float = 0.0
) -> Replies:
    """Every reply of recorded runs or of a sharegpt file, whichever ``path`` (a file or a folder) holds; those of
    ``share`` of the questions, at least of one, are held out.

    Raises ``VragError`` that names file, row and field of what cannot be read, and where nothing is left to learn.
    """
    replies = within(_calls(path, form, expand_image_tokens), limit, share)
    fitting = replies.calls or replies.held_out
    if replies.left_out and not fitting:
        raise VragError(
            f"{path}: all {replies.left_out} replies have more than {limit} tokens with their prompts (the longest "
            f"{replies.longest}): raise max_length as far as the model's positions allow"
        )
    if not fitting:
        raise VragError(f"{path} holds no replies to learn from")
    if share and not replies.held_out:
        raise VragError(
            f"{path}: all {len(replies.calls)} replies are of one question, and validation_share {share:g} holds out "
            "whole questions: give more questions, or a file as validation"
        )
    return replies


def within(calls: Iterable[tuple[str, Call]], limit: int, share: float = 0.0) -> Replies:
    """Those of at most ``limit`` tokens, each given with its question. A call is never cut: an agent never sees half a
    prompt."""
    fitting: list[tuple[str, Call]] = []
    left_out = longest = 0
    for question, call in calls:
        longest = max(longest, call.tokens)
        if call.tokens <= limit:
            fitting.append((question, call))
        else:
            left_out += 1
    apart = _held_out({question for question, _ in fitting}, share)
    taught = tuple(call for question, call in fitting if question not in apart)
    held_out = tuple(call for question, call in fitting if question in apart)
    return Replies(taught, limit, left_out, longest, held_out)


def _held_out(questions: Set[str], share: float) -> Set[str]:
    """Those whose hashes come first: the runs of a question stay together, and a question more changes few of them."""
    count = min(max(round(share * len(questions)), 1), len(questions) - 1) if share else 0
    return set(sorted(questions, key=lambda question: hashlib.sha256(question.encode()).digest())[:count])


def conversation_calls(
    conversation: Conversation, form: ChatFormat, expand_image_tokens: ExpandImageTokens
) -> Iterator[Call]:
    """A call for each reply, with all messages before it as its prompt.

    One call for all replies would be wrong for models whose template leaves out the thoughts of earlier turns.
    """
    for place, message in enumerate(conversation.messages):
        if message.role is Role.ASSISTANT:
            try:
                call = call_of(form, expand_image_tokens, conversation.messages[:place], message.text)
            except VragError as error:
                raise DataError(f"{conversation.where}: the reply in message {place + 1}: {error}") from error
            yield call


def _calls(path: Path, form: ChatFormat, expand_image_tokens: ExpandImageTokens) -> Iterator[tuple[str, Call]]:
    file = conversations_file(path)
    if file is None:
        yield from read_calls_by_question(path)
        return
    for conversation in read_conversations(file):
        for call in conversation_calls(conversation, form, expand_image_tokens):
            yield conversation.question, call


def conversations_file(path: Path) -> Path | None:
    """The file of conversations that ``path`` (a file or a folder) holds; None where it holds recorded runs.

    Raises ``VragError`` for one that holds neither, or both. Reads no reply.
    """
    _refuse_construction(path)
    file = sharegpt_file(path)
    recorded = path.is_dir() and any(path.glob("*.parquet"))
    if recorded and file is not None:
        raise VragError(f"{path} holds recorded runs (*.parquet) and conversations ({file.name}): give one of them")
    if file is None:
        recorded_files(path)
    return file


def _refuse_construction(path: Path) -> None:
    """A construction's own folder has every run in it, those judged wrong too."""
    if (path / RUNS).is_dir() or (path.name == RUNS and (path.parent / FAILURES).exists()):
        raise VragError(
            f"{path} is the output of `vrag train construct`, with refused runs in it: give the folder of its --export"
        )
