import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.corpus.model import DecodeError
from vrag_ray.corpus.png import fitting_scale

sides = st.floats(1e-3, 1e6)


@given(sides, sides, st.floats(1e-3, 1e3), st.integers(16, 10**8))
def test_a_fitting_scale_keeps_the_pixels_under_the_limit(width: float, height: float, scale: float, most: int) -> None:
    try:
        fitted = fitting_scale(width, height, scale, most)
    except DecodeError:
        assert max(width, height) / min(width, height) > most / 8
        return
    assert 0 < fitted <= scale
    assert math.ceil(width * fitted) * math.ceil(height * fitted) <= most


def test_a_scale_that_fits_is_kept() -> None:
    assert fitting_scale(600, 800, 2.0, 10**7) == 2.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_sizes_and_scales_that_mean_nothing_are_refused(bad: float) -> None:
    for arguments in ((bad, 1.0, 1.0), (1.0, bad, 1.0), (1.0, 1.0, bad)):
        with pytest.raises(DecodeError, match="cannot be drawn"):
            fitting_scale(*arguments, 100)
