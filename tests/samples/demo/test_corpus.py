"""The demo corpus is what it says it is, file by file, read with the libraries and not with our own decoders."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
import pymupdf
import pytest
from PIL import Image

from vrag_ray.samples.demo import corpus, facts
from vrag_ray.samples.demo.questions import QUESTIONS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    corpus.make_corpus(folder)
    return folder


def test_the_corpus_is_seven_files_under_two_megabytes(folder: Path):
    files = [path for path in folder.iterdir() if not path.name.startswith(".")]
    assert sorted(files) == sorted(corpus.make_corpus(folder))
    assert len(files) == 7
    assert sum(path.stat().st_size for path in files) < 2_000_000
    assert (folder / corpus.VIDEO).stat().st_size < 1_000_000


def test_the_same_bytes_come_out_of_every_run(folder: Path, tmp_path: Path):
    for path in corpus.make_corpus(tmp_path):
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_a_filled_folder_is_left_alone_and_a_lost_file_is_made_again(folder: Path):
    report, notes = folder / corpus.REPORT, folder / corpus.NOTES
    report.write_bytes(b"changed by a user")
    corpus.make_corpus(folder)
    assert report.read_bytes() == b"changed by a user"
    notes.unlink()
    corpus.make_corpus(folder)
    assert notes.is_file()
    assert report.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(("name", "pages", "landscape"), [(corpus.REPORT, 8, False), (corpus.SLIDES, 6, True)])
def test_the_documents_have_their_pages_and_an_outline_that_points_at_each(folder, name, pages, landscape):
    with pymupdf.open(folder / name) as document:
        assert document.page_count == pages
        assert [page for _, _, page in document.get_toc()] == list(range(1, pages + 1))
        assert all((page.rect.width > page.rect.height) is landscape for page in document)
        for _, heading, number in document.get_toc()[1:]:
            assert heading in document[number - 1].get_text()


@pytest.mark.parametrize("name", [corpus.REPORT, corpus.SLIDES])
def test_all_text_lies_on_its_page_and_no_two_lines_overlap(folder, name):
    with pymupdf.open(folder / name) as document:
        for page in document:
            boxes = [
                (pymupdf.Rect(span["bbox"]), span["text"])
                for block in page.get_text("dict")["blocks"]
                for line in block.get("lines", [])
                for span in line["spans"]
            ]
            for box, text in boxes:
                assert page.rect.contains(box), (page.number, text)
            # The inner half of a line's box is its ink: the rest is room for accents and descenders.
            inked = [(pymupdf.Rect(b.x0, b.y0 + b.height / 4, b.x1, b.y1 - b.height / 4), t) for b, t in boxes]
            for index, (box, text) in enumerate(inked):
                for other, other_text in inked[index + 1 :]:
                    assert not box.intersects(other), (page.number, text, other_text)


def test_the_scan_is_one_picture_without_a_text_layer(folder: Path):
    with pymupdf.open(folder / corpus.SCAN) as document:
        assert document.page_count == 1
        assert document[0].get_text().strip() == ""
        assert len(document[0].get_images()) == 1


@pytest.mark.parametrize("name", [corpus.HEAT_PHOTO, corpus.FERRY_PHOTO])
def test_the_photos_are_jpegs_with_shadows_and_noise(folder, name):
    with Image.open(folder / name) as photo:
        assert photo.format == "JPEG"
        assert photo.size == (1334, 1000)
        # A patch of the wall: a drawn chart would be flat there, a photo is not.
        assert np.asarray(photo.convert("L"))[5:25, 5:205].std() > 0.8


def test_the_photos_and_the_scan_can_be_read_by_ocr(folder: Path):
    from rapidocr import RapidOCR

    engine = RapidOCR()
    with pymupdf.open(folder / corpus.SCAN) as document:
        scan = Image.open(io.BytesIO(document[0].get_pixmap(dpi=150).tobytes("png")))
    heat = " ".join(engine(str(folder / corpus.HEAT_PHOTO)).txts)
    ferry = engine(str(folder / corpus.FERRY_PHOTO)).txts
    sheet = " ".join(engine(np.asarray(scan.convert("RGB"))).txts)
    for name, value in facts.HEAT_RECOVERED_MWH.items():
        assert f"{name}: {value} MWh" in heat
    assert {f"{value:.1f}" for value in facts.FERRY_CHARGE_MIN.values()} <= set(ferry)
    for part, _, _ in facts.CRANE_SCAN_ROWS:
        assert part in sheet


def test_the_video_decodes_wholly_and_moves(folder: Path):
    with av.open(str(folder / corpus.VIDEO)) as container:
        assert container.duration / 1e6 == pytest.approx(facts.VIDEO_SECONDS, abs=0.5)
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (640, 360)
        frames = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
    assert len(frames) == facts.VIDEO_SECONDS * 4
    for start, end, _ in facts.VIDEO_CUES:
        first, last = frames[int(start * 4) + 4].astype(int), frames[int(end * 4) - 4].astype(int)
        assert np.abs(first - last).max() > 60, f"nothing moves from {start} s to {end} s"


def test_the_subtitle_track_says_what_the_captions_say_at_the_same_time(folder: Path):
    from vrag_ray.corpus.formats.media.subtitles import read_tracks

    (track,) = read_tracks(folder / corpus.VIDEO).read
    assert [(cue.start, cue.end, cue.text) for cue in track.cues] == [
        (pytest.approx(start, abs=0.01), pytest.approx(end, abs=0.01), text) for start, end, text in facts.VIDEO_CUES
    ]


def test_the_figures_agree_with_each_other():
    assert sum(facts.WIND_2024_MWH) == facts.PRODUCTION_MWH["Wind turbines"][-1]
    assert len(facts.WIND_2024_MWH) == len(facts.DEMAND_2024_MWH) == len(facts.MONTHS)
    for month, wind, demand in zip(facts.MONTHS, facts.WIND_2024_MWH, facts.DEMAND_2024_MWH, strict=True):
        assert (wind > demand) is (month in ("Jan", "Feb", "Mar", "Oct", "Nov", "Dec")), "the report says so"


def test_every_expected_answer_stands_where_the_question_says(folder: Path):
    table, chart, moment = QUESTIONS
    with pymupdf.open(folder / table.source) as document:
        rows = [line for page in document for line in page.get_text().splitlines() if line == table.answer]
        assert rows == [table.answer], "the value stands once in the whole report"
        assert table.answer in document[table.page - 1].get_text()
    assert chart.source == corpus.HEAT_PHOTO
    assert moment.answer in next(text for start, _, text in facts.VIDEO_CUES if start == moment.seconds[0])
