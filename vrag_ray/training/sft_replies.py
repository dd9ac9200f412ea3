"""What supervised fine-tuning learns: the replies of recorded runs, and of conversations that name no model.

Recorded runs (Parquet) have the tokens that were sampled. Conversations have words and pictures; here they become the
tokens that the model that learns them is given in serving, by its own chat template and image processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import Role
from vrag_ray.questions.rows import DataError
from vrag_ray.training.construct.store import FAILURES, RUNS
from vrag_ray.training.rollout.recording import call_of
from vrag_ray.training.rollout.trajectory_store import read_calls
from vrag_ray.training.sharegpt.read import Conversation, read_conversations, sharegpt_file
from vrag_ray.training.trajectory import Call
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat
    from vrag_ray.training.rollout.recording import ExpandImageTokens


@dataclass(frozen=True, slots=True)
class Replies:
    """``calls`` have at most ``limit`` tokens each, prompt and reply together; ``left_out`` replies had more.

    ``longest`` is the largest number of tokens, of those left out too.
    """

    calls: tuple[Call, ...]
    limit: int
    left_out: int
    longest: int

    def __str__(self) -> str:
        learnt = f"{len(self.calls)} replies to learn from"
        if not self.left_out:
            return learnt
        return (
            f"{learnt}; {self.left_out} are left out, because with their prompts they have more than {self.limit} "
            f"tokens (the longest {self.longest})"
        )


def read_replies(path: Path, form: ChatFormat, expand_image_tokens: ExpandImageTokens, limit: int) -> Replies:
    """Every reply of recorded runs or of a sharegpt file, whichever ``path`` (a file or a folder) holds.

    Raises ``VragError`` that names file, row and field of what cannot be read, and where nothing is left to learn.
    """
    replies = within(_calls(path, form, expand_image_tokens), limit)
    if replies.left_out and not replies.calls:
        raise VragError(
            f"{path}: all {replies.left_out} replies have more than {limit} tokens with their prompts (the longest "
            f"{replies.longest}): raise max_length as far as the model's positions allow"
        )
    if not replies.calls:
        raise VragError(f"{path} holds no replies to learn from")
    return replies


def within(calls: Iterable[Call], limit: int) -> Replies:
    """Those of at most ``limit`` tokens. A call is never cut: an agent never sees half a prompt."""
    taught: list[Call] = []
    left_out = longest = 0
    for call in calls:
        longest = max(longest, call.tokens)
        if call.tokens <= limit:
            taught.append(call)
        else:
            left_out += 1
    return Replies(tuple(taught), limit, left_out, longest)


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


def _calls(path: Path, form: ChatFormat, expand_image_tokens: ExpandImageTokens) -> Iterator[Call]:
    _refuse_construction(path)
    recorded = path.is_dir() and any(path.glob("*.parquet"))
    file = sharegpt_file(path)
    if recorded and file is not None:
        raise VragError(f"{path} holds recorded runs (*.parquet) and conversations ({file.name}): give one of them")
    if file is None:
        yield from read_calls(path)
        return
    for conversation in read_conversations(file):
        yield from conversation_calls(conversation, form, expand_image_tokens)


def _refuse_construction(path: Path) -> None:
    """A construction's own folder has every run in it, those judged wrong too."""
    if (path / RUNS).is_dir() or (path.name == RUNS and (path.parent / FAILURES).exists()):
        raise VragError(
            f"{path} is the output of `vrag train construct`, with refused runs in it: give the folder of its --export"
        )
