"""Commands over several collections, and searches with a picture, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_ask_picture import refusing_server
from tests.support.planted import plant
from tests.support.planted_spaces import fill, picture_of
from vrag_ray.cli.main import main


@pytest.fixture(autouse=True)
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two collections in the working folder, and one of the same folder name elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VRAG_EMBEDDER__NAME", "tests.support.planted:make_planted")
    plant(tmp_path / "papers", {"paper": ["tidal lagoon report"]})
    plant(tmp_path / "slides", {"slide": ["tidal lagoon slide"]})
    plant(tmp_path / "old" / "papers", {"older": ["tidal lagoon draft"]})


def searched(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["search", *arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def hits_in(reply: dict[str, object]) -> list[tuple[str, str]]:
    assert isinstance(reply["results"], list)
    return [(hit["title"], hit["collection"]) for hit in reply["results"][0]]


def test_several_folders_are_searched_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    reply = searched(capsys, "tidal lagoon slide", "-c", "papers", "-c", "slides")
    assert hits_in(reply) == [("slide", "slides"), ("paper", "papers")]
    assert hits_in(searched(capsys, "tidal lagoon slide", "-c", "papers")) == [("paper", "papers")]
    assert main(["search", "tidal lagoon", "-c", "papers", "-c", "slides"]) == 0
    printed = capsys.readouterr().out
    assert "slide.pdf  in slides" in printed
    assert "collections papers, slides, 2 of 2 shards" in printed


def test_folders_of_the_same_name_are_distinguished_by_the_folder_above(capsys: pytest.CaptureFixture[str]) -> None:
    reply = searched(capsys, "tidal lagoon draft", "-c", "papers", "-c", "old/papers")
    assert hits_in(reply) == [("older", "old-papers"), ("paper", "papers")]
    assert main(["search", "lagoon", "-c", "papers", "-c", "."]) == 1
    assert "is not a collection" in capsys.readouterr().err


def test_collections_of_a_configuration_are_meant_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("collection: papers\ncollections: {deck: slides}\n", encoding="utf-8")
    reply = searched(capsys, "tidal lagoon", "-c", "deck", "--config", str(config))
    assert hits_in(reply) == [("slide", "deck")]
    reply = searched(capsys, "tidal lagoon slide", "-c", "papers", "-c", "deck", "--config", str(config))
    assert hits_in(reply) == [("slide", "deck"), ("paper", "papers")]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["search", "x" * 5000, "-c", "papers"], "queries.0"),
        (["search", "x", "-c", "papers", "--mode", "m" * 40], "mode"),
        (["ask", "x" * 5000, "-c", "papers"], "question"),
        (["ask", "x", "-c", "papers", "--agent", ""], "agent"),
    ],
)
def test_what_a_server_would_refuse_is_refused_with_the_name_of_the_field(
    arguments: list[str], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert f" {field}: " in error and "internal error" not in error


def test_a_question_is_answered_from_several_collections(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["ask", "Which tidal lagoon slide is there?", "-c", "papers", "-c", "slides", "--json"]
    main(command)
    record = json.loads(capsys.readouterr().out)
    titles = {hit["title"] for event in record["events"] if event["kind"] == "search_done" for hit in event["results"]}
    assert titles == {"paper", "slide"}


def test_with_an_address_collections_are_the_servers(capsys: pytest.CaptureFixture[str]) -> None:
    bodies: list[dict[str, object]] = []
    with refusing_server(bodies) as url:
        assert main(["search", "lagoon", "--url", url, "-c", "papers", "-c", "*"]) == 1
        assert main(["ask", "lagoon?", "--url", url, "-c", "slides"]) == 1
    assert [body["collection"] for body in bodies] == [["papers", "*"], ["slides"]]


def test_a_picture_is_searched_here_and_on_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "colours")
    (tmp_path / "b.png").write_bytes(picture_of("b"))
    assert hits_in(searched(capsys, "--picture", "b.png", "-c", "colours", "-k", "1")) == [("b", "colours")]
    assert hits_in(searched(capsys, "red", "--picture", "b.png", "-c", "colours", "--mode", "late", "-k", "1"))
    bodies: list[dict[str, object]] = []
    with refusing_server(bodies) as url:
        assert main(["search", "--picture", "b.png", "--url", url]) == 1
    assert str(bodies[0]["picture"]).startswith("data:image/png;base64,")
