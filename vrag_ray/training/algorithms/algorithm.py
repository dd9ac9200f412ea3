"""What sets one policy-gradient algorithm apart from another, as values."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, model_validator

from vrag_ray.training.losses import Denominator, Ratio

TRACE, RECALL_WEIGHT = 0.8, 1.0
"""Of progress credit; see ``progress``."""


class Credit(StrEnum):
    """What a segment is (the whole ``trajectory``, else one for each node) and which ones are learnt from.

    ``ggpo`` is VimRAG's mask, ``ggpo_positive`` that mask on successes alone, ``ggpo_negative`` on failures alone.
    ``ggpo_first_find`` spares a gold page in a failure only when it is found for the first time: searching again for
    what is there keeps its price.
    ``progress`` masks nothing: each segment has an advantage of its own (``progress.progress_advantages``).
    """

    TRAJECTORY = "trajectory"
    SEGMENTS = "segments"
    GGPO = "ggpo"
    GGPO_POSITIVE = "ggpo_positive"
    GGPO_NEGATIVE = "ggpo_negative"
    GGPO_FIRST_FIND = "ggpo_first_find"
    PROGRESS = "progress"


class Algorithm(BaseModel):
    """How rewards become a loss; ``losses`` explains ratio, clips and denominator, ``advantages`` the deviation.

    ``budget`` (Dr.GRPO, with the denominator ``tokens``): divide by segments times this many tokens instead of those
    said. ``dynamic_sampling``: drop groups of equal reward and refill the batch. ``kl`` and ``entropy`` are
    coefficients. ``truncate`` caps the weights that correct for a sampler unlike the trainer; None corrects nothing.
    ``trace`` and ``recall_weight`` are those of progress credit. ``cited_elements``: for GGPO's masks, a search from
    which the answer cites an element that meets a gold box is no dead end (``ggpo.mask``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: Ratio
    clip_low: float = Field(gt=0, lt=1)
    clip_high: float = Field(gt=0)
    denominator: Denominator = Denominator.ALL
    budget: int | None = Field(default=None, ge=1)
    normalize_std: bool = True
    credit: Credit
    dynamic_sampling: bool = False
    kl: float = Field(default=0.0, ge=0)
    entropy: float = Field(default=0.0, ge=0)
    truncate: float | None = Field(default=None, gt=0)
    trace: float = Field(default=TRACE, ge=0, le=1)
    recall_weight: float = Field(default=RECALL_WEIGHT, ge=0)
    cited_elements: bool = False

    @model_validator(mode="after")
    def _budget_is_of_tokens(self) -> Algorithm:
        if self.budget is not None and self.denominator is not Denominator.TOKENS:
            raise ValueError(f"budget needs the denominator 'tokens', not {self.denominator.value!r}")
        return self

    @model_validator(mode="after")
    def _cited_elements_are_for_masks(self) -> Algorithm:
        if self.cited_elements and self.credit in (Credit.TRAJECTORY, Credit.SEGMENTS, Credit.PROGRESS):
            raise ValueError(f"cited_elements needs a credit that masks, such as 'ggpo', not {self.credit.value!r}")
        return self


_GRPO = Algorithm(ratio=Ratio.TOKEN, clip_low=0.2, clip_high=0.2, credit=Credit.TRAJECTORY)
_BY_TOKENS = _GRPO.model_copy(update={"denominator": Denominator.TOKENS})
_GSPO = Algorithm(ratio=Ratio.GEO, clip_low=3e-4, clip_high=4e-4, credit=Credit.TRAJECTORY)

ALGORITHMS = {
    # Clip and KL are those of VRAG-RL's script; the paper (arXiv 2402.03300) has KL .04 and does not state its clip.
    "grpo": _GRPO.model_copy(update={"kl": 0.01}),
    # arXiv 2503.20783. The budget, here VRAG-RL's reply length, should be sampling's limit: it only scales the loss.
    "dr_grpo": _BY_TOKENS.model_copy(update={"budget": 2048, "normalize_std": False}),
    # arXiv 2503.14476: clip .2 and .28, every token weighs the same, no KL.
    "dapo": _BY_TOKENS.model_copy(update={"clip_high": 0.28, "dynamic_sampling": True}),
    # arXiv 2507.18071: clip 3e-4 and 4e-4, which fit its length-normalised ratio alone; no KL.
    "gspo": _GSPO,
    # What VimRAG (arXiv 2602.12735) compares with, "GSPO without pruning": each node is a sample of its own.
    "gspo_segments": _GSPO.model_copy(update={"credit": Credit.SEGMENTS}),
    # VimRAG's eq. 12, divided by all segments; it states neither ratio nor clip, so those of its baseline.
    "ggpo": _GSPO.model_copy(update={"credit": Credit.GGPO}),
    # Ours, and not measured: the mask spares searches whose elements the answer cites, where they meet gold boxes.
    "ggpo_cited": _GSPO.model_copy(update={"credit": Credit.GGPO, "cited_elements": True}),
    # Ours (docs/research/ggpo.md): the mask without its cost; the graph's credit for each segment's change, no mask.
    "ggpo_first_find": _GSPO.model_copy(update={"credit": Credit.GGPO_FIRST_FIND}),
    "progress": _GSPO.model_copy(update={"credit": Credit.PROGRESS}),
}
