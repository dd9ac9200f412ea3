"""What of a family of vision-language models the agent must know: its patches and how it writes rectangles."""

from __future__ import annotations

from dataclasses import dataclass

from vrag_ray.imaging.coordinates import AbsoluteCodec, BoxCodec, PerMilleCodec
from vrag_ray.types import FamilyName


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """``patch`` is the side in pixels of the square that becomes one visual token, merging included."""

    name: FamilyName
    patch: int
    codec: BoxCodec

    def tokens(self, pixels: int) -> int:
        """Visual tokens of a picture whose sides are whole patches."""
        return pixels // (self.patch * self.patch)


FAMILIES = {
    FamilyName.QWEN2_5_VL: ModelFamily(FamilyName.QWEN2_5_VL, 28, AbsoluteCodec()),
    FamilyName.QWEN3_VL: ModelFamily(FamilyName.QWEN3_VL, 32, PerMilleCodec()),
}
