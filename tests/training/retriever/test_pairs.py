"""Files of pairs, and what is wrong with them by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vrag_ray.questions.rows import DataError
from vrag_ray.training.retriever.pairs import Item, Pair, Pairs, read_pairs


def written(folder: Path, *rows: object) -> Path:
    (folder / "page.png").touch()
    path = folder / "pairs.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def test_every_form_of_a_pair_is_read(tmp_path: Path):
    path = written(
        tmp_path,
        {"query": " who? ", "positive": "a text", "negatives": ["another", {"picture": "page.png", "text": "it"}]},
        {
            "query": {"text": "q", "labels": ["x", "y"]},
            "positive": [{"doc": "a.pdf", "page": 3}, {"picture": "page.png"}],
        },
    )
    picture = str(tmp_path / "page.png")
    assert read_pairs(path, collection=True) == Pairs(
        (
            Pair(Item("who?"), (Item("a text"),), (Item("another"), Item("it", picture))),
            Pair(Item("q", labels=frozenset("xy")), (Item(doc="a.pdf", page=3), Item(picture=picture))),
        )
    )


def test_a_passage_or_a_query_of_two_lines_is_no_negative_of_itself(tmp_path: Path):
    path = written(
        tmp_path,
        {"query": "one", "positive": {"picture": "page.png", "labels": ["red"]}, "negatives": ["a"]},
        {"query": {"text": "two", "labels": ["red"]}, "positive": "b", "negatives": [{"picture": "page.png"}]},
        {"query": "one", "positive": "c"},
    )
    first, second, third = read_pairs(path, collection=False).pairs
    page = first.positives[0]
    assert second.negatives[0] == page and second.negatives[0].labels == frozenset({"red"})
    assert second.answered_by(second.negatives[0])
    assert first.answered_by(third.positives[0]) and third.answered_by(page)
    assert not first.answered_by(Item("b"))


def test_rated_runs_of_the_service_are_pairs_of_question_and_page(tmp_path: Path):
    def run(uid: str, **meta: object) -> dict[str, object]:
        return {"uid": uid, "query": f"question {uid}", "reference_answer": "42", "meta_info": meta}

    pairs = read_pairs(
        written(tmp_path, run("a", file_name="r.pdf", reference_page=[2, 5]), run("b", source_type="feedback")),
        collection=True,
    )
    pages = (Item(doc="r.pdf", page=2), Item(doc="r.pdf", page=5))
    assert pairs == Pairs((Pair(Item("question a"), pages),), left_out=1)
    assert str(pairs) == "1 queries to learn from; 1 rated runs are left out, because no page of theirs is known"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "row 2: not JSON"),
        ({"query": "q"}, "row 2: positive: Field required"),
        ({"query": "q", "positive": []}, "row 2: positive: .*at least 1 item"),
        ({"query": "q", "positive": "p", "negative": "n"}, "row 2: negative: Extra inputs"),
        ({"query": " ", "positive": "p"}, "row 2: query: .*is empty: give text, picture, or doc and page"),
        ({"query": "q", "positive": {"doc": "a.pdf"}}, "row 2: positive.0: .*doc and page go together"),
        (
            {"query": "q", "positive": {"doc": "a.pdf", "page": 0}},
            "row 2: positive.0.page: .*greater than or equal to 1",
        ),
        ({"query": "q", "positive": {"doc": "a", "page": 1, "picture": "page.png"}}, "row 2: .*picture and doc"),
        ({"query": "q", "positive": {"picture": "none.png"}}, r"row 2: there is no picture .*none\.png"),
        (
            {"query": "q", "positive": "p", "negatives": [{"doc": "a.pdf", "page": 1}]},
            "row 2: page 1 of a.pdf .*collection",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named_with_its_row(row: object, message: str, tmp_path: Path):
    with pytest.raises(DataError, match=f"pairs.jsonl: {message}"):
        read_pairs(written(tmp_path, {"query": "q", "positive": "p"}, row), collection=False)


def test_a_file_that_teaches_nothing_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"pairs\.jsonl holds no pair to learn from$"):
        read_pairs(written(tmp_path), collection=False)
    run = {"uid": "a", "query": "q", "reference_answer": "x"}
    with pytest.raises(DataError, match="holds no pair to learn from: no page of 1 runs is known"):
        read_pairs(written(tmp_path, run), collection=True)


def test_a_passage_with_all_labels_of_a_query_answers_it():
    page = Item(picture="a", labels=frozenset({"x", "y"}))
    other = Item(picture="b", labels=frozenset({"x"}))
    assert Pair(Item("q", labels=frozenset("xy")), (other,)).answered_by(page)
    assert Pair(Item("q", labels=frozenset("xy")), (other,)).answered_by(other)
    assert not Pair(Item("q", labels=frozenset("xy")), (page,)).answered_by(other)
    assert not Pair(Item("q"), (page,)).answered_by(other)
