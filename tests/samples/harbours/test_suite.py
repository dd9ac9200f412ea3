"""The generated suite: the same for the same seed, and its answers stand where it says."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from pathlib import Path

import av
import numpy as np
import pymupdf
import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

from tests.support.ingest_material import PLANTED
from vrag_ray.cli.main import make_app
from vrag_ray.corpus.formats.media.subtitles import read_tracks
from vrag_ray.evaluation.folder import EvaluationFolder
from vrag_ray.questions.answer_scores import normalised
from vrag_ray.questions.files import load_examples
from vrag_ray.samples.harbours.documents import slides_name, yearbook_name
from vrag_ray.samples.harbours.facts import TUGS, Language, Quantity, harbours
from vrag_ray.samples.harbours.suite import UNANSWERABLE, Difficulty, questions, write_suite
from vrag_ray.samples.harbours.wording import WORDINGS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_suite(tmp_path_factory.mktemp("suite"), seed=5, count=4)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_the_same_seed_makes_the_same_bytes_and_another_one_others(made: tuple[Path, Path], tmp_path: Path) -> None:
    documents, questions_file = made
    same, again = write_suite(tmp_path / "same", seed=5, count=4)
    assert digests(same) == digests(documents) and again.read_bytes() == questions_file.read_bytes()
    _, other = write_suite(tmp_path / "other", seed=6, count=2)
    assert other.read_bytes() != questions_file.read_bytes()


def test_documents_are_drawn_again_only_by_other_code_or_of_another_seed(tmp_path: Path) -> None:
    documents, _ = write_suite(tmp_path, seed=5, count=2)
    before = digests(documents)
    path = documents / slides_name(harbours(5, 2)[0])
    path.write_bytes(b"of a user")
    write_suite(tmp_path, seed=5, count=2)
    assert path.read_bytes() == b"of a user"
    (tmp_path / ".edition").write_text("seed 5 of older code")
    write_suite(tmp_path, seed=5, count=2)
    assert digests(documents) == before


def text_of(documents: Path, name: str, page: int) -> str:
    text: str = pymupdf.open(documents / name)[page - 1].get_text()
    return normalised(text)


def test_an_answer_stands_on_its_gold_page_where_that_has_text(made: tuple[Path, Path]) -> None:
    documents, questions_file = made
    looked = 0
    for example in load_examples(questions_file):
        for page in example.gold:
            assert (documents / page.file_name).is_file(), example.uid
            if example.kind in (Difficulty.LOOKUP, Difficulty.PICTURE) and "yearbook" in page.file_name:
                assert normalised(example.answers[0]) in text_of(documents, page.file_name, page.page), example.uid
                looked += 1
    assert looked == 4 * 3


def test_every_box_holds_the_answer_and_little_else(made: tuple[Path, Path]) -> None:
    documents, questions_file = made
    looked = Counter[str]()
    for example in load_examples(questions_file):
        for gold in example.gold:
            path = documents / gold.file_name
            if gold.box is None or path.suffix != ".pdf" or "crane" in path.name:
                continue
            page = pymupdf.open(path)[gold.page - 1]
            box = pymupdf.Rect(*gold.box) * pymupdf.Matrix(page.rect.width, page.rect.height)
            inside = [word[4] for word in page.get_text("words") if middle(word) in box]
            looked[example.kind] += 1
            if example.kind == Difficulty.COMPARE:
                assert len(inside) == 1, example.uid
            elif "slides" in path.name:
                assert example.question.split("tug ")[1].split()[0] in inside, example.uid
            elif example.kind == Difficulty.PICTURE:
                # The column of a chart has its name, too.
                assert sorted(inside) == sorted([example.answers[0], example.question.split()[-3]]), example.uid
            else:
                assert inside == [example.answers[0]], example.uid
    assert looked == {Difficulty.LOOKUP: 8, Difficulty.PICTURE: 4, Difficulty.TWO_HOPS: 8, Difficulty.COMPARE: 8}


def middle(word: tuple[float, float, float, float, str]) -> pymupdf.Point:
    return pymupdf.Point((word[0] + word[2]) / 2, (word[1] + word[3]) / 2)


@pytest.mark.exhaustive
def test_the_boxes_of_scans_and_photos_can_be_read_alone(made: tuple[Path, Path]) -> None:
    """What OCR reads of the picture's part in the box is the answer's line, so the box was turned with the picture."""
    from rapidocr import RapidOCR

    documents, questions_file = made
    engine = RapidOCR()
    looked = 0
    for example in list(load_examples(questions_file))[:12]:
        for gold in example.gold:
            path = documents / gold.file_name
            if gold.box is None or not (path.suffix == ".jpg" or "crane" in path.name):
                continue
            with pymupdf.open(path) as document:
                png = document[0].get_pixmap(dpi=150).tobytes("png")
            picture = Image.open(io.BytesIO(png)).convert("RGB")
            sides = (picture.width, picture.height) * 2
            part = picture.crop(tuple(round(side * at) for side, at in zip(sides, gold.box, strict=True)))
            read = " ".join(engine(np.asarray(part)).txts)
            assert normalised(example.answers[0]).replace(" ", "") in normalised(read).replace(" ", ""), example.uid
            assert len(read) < 60, read
            looked += 1
    assert looked == 3


def test_a_clip_shows_another_scene_in_the_gold_seconds_than_before_and_after(made: tuple[Path, Path]) -> None:
    documents, questions_file = made
    golds = [
        (example, gold)
        for example in load_examples(questions_file)
        for gold in example.gold
        if gold.seconds is not None
    ]
    assert len(golds) == 4 * 2 and all(example.kind == Difficulty.PICTURE for example, _ in golds)
    for example, gold in golds:
        with av.open(str(documents / gold.file_name)) as container:
            assert container.duration is not None and gold.seconds is not None
            length = container.duration / av.time_base
            frames = {frame.time: frame.to_ndarray(format="gray").astype(int) for frame in container.decode(video=0)}
        start, end = gold.seconds
        assert length == pytest.approx(30, abs=0.6) and len(frames) == 60 and end <= 30
        captions = {at: frames[at][-40:] for at in (5.0, 15.0, 25.0)}
        shown = captions.pop((start + end) / 2)
        assert all(np.abs(shown - other).max() > 100 for other in captions.values()), example.uid
        still = frames[start + 1.0][-40:]
        assert np.abs(shown - still).max() < 60, f"{example.uid}: the caption stays for the whole scene"


def test_some_clips_have_subtitles_and_those_say_the_answer(made: tuple[Path, Path]) -> None:
    documents, questions_file = made
    with_track = 0
    for example in load_examples(questions_file):
        for gold in example.gold:
            if gold.seconds is None:
                continue
            cues = [cue for track in read_tracks(documents / gold.file_name).read for cue in track.cues]
            with_track += bool(cues)
            texts = [cue.text for cue in cues if (cue.start, cue.end) == pytest.approx(gold.seconds, abs=0.01)]
            assert not cues or example.answers[0] in texts[0], example.uid
    assert with_track == 2 * 2, "of four harbours two have subtitles"


def test_a_chinese_yearbook_can_be_read_and_brings_its_font(made: tuple[Path, Path]) -> None:
    documents, _ = made
    [chinese] = [harbour for harbour in harbours(5, 4) if harbour.language is Language.CHINESE]
    path = documents / yearbook_name(chinese)
    with pymupdf.open(path) as document:
        pages = [page.get_text() for page in document]
        fonts = {font[3].split("+")[-1]: font[1] for page in document for font in page.get_fonts()}
    wording = WORDINGS[chinese.language]
    assert wording.title.format(name=chinese.name) in pages[0] and str(chinese.opened) in pages[0]
    assert all(label in pages[1] for label in wording.quantities.values()) and wording.corner in pages[1]
    assert fonts["Droid Sans Fallback Regular"] == "ttf", "embedded"
    assert path.stat().st_size < 40_000, "only the glyphs that are used"


def test_scans_and_photos_have_no_text_to_read_but_by_ocr(made: tuple[Path, Path]) -> None:
    documents, _ = made
    assert all(text_of(documents, path.name, 1) == "" for path in documents.glob("*-crane-sheet.pdf"))
    assert len(list(documents.glob("*.jpg"))) == 4


def test_answers_of_unanswerable_questions_stand_nowhere(made: tuple[Path, Path]) -> None:
    documents, questions_file = made
    everything = " ".join(page.get_text() for path in documents.glob("*.pdf") for page in pymupdf.open(path)).lower()
    vain = [example for example in load_examples(questions_file) if example.answers == (UNANSWERABLE,)]
    assert all(not example.gold for example in vain) and len(vain) == 8
    assert not any(word in everything for word in ("windmill", "windmühle", "moulin", "风车", "2032"))


def test_every_harbour_has_twelve_questions_in_five_difficulties() -> None:
    counts = Counter(example.kind for example in questions(harbours(0, 6)))
    assert counts == {
        Difficulty.LOOKUP: 12,
        Difficulty.PICTURE: 36,
        Difficulty.TWO_HOPS: 6,
        Difficulty.COMPARE: 6,
        Difficulty.NOWHERE: 12,
    }
    sets = Counter(example.data_source for example in questions(harbours(0, 6)))
    assert sets == {"harbours-en": 24, "harbours-de": 24, "harbours-fr": 12, "harbours-zh": 12}
    assert [kind.value[0] for kind in Difficulty] == list("12345")


@pytest.mark.parametrize("seed", range(5))
def test_facts_leave_no_answer_open(seed: int) -> None:
    most = harbours(seed, len(TUGS))
    assert {harbour.language for harbour in most[:4]} == set(Language)
    assert len({harbour.name for harbour in most}) == len({harbour.tug for harbour in most}) == len(TUGS)
    # Of two neighbours one sold more.
    sold = [harbour.value(Quantity.FUEL, 2024) for harbour in most]
    assert all(first != second for first, second in zip(sold, [*sold[1:], sold[0]], strict=True))
    assert len({example.uid for example in questions(most)}) == 12 * len(TUGS)
    for harbour in most:
        assert (
            len({call.ship for call in harbour.calls})
            == len({call.lock for call in harbour.calls})
            == len(harbour.calls)
            == 3
        )
        assert [call.time for call in harbour.calls] == sorted({call.time for call in harbour.calls})


def test_more_harbours_than_names_are_refused() -> None:
    with pytest.raises(ValueError, match="from 2 to 20"):
        harbours(0, 21)


@pytest.mark.usefixtures("local_ray")
def test_one_command_makes_asks_and_measures_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(yaml.safe_dump({"spaces": {"text": PLANTED.model_dump(mode="json")}}))
    command = ["evaluate", "answers", "--suite", "generated", "--harbours", "2", "--config", "config.yaml", "--json"]
    done = CliRunner().invoke(make_app(), command)
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    folder = EvaluationFolder.open(Path("vrag-evaluations/generated-2-0"))
    assert folder.is_complete and len(folder.rows) == 24
    summaries = json.loads(done.stdout.splitlines()[-1])["summaries"]
    by_kind = {row["group"]: row["means"] for row in summaries}
    # The planted embedder knows no German, so one cell of the second harbour may be missed.
    assert by_kind[f"kind: {Difficulty.LOOKUP}"]["gold found"] >= 0.75
    assert by_kind[f"kind: {Difficulty.LOOKUP}"]["right region"] > 0.0
    of_clips = [row for row in folder.rows if row.uid.endswith(("-2-4", "-2-5"))]
    assert [row.measures["gold found"] for row in of_clips] == [1.0] * 4
    assert by_kind[f"kind: {Difficulty.NOWHERE}"]["right"] == 1.0
    wrong = CliRunner().invoke(make_app(), [*command, "-c", "elsewhere"])
    assert wrong.exit_code != 0
