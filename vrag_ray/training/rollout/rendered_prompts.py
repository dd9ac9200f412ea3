"""What vLLM makes of a prompt, cached: the samples of a group read the same prompt."""

from __future__ import annotations

from copy import copy
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from vrag_ray.caching import SizedLRU
from vrag_ray.policies.llm.vllm_prompt import pictures

if TYPE_CHECKING:
    from vllm.inputs import MultiModalInput, TokensInput
    from vllm.renderers import BaseRenderer

    from vrag_ray.policies.llm.chat_model import TokenRequest

    Rendered: TypeAlias = TokensInput | MultiModalInput

CACHED_TOKENS = 32_768
"""Of prompts as the model reads them. A visual token comes with 19 to 25 KB of pixels: 0.8 GB, if all are visual."""


class RenderedPrompts:
    """Inputs for vLLM's engine. The most recently used are cached, at least one and at most ``CACHED_TOKENS`` in all.

    Each one carries its pictures' pixels: vLLM's own cache of pictures may have lost them by then. Not thread-safe.
    """

    def __init__(self, renderer: BaseRenderer, cached_tokens: int = CACHED_TOKENS) -> None:
        self._renderer = renderer
        self._cached: SizedLRU[tuple[tuple[int, ...], tuple[bytes, ...]], Rendered] = SizedLRU(
            cached_tokens, _length, keep_newest=True
        )

    def rendered(self, request: TokenRequest) -> Rendered:
        """Raises ValueError or VLLMClientError if the prompt is too long, VragError if a picture is no PNG."""
        key = (request.prompt_ids, request.images)
        cached = self._cached.get(key)
        if cached is None:
            cached = self._render(request)
            self._cached.put(key, cached)
        return copy(cached)

    def forget(self) -> None:
        self._cached.clear()

    def _render(self, request: TokenRequest) -> Rendered:
        from vllm import TokensPrompt

        prompt = TokensPrompt(prompt_token_ids=list(request.prompt_ids))
        if request.images:
            prompt["multi_modal_data"] = {"image": list(pictures(request.images))}
            # Runs look at the same pages: a file's digest is had sooner than one of its pixels.
            prompt["multi_modal_uuids"] = {"image": [sha256(png).hexdigest() for png in request.images]}
        rendered: Rendered
        (rendered,) = self._renderer.render_cmpl([prompt], skip_mm_cache=True)
        return rendered


def _length(rendered: Rendered) -> int:
    """In tokens, each picture's visual tokens counted."""
    return len(rendered["prompt_token_ids"])
