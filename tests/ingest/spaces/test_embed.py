"""Filling vector spaces in a real Ray: what is drawn, embedded, committed, resumed and refused."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pymupdf
import pytest
import yaml

from tests.support import material
from tests.support.hostile_files import nested_forms_pdf
from tests.support.ingest_material import settings_for
from tests.support.planted_spaces import COLOURS, RGB, ColourEmbedder, painted
from vrag_ray.cli.main import main as cli
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding
from vrag_ray.index.shards.row_loader import load_space_rows
from vrag_ray.index.shards.shard_rows import SpaceRows
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.verify import verify
from vrag_ray.ingest import Progress, ingest
from vrag_ray.ingest.spaces import SpaceReport, embed_spaces
from vrag_ray.types import NotFoundError, VragError
from vrag_ray.types.copies import with_changes

pytestmark = pytest.mark.usefixtures("local_ray")
HERE = "tests.support.planted_spaces"
LATE = SpaceConfig(model=f"{HERE}:colours", batch=3)
MEAN = SpaceConfig(model=f"{HERE}:mean_colours")
EVERYTHING = SpaceConfig(model=f"{HERE}:everything", batch=4)
RUN_LIMIT_S = 120


def with_spaces(root: Path, *, actors: int | None = None, **spaces: SpaceConfig) -> Settings:
    """Without OCR, which would look for words on every mosaic. With ``actors``, by a graph however few there are."""
    settings = settings_for(root) if actors is None else settings_for(root, concurrency=actors)
    corpus = settings.corpus.model_copy(update={"ocr": False})
    return with_changes(settings, {"spaces": settings.spaces | spaces, "corpus": corpus})


def of_pictures(reports: Sequence[SpaceReport]) -> list[SpaceReport]:
    """Those of all spaces but the texts'."""
    return [report for report in reports if report.name != "text"]


def painted_pdf(path: Path, pages: list[list[str]]) -> None:
    """A page a mosaic of 4 x 4 cells, drawn as vectors, without a word."""
    document = pymupdf.open()
    for cells in pages:
        page = document.new_page(width=400, height=400)
        for number, cell in enumerate(cells):
            x, y = 100 * (number % 4), 100 * (number // 4)
            colour = tuple(channel / 255 for channel in RGB[cell])
            page.draw_rect(pymupdf.Rect(x, y, x + 100, y + 100), color=colour, fill=colour)
    document.save(path)


def mosaics(count: int, seed: int = 5) -> list[list[str]]:
    chance = random.Random(seed)
    return [["red", *chance.choices(COLOURS, k=15)] for _ in range(count)]


def vectors_of(rows: SpaceRows) -> dict[str, np.ndarray]:
    ids = rows.rows.ids.to_pylist()
    return {ids[n]: rows.vectors[rows.bounds[n] : rows.bounds[n + 1]] for n in range(len(ids))}


def space_rows(root: Path, name: str) -> SpaceRows:
    return load_space_rows(Collection.open(root), name)


def expected(cells: list[str]) -> np.ndarray:
    [embedded] = ColourEmbedder().embed_passages([Content(picture=painted(cells))])
    assert isinstance(embedded, Embedding)
    return embedded.vectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("in")
    painted_pdf(folder / "mosaics.pdf", mosaics(9))
    (folder / "picture.png").write_bytes(painted(["yellow"] * 16))
    (folder / "note.txt").write_text("red green\n")
    (folder / "film.mp4").write_bytes(material.video())
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")
    return folder


@pytest.fixture(scope="module")
def filled(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingested with three spaces at once: two of pictures of one size, and one that takes everything."""
    root = tmp_path_factory.mktemp("filled") / "c"
    report = ingest([folder], with_spaces(root, actors=1, late=LATE, mean=MEAN, everything=EVERYTHING))
    assert [space.name for space in report.spaces] == ["text", "late", "mean", "everything"]
    assert [len(space.failed) for space in report.spaces] == [0, 0, 0, 1]
    assert all("draw" in space.bottleneck or "embed" in space.bottleneck for space in report.spaces)
    assert report.notices == ()
    return root


def test_ingest_draws_every_page_and_keeps_its_vectors_in_order(filled: Path) -> None:
    collection = Collection.open(filled)
    [pdf] = [document for document in collection.documents() if document.title == "mosaics"]
    rows = space_rows(filled, "late")
    vectors = vectors_of(rows)
    for page, cells in enumerate(mosaics(9), start=1):
        np.testing.assert_allclose(vectors[f"{pdf.doc_id[:24]}:p{page}:w0"], expected(cells), atol=0.1)
    grids = dict(zip(rows.rows.ids.to_pylist(), rows.grids.tolist(), strict=True))
    assert grids[f"{pdf.doc_id[:24]}:p1:w0"] == [4, 4]
    assert all(isinstance(phash, int) for phash in rows.phashes.to_pylist())
    assert verify(filled).is_sound


def test_a_few_passages_get_the_same_vectors_without_a_graph(
    filled: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrag_ray.ingest.spaces.embed.GraphFill", None)
    report = ingest([folder], with_spaces(tmp_path / "c", late=LATE, mean=MEAN, everything=EVERYTHING))
    spaces = of_pictures(report.spaces)
    assert [(len(space.failed), space.embedded) for space in spaces] == [(0, 11), (0, 11), (1, 11)]
    for space in spaces:
        assert " (1 worker, busy " in space.bottleneck
        ours, theirs = (vectors_of(space_rows(root, space.name)) for root in (tmp_path / "c", filled))
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[passage_id], theirs[passage_id]) for passage_id in ours)


def test_a_single_vector_space_has_one_unit_vector_a_page(filled: Path) -> None:
    for vectors in vectors_of(space_rows(filled, "mean")).values():
        assert vectors.shape == (1, 4)
        assert np.linalg.norm(vectors.astype(np.float32)) == pytest.approx(1.0, abs=1e-3)


def test_each_embedder_gets_of_a_passage_what_it_takes(filled: Path) -> None:
    kinds = {document.doc_id[:24]: document.kind.value for document in Collection.open(filled).documents()}
    by_kind = {
        name: sorted(kinds[passage_id[:24]] for passage_id in space_rows(filled, name).rows.ids.to_pylist())
        for name in ("late", "everything")
    }
    assert by_kind["late"] == ["image"] + ["pdf"] * 9 + ["video"]
    assert by_kind["everything"] == ["pdf"] * 9 + ["text", "video"]
    # Frames of a clip, three at most: as one content where clips are taken, else one picture each.
    late, everything = (vectors_of(space_rows(filled, name)) for name in ("late", "everything"))
    [film] = [passage_id for passage_id in late if kinds[passage_id[:24]] == "video"]
    assert len(late[film]) % 16 == 0
    assert len(everything[film]) % 16 == 0


def test_what_cannot_be_embedded_is_an_error_of_its_own_and_is_tried_again_on_request(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [record] = [space for space in Collection.open(filled).spaces if space.name == "everything"]
    assert (record.passages, record.failed) == (11, 1)
    settings = with_spaces(filled, everything=EVERYTHING)
    [again] = embed_spaces(settings, ["everything"])
    assert (again.embedded, again.failed, again.passages) == (0, (), 11)
    [retried] = embed_spaces(settings, ["everything"], retry_errors=True)
    assert [problem.error for problem in retried.failed] == ["picture: a yellow corner"]


def test_a_space_is_added_to_a_collection_later_without_reading_its_files(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "c"
    ingest([folder / "mosaics.pdf"], with_spaces(root))
    before = Collection.open(root)
    seen: list[Progress] = []
    [report] = embed_spaces(with_spaces(root, late=LATE), ["late"], on_progress=seen.append)
    assert (report.embedded, report.passages, report.bytes_per_passage) == (9, 9, 16 * 4 * 2)
    assert [stage.name for stage in seen[-1].stages] == ["draw", "embed late", "commit"]
    assert (seen[-1].done_pages, seen[-1].total_pages) == (9, 9)
    after = Collection.open(root)
    assert after.record is not None and before.record is not None
    assert after.record.documents_version == before.record.documents_version
    # From here on the collection knows how to fill it, whatever the configuration names.
    (folder / "later.png").write_bytes(painted(["blue"] * 16))
    try:
        spaces = ingest([folder / "later.png"], with_spaces(root)).spaces
        assert [space.passages for space in of_pictures(spaces)] == [10]
    finally:
        (folder / "later.png").unlink()


def test_a_space_of_another_model_is_refused_and_rebuilt_on_request(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "c"
    ingest([folder / "picture.png"], with_spaces(root, late=LATE))
    other = with_spaces(root, late=SpaceConfig(model=f"{HERE}:another"))
    with pytest.raises(VragError, match=r"late holds vectors of colours/1.*is colours/2: `vrag embed --space la"):
        embed_spaces(other, ["late"])
    report = ingest([folder / "note.txt"], other)
    assert any("late was not filled: the space late holds vectors of colours/1" in n for n in report.notices)
    [rebuilt] = embed_spaces(other, ["late"], rebuild=True)
    assert (rebuilt.embedder_id, rebuilt.embedded) == ("colours/2", 1)
    assert Collection.open(root).space("late").embedder_id == "colours/2"


def test_a_model_that_cannot_be_loaded_leaves_ingest_whole_and_says_so(folder: Path, tmp_path: Path) -> None:
    settings = with_spaces(tmp_path / "c", late=SpaceConfig(model="no.such.package:model"))
    report = ingest([folder / "note.txt"], settings)
    assert (report.added, of_pictures(report.spaces)) == (1, [])
    assert any("late was not filled" in notice and "no.such.package" in notice for notice in report.notices)
    with pytest.raises(VragError, match=r"no\.such\.package"):
        embed_spaces(settings, ["late"])
    with pytest.raises(VragError, match=r"no vector space odd is configured: name its model under spaces\.odd\.model"):
        embed_spaces(settings, ["odd"])


def test_a_model_that_breaks_ends_with_one_line_and_keeps_what_was_embedded(tmp_path: Path) -> None:
    root = tmp_path / "c"
    painted_pdf(tmp_path / "pages.pdf", [*mosaics(16), ["blue"] * 16])
    ingest([tmp_path / "pages.pdf"], with_spaces(root))
    broken = with_spaces(root, late=SpaceConfig(model=f"{HERE}:unloadable"))
    with pytest.raises(VragError, match=r"unloadable cannot be loaded: its weights are gone$"):
        embed_spaces(broken)
    with pytest.raises(VragError, match=r"filling late stopped: the card is gone\. What was embedded until then is"):
        embed_spaces(with_spaces(root, late=SpaceConfig(model=f"{HERE}:brittle", batch=4)))
    # An ingest keeps what it can: the space is behind, and the report says so.
    (tmp_path / "note.txt").write_text("a note")
    taken = ingest([tmp_path / "note.txt"], with_spaces(root, late=SpaceConfig(model=f"{HERE}:brittle", batch=4)))
    assert (taken.added, of_pictures(taken.spaces)) == (1, [])
    assert any("late was not filled: filling late stopped: the card is gone" in notice for notice in taken.notices)
    stored = Collection.open(root).space("late").passages
    [report] = embed_spaces(with_spaces(root, late=LATE), ["late"])
    assert (report.embedded, report.passages) == (17 - stored, 17)
    assert verify(root).is_sound


def test_the_command_line_makes_rebuilds_and_drops_a_space(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)
    root = tmp_path / "c"
    ingest([folder / "picture.png"], with_spaces(root))
    assert cli(["embed", "-c", str(root), "--space", "late", "--model", LATE.model]) == 0
    out = capsys.readouterr().out
    assert "space late (colours/1): 1 embedded, 0 with errors" in out
    assert "1 in all, 0.1 KB each" in out
    monkeypatch.setenv("VRAG_SPACES__TEXT__MODEL", settings_for(root).spaces["text"].model)
    assert cli(["embed", "-c", str(root), "--json"]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert [(space["name"], space["embedded"]) for space in reply["spaces"]] == [("text", 0), ("late", 0)]
    assert cli(["embed", "-c", str(root), "--space", "late", "--drop"]) == 0
    with pytest.raises(NotFoundError):
        Collection.open(root).space("late")
    assert cli(["embed", "-c", str(root), "--rebuild"]) == 2
    assert cli(["embed", "-c", str(root), "--space", "dense", "--model", LATE.model]) == 2
    assert "cannot be called dense" in capsys.readouterr().err


# The quick tests that can fail for the same reason: what a killed writer committed is seen by the next
# (tests/index/storage/test_spaces.py), and a fill that breaks is gone on with (above).
@pytest.mark.exhaustive
def test_killed_at_random_points_it_goes_on_and_ends_with_the_vectors_of_an_undisturbed_run(tmp_path: Path) -> None:
    import ray

    folder = tmp_path / "in"
    folder.mkdir()
    painted_pdf(folder / "long.pdf", mosaics(60))
    root, whole = tmp_path / "c", tmp_path / "whole"
    for place in (root, whole):
        ingest([folder], with_spaces(place))
    began = time.monotonic()
    embed_spaces(with_spaces(whole, late=LATE))
    duration = time.monotonic() - began
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(with_spaces(root, late=LATE).model_dump(mode="json")))
    command = [sys.executable, "-m", "vrag_ray.cli", "embed", "--config", str(config)]
    environment = os.environ | {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    chance = random.Random(3)
    for _ in range(2):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=chance.uniform(1.0, duration + 2.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=RUN_LIMIT_S)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    ours, theirs = vectors_of(space_rows(root, "late")), vectors_of(space_rows(whole, "late"))
    assert len(ours) == 60
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[passage_id], theirs[passage_id]) for passage_id in ours)
    assert verify(root).is_sound


def test_a_page_that_a_busy_machine_did_not_draw_is_drawn_by_the_next_run(tmp_path: Path) -> None:
    painted_pdf(tmp_path / "a.pdf", mosaics(2))
    settings = with_spaces(tmp_path / "c", look=LATE)
    ingest([tmp_path / "a.pdf"], with_spaces(tmp_path / "c"))
    limits = settings.corpus.limits.model_copy(update={"wall_seconds": 0.01})
    busy = settings.model_copy(update={"corpus": settings.corpus.model_copy(update={"limits": limits})})
    [first] = embed_spaces(busy, ["look"])
    assert (first.embedded, len(first.failed), first.passages) == (0, 2, 0)
    [again] = embed_spaces(settings, ["look"])
    assert (again.embedded, again.failed, again.passages) == (2, (), 2)


@pytest.mark.exhaustive
def test_a_page_that_is_read_again_is_embedded_again(tmp_path: Path) -> None:
    (tmp_path / "half.pdf").write_bytes(nested_forms_pdf())
    settings = with_spaces(tmp_path / "c", look=LATE)
    limits = settings.corpus.limits.model_copy(update={"cpu_seconds": 1})
    settings = settings.model_copy(update={"corpus": settings.corpus.model_copy(update={"limits": limits})})
    ingest([tmp_path / "half.pdf"], settings)
    retry = settings.model_copy(update={"ingest": settings.ingest.model_copy(update={"retry_errors": True})})
    [space] = of_pictures(ingest([tmp_path / "half.pdf"], retry).spaces)
    # The first page kills the child that draws it, too; the second keeps its vectors.
    assert (space.embedded, len(space.failed)) == (0, 1)
    assert len(vectors_of(space_rows(tmp_path / "c", "look"))) == 1
    assert verify(tmp_path / "c").is_sound
