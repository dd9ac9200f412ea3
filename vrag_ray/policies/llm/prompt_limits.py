"""What a model takes in one prompt, from the model's own settings, and whether an agent's numbers fit into it.

The one place where pictures and tokens of a prompt are added up, for serving and training alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vrag_ray.agent.protocols.tags import MAX_PATCHES
from vrag_ray.agent.wire_protocol import CROP_ROOM, PictureLimits
from vrag_ray.config import AgentConfig, EvidenceForm, OpenAiConfig, Settings, VllmConfig
from vrag_ray.imaging.coordinates import ModelFamily
from vrag_ray.types import VragError

TEXT_SHARE = 4
"""One token in this many of the context is left to words: rules, question, graph, and the policy's earlier replies."""
CHARS_PER_TOKEN = 3
"""Of the words of pages. English prose has more than four, tables of numbers about two."""


class PromptBudgetError(VragError):
    """The numbers of a configuration, or of a request, make prompts that the model cannot take."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What a model takes in one prompt. ``model`` and ``agent`` are where their settings stand, for messages.

    ``tokens`` is its context, prompt and reply together; None where only its endpoint knows. ``reply``: tokens of one
    reply, where they are set elsewhere than in the agent's settings.
    """

    images: int
    tokens: int | None = None
    model: str = "vllm"
    agent: str = "agent"
    reply: int | None = None
    reply_setting: str = "agent.max_reply_tokens"

    @classmethod
    def of_vllm(cls, config: VllmConfig) -> ModelLimits:
        return cls(config.max_images, context_of(config.max_model_len, config.engine_args))

    @classmethod
    def of_endpoint(cls, config: OpenAiConfig) -> ModelLimits:
        return cls(config.max_images, model="openai")


def limits_of(settings: Settings) -> ModelLimits | None:
    """Of the model that speaks with these settings; None where there is none."""
    if settings.vllm is not None:
        return ModelLimits.of_vllm(settings.vllm)
    return ModelLimits.of_endpoint(settings.openai) if settings.openai is not None else None


FIT_STEPS = (0.75, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05)
"""Shares of the agent's default budgets that are tried, the largest first."""
REPLY_SHARE = 8
"""A reply has at most the context divided by this, where no setting says otherwise."""
_OF_PICTURES = ("picture_pixels", "frame_pixels", "memory_pixels")
_OF_TEXT = ("prompt_chars", "memory_chars", "result_chars")
BUDGETS = (*_OF_PICTURES, *_OF_TEXT, "max_reply_tokens")
"""What ``fitted`` may lower."""


def fitted(config: AgentConfig, tokens: int, check: Callable[[AgentConfig], object]) -> AgentConfig:
    """``config`` with its budgets lowered until ``check`` takes them: those alone that nobody has set.

    ``tokens`` is the model's context. Raises the PromptBudgetError of ``check``, for the smallest budgets, where none
    fit.
    """
    defaults = AgentConfig()
    scaled = (*(_OF_PICTURES if config.evidence.has_pictures else ()), *(_OF_TEXT if config.evidence.has_text else ()))
    candidate, shares = config, iter(FIT_STEPS)
    while True:
        try:
            check(candidate)
        except PromptBudgetError:
            share = next(shares, None)
            if share is None:
                raise
            lowered = {name: int(getattr(defaults, name) * share) for name in scaled}
            lowered["max_reply_tokens"] = min(defaults.max_reply_tokens, tokens // REPLY_SHARE)
            free = {name: value for name, value in lowered.items() if name not in config.model_fields_set}
            candidate = AgentConfig.model_validate(config.model_dump(exclude_unset=True) | free)
        else:
            return candidate


def context_of(max_model_len: int, engine_args: dict[str, str | int | float | bool]) -> int:
    """The context in tokens; what is given to the engine by its own names wins, as in the engine."""
    own = engine_args.get("max_model_len")
    return own if isinstance(own, int) else max_model_len


@dataclass(frozen=True, slots=True)
class PictureNeeds:
    """What an agent shows in one prompt: pictures, and visual tokens of the largest it may ask for.

    ``results`` is the number of results of a search, under the name ``setting``.
    """

    setting: str
    results: int
    memory: int
    memory_tokens: int
    picture_tokens: int
    frame_tokens: int
    frames: int
    fixed: bool = False
    """Whether the sizes of pictures are those of a checkpoint's training and no settings."""
    question: int = 0
    """Pictures that come with the question."""

    @classmethod
    def of_graph(cls, config: AgentConfig, family: ModelFamily, max_frames: int) -> PictureNeeds:
        memory = family.tokens(config.memory_pixels) if config.memory_top_k > 0 else 0
        return cls(
            setting="search_top_k",
            results=config.search_top_k,
            memory=min(max(config.memory_top_k, 0), memory),
            memory_tokens=memory,
            picture_tokens=family.tokens(config.picture_pixels),
            frame_tokens=family.tokens(config.frame_pixels),
            frames=max_frames,
        )

    @classmethod
    def of_tags(cls, config: AgentConfig) -> PictureNeeds:
        """A video is one picture there, and nothing is remembered beside the chat."""
        return cls("tags_results", config.tags_results, 0, 0, MAX_PATCHES, MAX_PATCHES, 1, fixed=True)

    def worst_search(self, room: int) -> tuple[int, int]:
        """How many pages and how many frames take the most visual tokens, where ``room`` pictures are to be had."""
        mixes = (
            (pages, min((self.results - pages) * self.frames, room - pages)) for pages in range(self.results, -1, -1)
        )
        return max(mixes, key=lambda mix: mix[0] * self.picture_tokens + mix[1] * self.frame_tokens)


def check_eyes(config: AgentConfig, limits: ModelLimits) -> None:
    """Raises PromptBudgetError where a model that takes no pictures would be sent some."""
    if config.evidence.has_pictures and limits.images == 0:
        raise PromptBudgetError(
            f"{limits.agent}.evidence {config.evidence} shows pictures, but {limits.model}.max_images 0 says that the "
            f"model has no eyes: set {limits.agent}.evidence to {EvidenceForm.TEXT}, or raise {limits.model}.max_images"
        )


def check_texts(config: AgentConfig, limits: ModelLimits) -> None:
    """Raises PromptBudgetError, with the sum, where prompts in words alone cannot fit."""
    if limits.tokens is None:
        return
    reply, text = _reply_and_text(config, limits)
    words = _word_tokens(config)
    if words + reply + text > limits.tokens:
        raise PromptBudgetError(_too_long(_token_words(words, limits), words, reply, text, limits))


def picture_limits(needs: PictureNeeds, config: AgentConfig, limits: ModelLimits) -> PictureLimits:
    """How pictures are shared out in every prompt. Raises PromptBudgetError, with the sum, where they cannot fit."""
    agent, model = limits.agent, limits.model
    at_least = needs.question + needs.memory + CROP_ROOM + needs.results
    if at_least > limits.images:
        memory = f"memory {needs.memory} ({agent}.memory_top_k) + " if needs.memory else ""
        memory = f"question {needs.question} + {memory}" if needs.question else memory
        lower = f"{agent}.{needs.setting}" + (f" or {agent}.memory_top_k" if needs.memory else "")
        raise PromptBudgetError(
            f"{memory}crops {CROP_ROOM} + results {needs.results} ({agent}.{needs.setting}) = {at_least} pictures in a "
            f"prompt > {model}.max_images {limits.images}: raise {model}.max_images or lower {lower}"
        )
    shared = PictureLimits(limits.images, needs.memory, question=needs.question)
    if limits.tokens is None:
        return shared
    reply, text = _reply_and_text(config, limits)
    visual, parts = _visual_tokens(needs, shared, agent)
    words = _word_tokens(config) if config.evidence.has_text else 0
    if words:
        parts += f" + {_token_words(words, limits)}"
    if visual + words + reply + text > limits.tokens:
        raise PromptBudgetError(_too_long(parts, visual + words, reply, text, limits))
    return replace(shared, visual_tokens=limits.tokens - text - reply - words)


def _reply_and_text(config: AgentConfig, limits: ModelLimits) -> tuple[int, int]:
    assert limits.tokens is not None
    return config.max_reply_tokens if limits.reply is None else limits.reply, limits.tokens // TEXT_SHARE


def _word_tokens(config: AgentConfig) -> int:
    return -(-config.prompt_chars // CHARS_PER_TOKEN)


def _token_words(words: int, limits: ModelLimits) -> str:
    return f"words of pages {words} ({limits.agent}.prompt_chars / {CHARS_PER_TOKEN})"


def _too_long(parts: str, evidence: int, reply: int, text: int, limits: ModelLimits) -> str:
    return (
        f"{parts} + reply {reply} ({limits.reply_setting}) + text {text} (1/{TEXT_SHARE} of the context) = "
        f"{evidence + reply + text} tokens > {limits.model}.max_model_len {limits.tokens}: raise "
        f"{limits.model}.max_model_len or lower the others"
    )


def _visual_tokens(needs: PictureNeeds, shared: PictureLimits, agent: str) -> tuple[int, str]:
    """Of the largest pictures that a prompt always has room for: their sum, and how it comes about."""
    pages, frames = needs.worst_search(shared.results)
    crops = CROP_ROOM * needs.picture_tokens
    question_tokens = needs.question * needs.picture_tokens
    tokens = question_tokens + needs.memory_tokens + pages * needs.picture_tokens + frames * needs.frame_tokens + crops
    terms = [f"question {question_tokens}"] if question_tokens else []
    if needs.memory_tokens:
        terms.append(f"memory {needs.memory_tokens} ({agent}.memory_pixels)")
    if pages:
        size = "of a fixed size" if needs.fixed else f"{agent}.picture_pixels"
        terms.append(f"{pages} pages x {needs.picture_tokens} ({size})")
    if frames:
        terms.append(f"{frames} frames x {needs.frame_tokens} ({agent}.frame_pixels)")
    terms.append(f"{CROP_ROOM} crops x {needs.picture_tokens}")
    return tokens, f"{agent}.{needs.setting} {needs.results}: " + " + ".join(terms)
