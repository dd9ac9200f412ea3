"""Subtitles that lie beside a film are taken with it, stored with its clips, and read again when they change."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from tests.support.films import film
from tests.support.ingest_material import settings_for
from vrag_ray.index.storage.rows import passage_from_json
from vrag_ray.ingest.plan import Committed, task_from_json
from vrag_ray.ingest.progress import INGEST_STAGES, MovingBoard
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import list_sources
from vrag_ray.ingest.stages import Decode
from vrag_ray.types import Cue, Passage


def folder_with(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("1\n00:00:01,000 --> 00:00:03,000\nThe ferry sails at nine\n")
    return folder


def test_a_folder_gives_each_film_its_own_subtitles(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path,
        "talk.mp4",
        "talk.srt",
        "talk.en.vtt",
        "talk.de.ssa",
        "talk.part2.srt",
        "talks.srt",
        "song.mp3",
        "song.ass",
        "song.lrc",
        "song.ko.smi",
        "note.txt",
    )
    listing = list_sources([folder])
    assert {source.name: [Path(place).name for place in source.sidecars] for source in listing.sources} == {
        "talk.mp4": ["talk.de.ssa", "talk.en.vtt", "talk.srt"],
        "song.mp3": ["song.ass", "song.ko.smi", "song.lrc"],
        "note.txt": [],
        "talk.part2.srt": [],
        "talks.srt": [],
    }
    assert listing.left_out == []


def test_subtitles_belong_to_the_film_that_their_name_says_most_of(tmp_path: Path) -> None:
    names = [
        *("film.mp4", "film.mp4.srt", "film.mp4.en.srt", "film.es-419.vtt", "film_de.srt", "FILM.fr.SRT"),
        *("film - English.srt", "film (it).srt", "film-cut.srt", "film.2.srt", "film.mkv.srt", "film.mkv"),
        *("film.de.mp4", "film.de.srt", "film.de.forced.srt"),
    ]
    sources = list_sources([folder_with(tmp_path, *names)]).sources
    both = ["FILM.fr.SRT", "film (it).srt", "film - English.srt"]
    assert {source.name: [Path(place).name for place in source.sidecars] for source in sources} == {
        "film.mp4": [*both, "film.es-419.vtt", "film.mp4.en.srt", "film.mp4.srt", "film_de.srt"],
        "film.mkv": [*both, "film.es-419.vtt", "film.mkv.srt", "film_de.srt"],
        "film.de.mp4": ["film.de.forced.srt", "film.de.srt"],
        "film-cut.srt": [],
        "film.2.srt": [],
    }


def test_subtitles_of_zoom_are_those_of_all_views_of_a_meeting(tmp_path: Path) -> None:
    meeting, captions = "GMT20260301-090000_Recording", "GMT20260301-090000_Recording.transcript.vtt"
    films = (f"{meeting}_1920x1080.mp4", f"{meeting}_gallery_1280x720.mp4", f"{meeting}.m4a")
    folder = folder_with(tmp_path, captions, *films, "GMT20260302-090000_Recording_1920x1080.mp4")
    sources = list_sources([folder]).sources
    assert {source.name for source in sources if source.sidecars == (str(folder / captions),)} == {*films}


def test_a_film_that_is_given_alone_has_its_subtitles_too(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "talk.mp4", "talk.de.srt")
    [source] = list_sources([folder / "talk.mp4"]).sources
    assert source.sidecars == (str(folder / "talk.de.srt"),)


def test_subtitles_are_stored_with_the_clips_and_read_again_when_they_change(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "talk.de.srt")
    film(folder / "talk.mp4")
    root = str(tmp_path / "c")

    def taken(committed: Committed) -> tuple[dict[str, object], list[Passage]]:
        settings, board = settings_for(tmp_path / "c"), MovingBoard(INGEST_STAGES, True)
        group = group_json(list_sources([folder]).sources, {})
        with closing(Register(root, settings, committed, board)) as register:
            [task] = [task for made in register({"sources": [group]}) for task in made["task"]]
        plan = task_from_json(task)[0].plan
        with closing(Decode(root, settings, board)) as decode:
            rows = list(decode({"task": task}))
        passages = [
            passage_from_json(value, text)
            for row in rows
            for value, text in zip(json.loads(str(row["passages"])), row["texts"], strict=True)
        ]
        return {"skipped": plan.skipped, "doc_id": plan.doc_id, **plan.meta}, passages

    known, [clip] = taken(Committed(frozenset(), {}, {}))
    assert clip.cues == (Cue(1.0, 3.0, "The ferry sails at nine"),)
    assert clip.text == "talk\nThe ferry sails at nine"
    assert known["languages"] == "de"
    mark, doc_id = str(known["subtitle_files"]), str(known["doc_id"])
    assert mark.startswith("talk.de.srt (")
    finished = Committed(frozenset({doc_id}), {}, {}, {doc_id: mark})
    assert taken(finished)[0]["skipped"]
    (folder / "talk.de.srt").write_text("1\n00:00:02,000 --> 00:00:03,000\nThe ferry sails at ten\n")
    _, [clip] = taken(finished)
    assert clip.text == "talk\nThe ferry sails at ten"
