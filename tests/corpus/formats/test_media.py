"""Moments, sounds and captions by the player's clock, in every container; what a film shows is read off its frames."""

from __future__ import annotations

import errno
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.documents import ASS_HEADER, picture_of, video
from tests.support.films import film, number_in, numbered, remuxed, tone
from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.formats.encodings import shown
from vrag_ray.corpus.formats.media.changes import still_stretches
from vrag_ray.corpus.formats.media.clock import duration_of, open_container
from vrag_ray.corpus.formats.media.frames import FrameReader
from vrag_ray.corpus.formats.media.speech import RATE, Speech, sound_of, transcribed
from vrag_ray.corpus.formats.media.subtitles import read_sidecar, read_tracks, transcript
from vrag_ray.corpus.formats.source import Opening, damage
from vrag_ray.corpus.formats.video import VideoSource, covering
from vrag_ray.corpus.model import DecodeError, DecodeOptions, Sidecar
from vrag_ray.corpus.ocr import OcrText
from vrag_ray.corpus.sniff import sniff
from vrag_ray.imaging.frame_times import late_moment
from vrag_ray.types import Cue, DocumentKind, Locator

AS_IT_IS = {"avoid_negative_ts": "disabled"}
FILMS: dict[str, Callable[[Path], Path]] = {
    "H.264 in MP4": lambda d: film(d / "a.mp4"),
    "MP4 in fragments": lambda d: film(d / "a.mp4", mux_options={"movflags": "frag_keyframe+empty_moov"}),
    "AV1 in MP4": lambda d: film(d / "a.mp4", "libsvtav1", options={"preset": "12"}),
    "HEVC in Matroska": lambda d: film(d / "a.mkv", "libx265", options={"x265-params": "log-level=none"}),
    "VP9 in WebM": lambda d: film(d / "a.webm", "libvpx-vp9", options={"deadline": "realtime", "cpu-used": "8"}),
    "XviD in AVI": lambda d: film(d / "a.avi", "mpeg4", tag="XVID"),
    "H.264 in AVI": lambda d: film(d / "a.avi"),
    "MJPEG in AVI": lambda d: film(d / "a.avi", "mjpeg", pix_fmt="yuvj420p", b_frames=0),
    "H.264 in MPEG-TS": lambda d: film(d / "a.ts", sound=8),
    "MPEG-2 in M2TS": lambda d: film(
        d / "a.m2ts", "mpeg2video", rate=25, frames=200, format="mpegts", mux_options={"mpegts_m2ts_mode": "1"}
    ),
    "MPEG-2 in a program stream": lambda d: film(d / "a.mpg", "mpeg2video", rate=25, frames=200, format="vob"),
    "H.263 in FLV": lambda d: film(d / "a.flv", "flv", b_frames=0),
    "VP8 in Ogg": lambda d: film(d / "a.ogv", "libvpx", b_frames=0, options={"deadline": "realtime"}),
    "WMV in ASF": lambda d: film(d / "a.wmv", "wmv2", b_frames=0),
    "MPEG-4 in 3GP": lambda d: film(d / "a.3gp", "mpeg4", b_frames=0),
    "ProRes in MOV": lambda d: film(d / "a.mov", "prores_ks", pix_fmt="yuv422p10le", b_frames=0),
    "a Matroska that begins at 5 s": lambda d: remuxed(d / "b.mkv", film(d / "a.mp4"), shift=5),
}


def numbers(path: Path, times: list[float]) -> list[int | None]:
    reader = FrameReader(path)
    frames = [reader.frame(t) for t in times]
    reader.close()
    return [None if frame is None else number_in(frame) for frame in frames]


@pytest.mark.parametrize("name", FILMS)
def test_the_frame_of_any_time_is_the_one_that_a_player_shows(tmp_path: Path, name: str) -> None:
    path = FILMS[name](tmp_path)
    rate = 25 if "MPEG-2" in name else 10
    times = [7.5, 0.0, 1.0, 4.04, 0.64, 6.0, 5.96, 6.3, 2.2, 2.3]
    assert numbers(path, times) == [int(t * rate + 1e-6) for t in times]
    with open_container(path) as container:
        assert duration_of(container) == pytest.approx(8, abs=0.5)
    assert sniff(path, path.name).kind is DocumentKind.VIDEO


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_a_film_whose_beginning_was_cut_off_begins_where_a_player_begins(tmp_path: Path, suffix: str) -> None:
    """Three seconds that an edit list hides, or that lie before zero, with key frames before and after."""
    path = remuxed(tmp_path / f"b{suffix}", film(tmp_path / "a.mp4"), shift=-3, mux_options=AS_IT_IS)
    assert numbers(path, [0.0, 3.9, 0.5, 4.9]) == [30, 69, 35, 79]


def test_joined_transport_streams_whose_clock_goes_back_have_a_notice(tmp_path: Path) -> None:
    whole = film(tmp_path / "a.ts", sound=8)
    assert not [notice for notice in VideoSource(opening(whole)).probe().notices if "clock" in notice]
    joined = tmp_path / "b.ts"
    joined.write_bytes(whole.read_bytes() * 3)
    [notice] = [notice for notice in VideoSource(opening(joined)).probe().notices if "clock" in notice]
    assert notice.startswith("its clock goes back 2 times")


def test_a_picture_that_starts_after_the_sound_keeps_the_clock_of_the_sound(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", first=30, sound=11)
    assert numbers(path, [5.0, 3.0, 1.0, 10.9]) == [20, 0, 0, 79]


def test_sound_that_outlasts_the_picture_leaves_the_last_picture_standing(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", sound=12)
    assert numbers(path, [11.0, 7.0]) == [79, 70]
    assert VideoSource(opening(path)).unit(0).error == ""
    longer = film(tmp_path / "a.mkv", sound=12)
    assert numbers(longer, [11.0, 7.0]) == [79, 70]


def test_pixels_that_are_not_square_are_stretched_as_players_do(tmp_path: Path) -> None:
    wide = FrameReader(film(tmp_path / "a.mp4", pixel=Fraction(16, 11)))
    assert wide.size == (140, 48)
    frame = wide.frame(2.0)
    assert frame is not None
    assert (frame.shape, number_in(frame)) == ((48, 140, 3), 20)
    assert FrameReader(film(tmp_path / "b.mp4", pixel=Fraction(1, 2))).size == (96, 96)


def test_a_mirrored_picture_is_shown_as_it_was_seen(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4")
    upright = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
    mirrored = struct.pack(">9i", -65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
    data = path.read_bytes()
    at = data.index(upright, data.index(b"tkhd"))
    path.write_bytes(data[:at] + mirrored + data[at + len(mirrored) :])
    frame = FrameReader(path).frame(2.0)
    assert frame is not None
    assert number_in(frame[:, ::-1]) == 20


READ_WHOLE = """
import gc, sys
from pathlib import Path

import av

from vrag_ray.corpus.formats.media.changes import still_stretches
from vrag_ray.corpus.formats.media.frames import FrameReader

def threads():
    return len(list(Path("/proc/self/task").iterdir()))

path, before = Path(sys.argv[1]), threads()
gc.collect()
gc.disable()
reader = FrameReader(path)
assert all(reader.frame(t) is not None for t in (2.0, 7.0, 4.0))
assert threads() == before, (threads(), before)
reader.close()
still_stretches(path, 0.0, 8.0)
del reader
assert not [thing for thing in gc.get_objects() if isinstance(thing, av.VideoFrame)]
"""


def test_a_film_that_was_read_leaves_no_thread_and_no_picture_behind(tmp_path: Path) -> None:
    """Without the collector of cycles, which runs when it likes: one process reads many films in its address space.

    In a process of its own: threads of other tests end at any time.
    """
    command = [sys.executable, "-c", READ_WHOLE, str(film(tmp_path / "a.mp4"))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_process_without_room_for_a_thread_is_not_taken_for_a_damaged_film() -> None:
    full = BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    with pytest.raises(BlockingIOError), damage("is damaged"):
        raise full


def test_a_slide_is_found_whatever_the_key_frames_do(tmp_path: Path) -> None:
    slides = [picture_of([word], size=(320, 160)) for word in ("Agenda", "Budget", "Thanks")]
    path = video(tmp_path / "talk.mp4", 36, pictures=slides)
    bounds = [round(start) for start, _ in still_stretches(path, 0.0, 36.0)]
    assert bounds == [0, 12, 24]
    noise = np.random.default_rng(1).integers(0, 256, (48, 96, 3), np.uint8)
    assert still_stretches(film(tmp_path / "b.mp4", drawn=lambda i: np.roll(noise, 7 * i, 1)), 0.0, 8.0) == []


def slides(*changes: float, rate: int | Fraction) -> Callable[[int], NDArray[np.uint8]]:
    """A picture of another number from each of ``changes`` (seconds) on."""
    return lambda i: numbered(9 + 77 * sum(i / rate >= change for change in changes))


@pytest.mark.parametrize("rate", [1, Fraction(1, 2)])
def test_in_a_film_of_few_frames_a_slide_begins_where_a_frame_differs(tmp_path: Path, rate: int | Fraction) -> None:
    path = film(tmp_path / "a.mp4", rate=rate, frames=math.ceil(60 * rate), drawn=slides(12, 30, rate=rate))
    assert still_stretches(path, 0.0, 60.0) == [(0.0, 12.0), (12.0, 30.0), (30.0, 60.0)]
    [later] = still_stretches(path, 36.0, 60.0)
    assert later == (36.0, 60.0)


KEY_FRAMES_ONLY: dict[str, Callable[[Path, Callable[[int], NDArray[np.uint8]]], Path]] = {
    "MJPEG in AVI": lambda d, drawn: film(d / "a.avi", "mjpeg", pix_fmt="yuvj420p", b_frames=0, drawn=drawn),
    "H.264 in MP4": lambda d, drawn: film(d / "a.mp4", key_every=1, b_frames=0, drawn=drawn),
    "H.264 in Matroska": lambda d, drawn: film(d / "a.mkv", key_every=1, b_frames=0, drawn=drawn),
    "ProRes in MOV": lambda d, drawn: film(d / "a.mov", "prores_ks", pix_fmt="yuv422p10le", b_frames=0, drawn=drawn),
}


@pytest.mark.parametrize("name", KEY_FRAMES_ONLY)
def test_in_a_film_of_key_frames_a_slide_begins_with_its_first_frame(tmp_path: Path, name: str) -> None:
    path = KEY_FRAMES_ONLY[name](tmp_path, slides(2.3, 5.6, rate=10))
    bounds = [t for stretch in still_stretches(path, 0.0, 8.0) for t in stretch]
    assert bounds == pytest.approx([0.0, 2.3, 2.3, 5.6, 5.6, 8.0])


def test_slides_of_ffv1_whose_frames_are_all_large_begin_with_a_key_frame(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mkv", "ffv1", key_every=10, b_frames=0, drawn=slides(2.3, 5.6, rate=10))
    bounds = [t for stretch in still_stretches(path, 0.0, 8.0) for t in stretch]
    assert bounds == pytest.approx([0.0, 3.0, 3.0, 6.0, 6.0, 8.0])
    assert still_stretches(film(tmp_path / "b.mkv", "ffv1", key_every=10, b_frames=0), 0.0, 8.0) == []


def test_a_slide_of_av1_begins_when_it_is_shown_and_not_where_it_is_stored(tmp_path: Path) -> None:
    noise = [np.random.default_rng(n).integers(0, 2, (12, 24, 1), np.uint8) * 255 for n in range(3)]

    def drawn(index: int) -> NDArray[np.uint8]:
        return np.kron(noise[(index >= 64) + (index >= 129)], np.ones((4, 4, 3), np.uint8))

    options = {"preset": "12"}
    path = film(tmp_path / "a.mkv", "libsvtav1", frames=160, key_every=300, options=options, drawn=drawn)
    stored = [start for start, _ in still_stretches(path, 0.0, 16.0)]
    shots = VideoSource(opening(path, ocr=True)).unit(0).shots
    assert min(stored[1:]) < 6.3
    assert [start for start, _ in shots] == pytest.approx([0.0, 6.4, 12.9], abs=0.11)
    assert [end for _, end in shots] == pytest.approx([6.4, 12.9, 16.0], abs=0.11)


def test_samples_cover_what_stays_in_view() -> None:
    assert covering([1.0, 3.0, 5.0], [(0.0, 3.5), (3.5, 4.5), (4.5, 6.0)]) == [3.0, 4.0, 5.0]
    assert covering([1.0, 3.0], []) == [1.0, 3.0]


SRT = (
    "1\r\n00:00:01,000 --> 00:00:02,500\r\nWelcome to the\r\n<i>Fähre</i>\r\n\r\n"
    "2\r\n00:01:00,000 --> 00:01:02,000\r\nBye\r\n"
)
WELCOME = (Cue(1.0, 2.5, "Welcome to the Fähre"), Cue(60.0, 62.0, "Bye"))
VTT = (
    "WEBVTT\n\nNOTE not --> this\n\nSTYLE\n::cue {}\n\n00:01.000 --> 00:02.500 align:start\nWelcome to the\nFähre\n\n"
    "end\n01:00.000 --> 01:02.000\nBye\n"
)
ASS = ASS_HEADER.decode() + (
    "Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{\\i1}Welcome to\\Nthe Fähre\n"
    "Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,{\\p1}m 0 0 l 10 10\n"
    "Dialogue: 0,0:01:00.00,0:01:02.00,Default,,0,0,0,,Bye\n"
)


@pytest.mark.parametrize(
    ("name", "data", "language"),
    [
        ("film.srt", SRT.encode(), ""),
        ("film.de.srt", SRT.encode("cp1252"), "de"),
        ("film.pt-BR.srt", SRT.encode("utf-16"), "pt-BR"),
        ("film.vtt", VTT.encode(), ""),
        ("film.en.forced.ass", ASS.encode(), "en"),
        ("film.en.hi.srt", SRT.encode(), "en"),
        ("film.sdh.de.srt", SRT.encode(), "de"),
        ("film.hi.srt", SRT.encode(), "hi"),
        ("film.mp4.srt", SRT.encode(), ""),
        ("film.mp4.de.srt", SRT.encode(), "de"),
        ("film.es-419.srt", SRT.encode(), "es-419"),
        ("film.zh-Hant-TW.srt", SRT.encode(), "zh-Hant-TW"),
        ("film_de-AT.srt", SRT.encode(), "de-AT"),
        ("film [English].forced.srt", SRT.encode(), "en"),
        ("film.ssa", ASS.replace("Dialogue: 0", "Dialogue: Marked=0").encode(), ""),
    ],
)
def test_subtitles_beside_a_film_are_read_with_their_language(tmp_path, name, data, language) -> None:
    (tmp_path / "blob").write_bytes(data)
    track = read_sidecar(tmp_path / "blob", name, "film.mp4")
    assert (track.language, track.cues) == (language, WELCOME)


def captions(
    folder: Path, text: str | bytes, name: str = "film.srt", film: str = "film.mp4"
) -> list[tuple[float, str]]:
    """When each caption of a file beside a film begins, and its words."""
    (folder / "blob").write_bytes(text.encode() if isinstance(text, str) else text)
    return [(cue.start, cue.text) for cue in read_sidecar(folder / "blob", name, film).cues]


def test_a_language_is_none_of_the_words_of_the_film_s_name(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text(SRT)
    names = {"Intro.to.AI.srt": "", "Intro.to.AI.en.srt": "en"}
    assert {name: read_sidecar(tmp_path / "blob", name, "Intro.to.AI.mp4").language for name in names} == names


SAILS = [(1.0, "The ferry sails"), (62.5, "At nine")]


@pytest.mark.parametrize(
    "text",
    [
        "1\n00:00:01,000 --> 00:00:02,000\nThe ferry sails\n2\n00:01:02,500 --> 00:01:03,000\nAt nine",
        "00:00:01,000 --> 00:00:02,000\nThe ferry sails\n00:01:02,500 --> 00:01:03,000\nAt nine\n",
        "1\r\r\n00:00:01,000 --> 00:00:02,000\r\r\nThe ferry sails\r\r\n\r\r\n"
        "2\r\r\n00:01:02,500 --> 00:01:03,000\r\r\nAt nine\r\r\n",
        "1\n00:00:01:000 --> 00:00:02:000\nThe ferry sails\n\n2\n00:01:02:500 --> 00:01:03:000\nAt nine\n",
        "1\n00:00:01 -> 00:00:02\nThe ferry sails\n\n2\n00:01:02,5 \u2013> 00:01:03\nAt nine\n",
        "1\n00:00: 1,000 --> 00: 00: 2, 000\nThe ferry sails\n\n2\n00:01:02,500 --> 00:01:03,000\nAt nine\n",
        "1\n00:00:01,000 --> 00:00:02,000\nThe ferry\n\nsails\n\n2\n00:01:02,500 --> 00:01:03,000\n \nAt nine\n",
        "1\n-00:00:03,000 --> -00:00:02,000\nBefore\n\n2\n00:00:01,000 --> 00:00:02,000\nThe ferry sails\n\n"
        "3\n00:01:02,500 --> 00:01:03,000\nAt nine\n",
        "WEBVTT\n\n00:01.000 --> 00:02.000\n \nThe ferry\n \nsails\n\nNOTE\nunseen\n\n01:02.500 --> 01:03.000\nAt nine",
    ],
    ids=[
        "no empty line",
        "no number",
        "CR CR LF",
        "colon",
        "no thousandths",
        "blanks",
        "empty line",
        "minus",
        "WebVTT",
    ],
)
def test_subtitles_are_read_as_players_read_them(tmp_path: Path, text: str) -> None:
    assert captions(tmp_path, text) == SAILS


def test_a_number_of_a_caption_is_only_what_numbers_all_of_them(tmp_path: Path) -> None:
    text = "00:01.000 --> 00:02.000\nThe answer is\n42\n00:03.000 --> 00:04.000\nYes\n"
    assert captions(tmp_path, text) == [(1.0, "The answer is 42"), (3.0, "Yes")]


def test_a_file_without_times_has_no_captions(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="have no caption with a time: save them as SRT, VTT or ASS"):
        captions(tmp_path, "Welcome aboard\n")


def test_ass_is_read_by_the_fields_that_it_states(tmp_path: Path) -> None:
    text = (
        "[V4+ Styles]\nFormat: Name, Fontname\nStyle: Default,Arial\n[Events]\nFormat: Start, End, Text\n"
        "Comment: 0:00:01.00,0:00:02.00,unseen\nDialogue: 0:00:01.00,0:00:02.00,The ferry sails\n"
        "Dialogue: 0:01:02.50,0:01:03.00,At nine\n"
    )
    assert captions(tmp_path, text, "film.ass") == SAILS


def test_subtitles_hold_words_and_no_markup(tmp_path: Path) -> None:
    lines = (
        "<b>Heath &amp; Co</b>&nbsp;&#39;sails&#x27; AT&T; &lt;soon&gt;\n"
        "<ruby>Holly<rt>holi</rt></ruby> and <ruby>Ivy<rt>aivi</ruby>"
    )
    assert captions(tmp_path, f"1\n00:00:01,000 --> 00:00:02,000\n{lines}\n") == [
        (1.0, "Heath & Co 'sails' AT&T; <soon> Holly and Ivy")
    ]


@pytest.mark.parametrize(
    ("words", "encoding"), [("Паром перевозит машины", "cp1251"), ("船は九時に出ます", "shift_jis")]
)
def test_the_encoding_of_subtitles_is_detected_and_named(tmp_path: Path, words: str, encoding: str) -> None:
    srt = f"1\n00:00:01,000 --> 00:00:02,000\n{words}\n"
    assert captions(tmp_path, srt.encode(encoding)) == [(1.0, words)]
    source = VideoSource(opening(film(tmp_path / "film.mp4"), sidecars=(Sidecar(tmp_path / "blob", "film.srt"),)))
    [notice] = source.probe().notices
    assert notice == f"the subtitles film.srt: read as {shown(encoding)}: it is not UTF-8"


@pytest.mark.parametrize(
    ("name", "known", "unknown"),
    [("a.mkv", b"S_TEXT/UTF8", b"S_TEXT/NEWS"), ("a.mp4", b"tx3g", b"stpp"), ("a.mp4", b"tx3g", b"c608")],
)
def test_subtitles_of_an_unknown_kind_cost_themselves_alone(
    tmp_path: Path, name: str, known: bytes, unknown: bytes
) -> None:
    path = video(tmp_path / name, 8, captions=[(1.0, 3.0, "Welcome aboard")])
    assert [cue.text for track in read_tracks(path).read for cue in track.cues] == ["Welcome aboard"]
    path.write_bytes(path.read_bytes().replace(known, unknown))
    source = VideoSource(opening(path, sidecars=()))
    assert source.probe().notices == (
        "1 of its subtitle tracks cannot be read completely: damaged, or of an unknown kind",
    )
    assert source.unit(0).text == "a"


ROLLING = """WEBVTT

00:00:01.000 --> 00:00:04.000 align:start position:0%
the pump<00:00:01.500><c> stands</c><00:02.000><c> still</c>

00:00:04.000 --> 00:00:04.010
the pump stands still

00:00:04.010 --> 00:00:08.000
the pump stands still
until<00:00:05.000><c> nine</c>

00:00:08.000 --> 00:00:09.000
~
until nine
and starts
~

00:00:20.000 --> 00:00:21.000
and starts
"""


def test_lines_that_roll_up_are_read_once_and_without_the_times_of_their_words(tmp_path: Path) -> None:
    # An empty line of a caption holds a blank, as in those of YouTube.
    (tmp_path / "blob").write_text(ROLLING.replace("~", " "))
    cues = read_sidecar(tmp_path / "blob", "talk.en.vtt", "talk.mp4").cues
    assert [(cue.start, cue.end, cue.text) for cue in cues] == [
        (1.0, 4.01, "the pump stands still"),
        (4.01, 8.0, "until nine"),
        (8.0, 9.0, "and starts"),
        (20.0, 21.0, "and starts"),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (ROLLING.replace("~", " "), "[0:00:01] the pump stands still until nine and starts\n\n[0:00:20] and starts"),
        (
            "WEBVTT\n\na1/3-0\n00:00:03.100 --> 00:00:06.000\n<v Hanne Roald>The dam holds.</v>\n\n"
            "a1/4-0\n00:00:06.000 --> 00:00:08.000\n<v Hanne Roald>It is <b>old</b>.</v>\n\n"
            "a1/5-0\n01:00:09.000 --> 01:00:11.000\n<v Per Vik>Who\nsays so?</v>\n",
            "[0:00:03] Hanne Roald: The dam holds. It is old.\n\n[1:00:09] Per Vik: Who says so?",
        ),
        (
            "0:00:01.000,0:00:04.000\nThe pilot is Tone\n\n0:00:04.000,0:00:08.000\nRask.\n",
            "[0:00:01] The pilot is Tone Rask.",
        ),
        (
            "1\n00:00:01,000 --> 00:00:02,000\n- Is it <i>open</i>?\n\n2\n00:00:02,000 --> 00:00:03,000\n- No.\n",
            "[0:00:01] - Is it open?\n\n[0:00:02] - No.",
        ),
        ("[Events]\nDialogue: 0,0:01:02.50,0:01:03.00,,,0,0,0,,{\\an8}At nine", "[0:01:02] At nine"),
        (
            "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,At nine{\\alpha&HFF&} or {\\i1}ten\n"
            "Dialogue: 0,0:00:02.00,0:00:03.00,,,0,0,0,,{\\alpha&HFF&\\t(\\alpha&H00&)}sharp\n"
            "Dialogue: 0,0:00:03.00,0:00:04.00,,,0,0,0,,{\\alpha&HFF&}Gone",
            "[0:00:01] At nine sharp",
        ),
        ("[ti:Song]\n[00:01.00]The ferry sails", "[0:00:01] The ferry sails"),
        ("<SAMI><SYNC Start=1000><P>Pump<SYNC Start=2000></SAMI>", "[0:00:01] Pump"),
        ("<tt><body><p begin='1s' end='2s'>Pump<br/>2</p></body></tt>", "[0:00:01] Pump 2"),
        ("Welcome aboard", ""),
    ],
    ids=["rolling", "voices", "SBV", "turns", "ASS", "ASS without ink", "lyrics", "SAMI", "TTML", "none"],
)
def test_captions_without_their_film_are_read_as_speech(text: str, shown: str) -> None:
    assert transcript(text) == shown


def test_long_speech_is_parted_at_the_end_of_a_sentence() -> None:
    cues = [f"00:{at:02}:00 --> 00:{at + 1:02}:00\n{at}: {'The pump runs and ' * 5}\nit stands." for at in range(1, 9)]
    parts = transcript("\n\n".join(cues)).split("\n\n")
    assert [part[:9] for part in parts] == ["[0:01:00]", "[0:04:00]", "[0:07:00]"]


SAMI = """<SAMI><BODY>
<SYNC Start=1000><P Class=ENCC>The pump is<br>40 metres<P Class='KRCC'>deep
<SYNC Start=4000><P Class=ENCC>&nbsp;
<SYNC Start="5000"><P Class=ENCC>It stands.
</BODY></SAMI>"""
TIMED_TEXT = """<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" ttp:frameRate="25"><body><div>
<p begin="00:00:01.000" end="00:00:04:00">The <span>pump</span> is<br/>40
  metres deep</p><p begin="5s" dur="2500ms">It stands.</p><p begin="00:00:08:05"/>
<p begin="00:00:09:05">Off</p></div></body></tt>"""
LYRICS = "[offset:+500]\n[00:01.00]<00:01.00>The <00:01.40>heather blooms\n[00:05.00][01:12.00]Refrain\n[00:09.50]\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.smi", SAMI, [(1, 4, "The pump is 40 metres"), (1, 11, "deep"), (5, 15, "It stands.")]),
        ("a.ttml", TIMED_TEXT, [(1, 4, "The pump is 40 metres deep"), (5, 7.5, "It stands."), (9.2, 19.2, "Off")]),
        ("a.lrc", LYRICS, [(0.5, 4.5, "The heather blooms"), (4.5, 9, "Refrain"), (71.5, 81.5, "Refrain")]),
    ],
)
def test_captions_that_state_no_ends_last_until_the_next(
    tmp_path: Path, name: str, text: str, expected: list[tuple[float, float, str]]
) -> None:
    (tmp_path / "blob").write_text(text)
    cues = read_sidecar(tmp_path / "blob", name, "a.mp4").cues
    assert [(cue.start, cue.end, cue.text) for cue in cues] == expected


def test_every_language_is_read_and_named(tmp_path: Path) -> None:
    (tmp_path / "de").write_text(SRT)
    path = video(tmp_path / "a.mkv", 8, captions=[(1.0, 3.0, "Welcome aboard")])
    source = VideoSource(opening(path, sidecars=(Sidecar(tmp_path / "de", "a.de.srt"), Sidecar(path, "a.fr.srt"))))
    probe, unit = source.probe(), source.unit(0)
    assert probe.meta["languages"] == "?, de"
    assert unit.text.splitlines() == ["a", "Welcome aboard", "Welcome to the Fähre"]
    assert [str(cue) for cue in unit.cues] == ["[1.0-3.0] Welcome aboard", "[1.0-2.5] Welcome to the Fähre"]
    [notice] = probe.notices
    assert notice.startswith("not read: the subtitles a.fr.srt: the file holds binary data")
    assert read_tracks(path).in_pictures == 0


def test_speech_is_read_clip_by_clip_with_the_times_of_the_whole(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.wav", 20)
    heard: list[int] = []

    def hear(sound: np.ndarray) -> Speech:
        heard.append(round(len(sound) / RATE))
        return Speech("en", (Cue(1.0, 2.0, "Before the clip"), Cue(4.0, 6.0, "The pump stands")))

    source = VideoSource(opening(path, clip_seconds=10.0, speech_model="base", hear=hear))
    probe, second = source.probe(), source.unit(1)
    assert (probe.kind, probe.units, probe.notices) == (DocumentKind.VIDEO, 2, ())
    assert heard == [13]
    assert (second.text, second.cues) == ("a\nThe pump stands", (Cue(11.0, 13.0, "The pump stands"),))
    assert (second.meta["language"], probe.meta["has_picture"]) == ("en", False)
    with pytest.raises(DecodeError, match="is a sound recording and has no picture"):
        source.render(Locator(t_start=1.0, t_end=1.0), dpi=150, box=None, max_pixels=10_000)
    assert source.frames(Locator(t_start=0.0, t_end=10.0), 10_000) == []


def test_speech_that_is_not_read_is_no_secret(tmp_path: Path) -> None:
    [notice] = VideoSource(opening(tone(tmp_path / "a.flac", 2))).probe().notices
    assert notice.startswith("its speech is not read")


def test_a_model_s_silence_is_not_quoted() -> None:
    def segment(text: str, silence: float, sure: float) -> SimpleNamespace:
        return SimpleNamespace(start=0.0, end=1.0, text=text, no_speech_prob=silence, avg_logprob=sure)

    segments = [
        segment(" Good  morning ", 0.1, -0.2),
        segment("Thanks for watching", 0.9, -1.4),
        segment(" ", 0.0, 0.0),
    ]
    model = SimpleNamespace(transcribe=lambda *_, **__: (iter(segments), SimpleNamespace(language="en")))
    assert transcribed(model, np.zeros(RATE, np.float32)) == Speech("en", (Cue(0.0, 1.0, "Good morning"),))


def test_sound_lies_where_the_clock_says(tmp_path: Path) -> None:
    sound = sound_of(tone(tmp_path / "a.wav", 4, silent_until=2.0), 1.0, 6.0)
    loud = np.flatnonzero(np.abs(sound) > 0.1) / RATE
    assert len(sound) == 5 * RATE
    assert (loud[0], loud[-1]) == (pytest.approx(1.0, abs=0.05), pytest.approx(3.0, abs=0.05))


def test_a_playlist_is_never_followed(tmp_path: Path) -> None:
    for name, text in (("a.mp4", "#EXTM3U\nfile:///etc/hosts\n"), ("a.mpg", "ffconcat version 1.0\nfile 'b.mp4'\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(DecodeError, match="holds no video"):
            sniff(tmp_path / name, name)
        with pytest.raises(DecodeError, match="is no readable video"):
            open_container(tmp_path / name)


def test_a_source_text_named_ts_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_text("export const answer = 42\n")
    assert sniff(tmp_path / "a.ts", "a.ts").kind is DocumentKind.TEXT


def opening(
    path: Path,
    *,
    clip_seconds: float = 60.0,
    speech_model: str = "",
    hear: Callable[[np.ndarray], Speech] | None = None,
    sidecars: tuple[Sidecar, ...] = (),
    ocr: bool = False,
) -> Opening:
    options = DecodeOptions.from_config(CorpusConfig(clip_seconds=clip_seconds, speech_model=speech_model, ocr=ocr))
    nothing = OcrText("", ())
    return Opening(path, path.name, options, DecodeLimits(), lambda _: nothing, sidecars=sidecars, hear=hear)


def test_a_slide_is_read_before_frames_that_come_from_the_next(tmp_path: Path) -> None:
    """An encoder may spend its bytes on a frame after the change, from which those before it take their picture."""
    bars = [
        np.kron(np.random.default_rng(n).integers(0, 2, (6, 12), np.uint8) * 255, np.ones((8, 8))) for n in range(3)
    ]

    def drawn(index: int) -> NDArray[np.uint8]:
        return np.repeat(bars[min(index // 19, 2)][:, :, None].astype(np.uint8), 3, axis=2)

    for name in ("a.mp4", "a.mkv"):
        path = film(tmp_path / name, drawn=drawn, frames=60, rate=2, key_every=300)
        stretches = still_stretches(path, 0.0, 28.5)
        assert [int(late_moment(*stretch) * 2 // 19) for stretch in stretches] == [0, 1, 2]
