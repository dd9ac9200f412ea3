from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.support.documents import decoded, open_png, picture_of, turned, video
from tests.support.hostile_files import streamable_mp4_cut_short
from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.formats.media.frames import FrameReader
from vrag_ray.corpus.formats.video import _no_picture
from vrag_ray.corpus.model import (
    DecodeError,
    DecodeOptions,
    WorkItem,
    clip_count,
    clip_locator,
)
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.imaging.frame_times import sample_times
from vrag_ray.types import Box, DocumentKind, Locator, PassageKind

if TYPE_CHECKING:
    from av.container.core import Chapter

VIDEO = DocumentKind.VIDEO
LOTS = 10_000_000


def item(stop: int, name: str = "a.mp4") -> WorkItem:
    return WorkItem("doc", VIDEO, 0, stop, name)


def level(png: bytes) -> float:
    return float(np.asarray(open_png(png).convert("L")).mean())


@given(st.floats(0.01, 5000), st.floats(0.5, 300))
def test_clips_cover_a_video_without_gap_or_overlap(duration: float, clip_seconds: float) -> None:
    clips = [clip_locator(k, duration, clip_seconds) for k in range(clip_count(duration, clip_seconds))]
    assert clips[0].t_start == 0
    assert clips[-1].t_end == pytest.approx(duration)
    assert all(clip.t_end == following.t_start for clip, following in itertools.pairwise(clips))


@given(st.floats(0, 1000), st.floats(0.1, 200), st.floats(0.2, 5), st.integers(1, 64))
def test_samples_lie_inside_the_clip_evenly_and_are_never_too_many(start, length, fps, most) -> None:
    times = sample_times(start, start + length, fps, most)
    assert 1 <= len(times) <= most
    assert all(start < t < start + length for t in times)
    assert np.allclose(np.diff(times), length / len(times), rtol=1e-6, atol=1e-6)


def test_a_minute_is_looked_at_once_a_second_at_most_32_times(options: DecodeOptions) -> None:
    assert len(sample_times(0, 20, options.video_fps, options.max_frames)) == 20
    assert len(sample_times(0, 60, options.video_fps, options.max_frames)) == 32


@pytest.mark.parametrize("name", ["talk.mp4", "talk.mkv"])
def test_captions_become_the_text_of_the_clips_they_are_heard_in(sandbox, tmp_path, options, name):
    captions = [(1.0, 3.0, "Welcome to the <i>harbour</i>"), (9.0, 12.0, "The crane lifts 40 tonnes"), (15, 16, "Bye")]
    path = video(tmp_path / name, 20, captions=captions)
    short = replace(options, clip_seconds=10.0)
    probe = sandbox.probe(path, name, short)
    assert (probe.kind, probe.units, probe.title, probe.duration) == (VIDEO, 2, "talk", 20.0)
    first, second = decoded(sandbox, path, item(2, name), short)
    assert first.text.splitlines() == ["talk", "Welcome to the harbour", "The crane lifts 40 tonnes"]
    assert second.text.splitlines() == ["talk", "The crane lifts 40 tonnes", "Bye"]
    assert (second.kind, second.locator) == (PassageKind.CLIP, Locator(t_start=10.0, t_end=20.0))
    assert not first.ocr
    page = sandbox.page_text(path, VIDEO, second.locator, short)
    assert (page.text, page.words, page.width, page.height) == (
        "[9.0-12.0] The crane lifts 40 tonnes\n[15.0-16.0] Bye",
        (),
        160,
        120,
    )


def test_without_captions_the_frames_are_read_and_each_line_is_kept_once(sandbox, tmp_path, options):
    slides = [picture_of(["Agenda", "Budget 2031"], size=(640, 240)), picture_of(["Thank you"], size=(640, 240))]
    path = video(tmp_path / "slides.mp4", 8, pictures=slides)
    (unit,) = decoded(sandbox, path, item(1, "slides.mp4"), options)
    assert unit.text.splitlines() == ["slides", "Agenda", "Budget 2031", "Thank you"]
    assert unit.ocr
    assert unit.words == ()
    assert unit.shots == ((0.0, 4.0), (4.0, 8.0))
    assert [(cue.text, cue.start, cue.end) for cue in unit.cues] == [
        ("Agenda", 0.0, 4.0),
        ("Budget 2031", 0.0, 4.0),
        ("Thank you", 4.0, 8.0),
    ]
    boxes = [cue.box for cue in unit.cues]
    assert all(box is not None and 0.0 < box.x0 < box.x1 < 0.7 for box in boxes)
    assert boxes[0].y1 < boxes[1].y0


def test_words_stay_as_long_as_the_picture_and_are_known_of_a_moment_where_it_moves(sandbox, tmp_path, options):
    same = [picture_of(["Tide table"], size=(640, 240))] * 2
    (unit,) = decoded(sandbox, video(tmp_path / "still.mp4", 8, pictures=same), item(1, "still.mp4"), options)
    assert [(cue.text, cue.start, cue.end) for cue in unit.cues] == [("Tide table", 0.0, 8.0)]
    captions = [(1.0, 3.0, "Welcome")]
    slides = [picture_of(["Agenda"], size=(640, 240)), picture_of(["Thank you"], size=(640, 240))]
    path = video(tmp_path / "told.mp4", 8, captions=captions, pictures=slides)
    (unit,) = decoded(sandbox, path, item(1, "told.mp4"), options)
    assert [(cue.text, cue.box) for cue in unit.cues] == [("Welcome", None)]
    assert [start for start, _ in unit.shots] == [0.0, 4.0]


def test_the_reader_seeks_to_the_frame_that_is_shown(tmp_path):
    reader = FrameReader(video(tmp_path / "a.mp4", 30))
    for t in (0.0, 0.4, 29.6, 10.25, 3.0, 20.7):
        assert float(reader.frame(t).mean()) == pytest.approx(2 * int(t * 2), abs=3)
    reader.close()


def test_a_frame_is_rendered_at_its_time_whole_or_cropped(sandbox, tmp_path):
    path = video(tmp_path / "a.mp4", 30)
    at = Locator(t_start=20.0, t_end=20.0)
    png = sandbox.render(path, VIDEO, at, dpi=150, box=None, max_pixels=LOTS)
    assert open_png(png).size == (160, 120)
    assert level(png) == pytest.approx(80, abs=3)
    crop = sandbox.render(path, VIDEO, at, dpi=150, box=Box(0.25, 0.5, 0.5, 1.0), max_pixels=LOTS)
    assert open_png(crop).size == (40, 60)
    small = open_png(sandbox.render(path, VIDEO, at, dpi=150, box=None, max_pixels=1000))
    assert small.width * small.height <= 1000
    with pytest.raises(DecodeError, match="has no frame at 31 s; it lasts 30 s"):
        sandbox.render(path, VIDEO, Locator(t_start=31.0, t_end=31.0), dpi=150, box=None, max_pixels=LOTS)


def test_sampled_frames_come_with_their_times(sandbox, tmp_path, options):
    path = video(tmp_path / "a.mp4", 30)
    few = replace(options, max_frames=5)
    frames = sandbox.frames(path, Locator(t_start=10.0, t_end=20.0), few, max_pixels=LOTS)
    assert [frame.t for frame in frames] == [11.0, 13.0, 15.0, 17.0, 19.0]
    assert [level(frame.png) for frame in frames] == pytest.approx([4 * frame.t for frame in frames], abs=3)


def test_a_video_filmed_upright_is_shown_upright(sandbox, tmp_path, no_ocr):
    picture = Image.new("RGB", (160, 120), "white")
    picture.paste("black", (0, 0, 40, 40))
    path = video(tmp_path / "phone.mp4", 3, pictures=[picture])
    path.write_bytes(turned(path.read_bytes()))
    meta = sandbox.probe(path, "phone.mp4").meta
    assert (meta["width"], meta["height"]) == (120, 160)
    frame = open_png(
        sandbox.render(path, VIDEO, Locator(t_start=1.0, t_end=1.0), dpi=150, box=None, max_pixels=LOTS)
    ).convert("L")
    assert frame.size == (120, 160)
    assert frame.getpixel((110, 10)) < 50
    assert frame.getpixel((10, 10)) > 200


def test_a_video_that_ends_before_its_index_says_which_moments_are_lost(sandbox, put, no_ocr):
    path = put("cut.mp4", streamable_mp4_cut_short())
    (unit,) = decoded(sandbox, path, item(1, "cut.mp4"), no_ocr)
    assert unit.error.startswith("cut.mp4: no picture at ")
    assert "or the file is cut short" in unit.error
    assert unit.text == "cut"


def test_a_lost_moment_is_named_once() -> None:
    assert _no_picture([15.98, 16.0, 17.5]).startswith("no picture at 16.0, 17.5 s: ")


def test_frames_larger_than_allowed_are_refused_before_one_is_decoded(tmp_path):
    path = video(tmp_path / "a.mp4", 1)
    with Sandbox(DecodeLimits(max_pixels=10_000)) as small, pytest.raises(DecodeError, match="frames of 160 x 120"):
        small.probe(path, "a.mp4")


def test_chapters_are_read_where_they_begin_but_for_mere_numbers(sandbox, put, options, tmp_path):
    video(tmp_path / "plain.mp4", 6)
    chapters: list[Chapter] = [
        {"id": n, "start": start, "end": start + 2, "time_base": Fraction(1), "metadata": {"title": title}}
        for n, (start, title) in enumerate([(0, "Chapter 1"), (2, "Greasing the winch"), (4, "00:04")])
    ]
    with av.open(str(tmp_path / "plain.mp4")) as plain, av.open(str(tmp_path / "a.mkv"), "w") as film:
        stream = film.add_stream_from_template(plain.streams.video[0])
        film.set_chapters(chapters)
        for packet in plain.demux(plain.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                film.mux(packet)
    (unit,) = decoded(sandbox, tmp_path / "a.mkv", item(1, "winch-course.mkv"), options)
    assert (unit.text, unit.meta["captioned"]) == ("winch course\nGreasing the winch", False)
    assert [(cue.start, cue.end, cue.text) for cue in unit.cues] == [(2.0, 4.0, "Greasing the winch")]
    page = sandbox.page_text(tmp_path / "a.mkv", DocumentKind.VIDEO, unit.locator, options)
    assert page.text.endswith("Greasing the winch")
