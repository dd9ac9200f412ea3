"""Frames: round trips, coverage, clamping, and sizes a model accepts."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vrag_ray.imaging.coordinates import (
    AbsoluteCodec,
    BoxCodec,
    CoordinateError,
    PerMilleCodec,
    Size,
    View,
    model_size,
    raw_pixels,
    snapped_to_words,
    whole_page,
    with_margin,
)
from vrag_ray.types import FULL_PAGE, Box, Word


def scaled(box: Box, size: Size) -> tuple[float, float, float, float]:
    return (box.x0 * size.width, box.y0 * size.height, box.x1 * size.width, box.y1 * size.height)


SIZES = st.builds(Size, st.integers(20, 5000), st.integers(20, 5000))


@st.composite
def boxes(draw: st.DrawFn, least: float = 0.01) -> Box:
    x0, y0 = draw(st.floats(0, 1 - least)), draw(st.floats(0, 1 - least))
    x1, y1 = draw(st.floats(x0 + least, 1)), draw(st.floats(y0 + least, 1))
    assume(x0 < x1 <= 1 and y0 < y1 <= 1)
    return Box(x0, y0, x1, y1)


def covers(outer: Box, inner: Box, slack: float = 1e-6) -> bool:
    return (
        outer.x0 <= inner.x0 + slack
        and outer.y0 <= inner.y0 + slack
        and outer.x1 >= inner.x1 - slack
        and outer.y1 >= inner.y1 - slack
    )


@given(boxes(), SIZES)
def test_page_to_model_pixels_and_back_is_the_same_box(box: Box, shown: Size) -> None:
    view = View(FULL_PAGE, shown)
    assert view.to_page(view.from_page(box)).as_tuple() == pytest.approx(box.as_tuple(), abs=1e-9)


@given(boxes(0.05), boxes(0.05), boxes(0.05), SIZES, SIZES)
def test_a_crop_of_a_crop_maps_to_the_right_place_on_the_page(
    first: Box, second: Box, third: Box, shown: Size, closer: Size
) -> None:
    """The inner box, given in fractions of a crop of a crop, worked out by hand."""
    page = View(FULL_PAGE, shown)
    crop = page.to_page(page.from_page(first))
    crop_view = View(crop, closer)
    inner = crop_view.to_page(scaled(second, closer))
    innermost = View(inner, shown).to_page(scaled(third, shown))
    x = first.x0 + (first.x1 - first.x0) * (second.x0 + (second.x1 - second.x0) * third.x0)
    y = first.y0 + (first.y1 - first.y0) * (second.y0 + (second.y1 - second.y0) * third.y1)
    assert innermost.x0 == pytest.approx(x, abs=1e-9)
    assert innermost.y1 == pytest.approx(y, abs=1e-9)


@pytest.mark.parametrize("codec", [AbsoluteCodec(), PerMilleCodec()])
@given(box=boxes(0.02), region=boxes(0.2), shown=st.builds(Size, st.integers(100, 3000), st.integers(100, 3000)))
def test_what_a_codec_writes_covers_the_box_within_a_unit(codec: BoxCodec, box: Box, region: Box, shown: Size) -> None:
    inside = Box(
        region.x0 + (region.x1 - region.x0) * box.x0,
        region.y0 + (region.y1 - region.y0) * box.y0,
        region.x0 + (region.x1 - region.x0) * box.x1,
        region.y0 + (region.y1 - region.y0) * box.y1,
    )
    view = View(region, shown)
    numbers = codec.encode(inside, view)
    back = codec.decode(numbers, view)
    assert covers(back, inside)
    units = (1000, 1000) if isinstance(codec, PerMilleCodec) else (shown.width, shown.height)
    assert back.x1 - back.x0 <= inside.x1 - inside.x0 + 2.01 * (region.x1 - region.x0) / units[0]
    assert back.y1 - back.y0 <= inside.y1 - inside.y0 + 2.01 * (region.y1 - region.y0) / units[1]
    assert codec.encode(back, view) == numbers


@st.composite
def framed(draw: st.DrawFn) -> View:
    """A part of a page between margins of any width."""
    size = Size(draw(st.integers(200, 3000)), draw(st.integers(100, 3000)))
    left, right = draw(st.integers(0, 80)), draw(st.integers(0, 80))
    return View(draw(boxes(0.2)), size, left / size.width, (size.width - right) / size.width)


@given(framed(), boxes(0.02))
def test_between_margins_a_box_of_the_page_has_the_place_where_it_is_drawn(view: View, box: Box) -> None:
    """Worked out in pixels of the page that was pasted between them."""
    width, height = view.region.x1 - view.region.x0, view.region.y1 - view.region.y0
    left, wide = view.left * view.shown.width, (view.right - view.left) * view.shown.width
    drawn = (left + box.x0 * wide, box.y0 * view.shown.height, left + box.x1 * wide, box.y1 * view.shown.height)
    on_page = view.to_page(drawn)
    assert on_page.x0 == pytest.approx(view.region.x0 + width * box.x0, abs=1e-9)
    assert on_page.x1 == pytest.approx(view.region.x0 + width * box.x1, abs=1e-9)
    assert on_page.y1 == pytest.approx(view.region.y0 + height * box.y1, abs=1e-9)
    assert view.from_page(on_page) == pytest.approx(drawn, abs=1e-6)


@pytest.mark.parametrize("codec", [AbsoluteCodec(), PerMilleCodec()])
@given(view=framed(), box=boxes(0.05))
def test_between_margins_what_a_codec_writes_covers_the_box_and_means_the_same_again(
    codec: BoxCodec, view: View, box: Box
) -> None:
    region = view.region
    inside = Box(
        region.x0 + (region.x1 - region.x0) * box.x0,
        region.y0 + (region.y1 - region.y0) * box.y0,
        region.x0 + (region.x1 - region.x0) * box.x1,
        region.y0 + (region.y1 - region.y0) * box.y1,
    )
    numbers = codec.encode(inside, view)
    back = codec.decode(numbers, view)
    assert covers(back, inside)
    unit = 1000 if isinstance(codec, PerMilleCodec) else view.shown.width
    assert back.x1 - back.x0 <= inside.x1 - inside.x0 + 2.01 * (region.x1 - region.x0) / unit / (view.right - view.left)


def test_a_box_that_reaches_into_a_margin_ends_with_the_page_and_one_inside_of_it_is_refused() -> None:
    view = View(Box(0.5, 0.0, 1.0, 0.5), Size(200, 100), left=0.1, right=0.9)
    assert AbsoluteCodec().decode([0, 0, 100, 100], view) == Box(0.5, 0.0, 0.75, 0.5)
    assert PerMilleCodec().decode([500, 0, 1000, 1000], view) == Box(0.75, 0.0, 1.0, 0.5)
    for codec, numbers, ends in (
        (AbsoluteCodec(), [0, 10, 20, 90], "x = 20 to 180"),
        (PerMilleCodec(), [901, 10, 990, 90], "x = 100 to 900"),
    ):
        with pytest.raises(CoordinateError, match=f"no area in the page, which goes from {ends}"):
            codec.decode(numbers, view)


def test_qwen25_numbers_are_pixels_and_qwen3_numbers_are_thousandths() -> None:
    view = View(FULL_PAGE, Size(560, 280))
    box = Box(0.25, 0.5, 0.5, 1.0)
    assert AbsoluteCodec().encode(box, view) == (140, 140, 280, 280)
    assert PerMilleCodec().encode(box, view) == (250, 500, 500, 1000)


def test_corners_may_come_in_any_order_and_outside_is_clamped() -> None:
    view = View(Box(0.0, 0.0, 0.5, 0.5), Size(100, 100))
    assert AbsoluteCodec().decode([150, 80, -20, 20], view) == Box(0.0, 0.1, 0.5, 0.4)


@pytest.mark.parametrize(
    "numbers",
    [[], [1, 2, 3], [1, 2, 3, 4, 5], [math.nan, 0, 1, 1], [0, 0, math.inf, 1], [5, 5, 5, 9], [200, 200, 300, 300]],
)
def test_numbers_that_are_no_box_are_refused_in_words(numbers: list[float]) -> None:
    with pytest.raises(CoordinateError, match="box"):
        AbsoluteCodec().decode(numbers, View(FULL_PAGE, Size(100, 100)))


@given(st.lists(st.floats(), max_size=6), boxes(0.05), SIZES)
def test_any_numbers_become_a_box_of_the_picture_or_an_error(numbers: list[float], region: Box, shown: Size) -> None:
    for codec in (AbsoluteCodec(), PerMilleCodec()):
        try:
            box = codec.decode(numbers, View(region, shown))
        except CoordinateError:
            continue
        assert covers(region, box, 1e-9)


@given(boxes(), SIZES)
def test_raw_pixels_cover_the_box_and_stay_on_the_page(box: Box, size: Size) -> None:
    x0, y0, x1, y1 = raw_pixels(box, size)
    assert 0 <= x0 < x1 <= size.width
    assert 0 <= y0 < y1 <= size.height
    assert covers(whole_page(size).to_page((x0, y0, x1, y1)), box)


@given(SIZES, st.sampled_from([14, 28, 32]), st.integers(1, 400), st.integers(400, 2000))
def test_a_model_size_is_whole_patches_within_the_budget(raw: Size, patch: int, least: int, most: int) -> None:
    size = model_size(raw, patch=patch, min_pixels=least * patch * patch, max_pixels=most * patch * patch)
    assert size.width % patch == 0
    assert size.height % patch == 0
    assert size.pixels <= most * patch * patch


@given(st.builds(Size, st.integers(300, 3000), st.integers(300, 3000)))
def test_a_model_size_keeps_the_shape_of_ordinary_pages(raw: Size) -> None:
    size = model_size(raw, patch=28, min_pixels=256 * 28 * 28, max_pixels=512 * 28 * 28)
    assume(1 / 3 < raw.width / raw.height < 3)
    assert size.width / size.height == pytest.approx(raw.width / raw.height, rel=0.15)
    assert size.pixels >= 0.85 * 256 * 28 * 28


@pytest.mark.parametrize(("patch", "least", "most"), [(28, 0, 100), (0, 0, 1000), (28, 9000, 8000)])
def test_impossible_sizes_are_refused(patch: int, least: int, most: int) -> None:
    with pytest.raises(CoordinateError):
        model_size(Size(100, 100), patch=patch, min_pixels=least, max_pixels=most)


def test_snapping_completes_cut_words_and_leaves_others() -> None:
    cut, other = Word("cut", Box(0.4, 0.1, 0.6, 0.2)), Word("other", Box(0.8, 0.1, 0.9, 0.2))
    assert snapped_to_words(Box(0.1, 0.05, 0.55, 0.3), [cut, other]) == Box(0.1, 0.05, 0.6, 0.3)


@given(boxes())
def test_the_margin_never_leaves_the_page(box: Box) -> None:
    assert covers(FULL_PAGE, with_margin(box), 0.0)
    assert covers(with_margin(box), box, 0.0)
