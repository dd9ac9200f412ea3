"""Films whose bytes would differ from run to run are refused."""

from __future__ import annotations

import pytest

from vrag_ray.drawing.video import Film


def test_a_width_that_the_encoder_would_pad_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 128"):
        Film("gate", width=480, height=270, seconds=1, frames_per_second=2, draw=lambda _: ())
