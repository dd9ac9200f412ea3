"""Examples on disk: each form both ways, and errors that say where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_ray.questions.examples import AnswerFormat, Example, GoldPage
from vrag_ray.questions.files import load_examples, save_examples
from vrag_ray.questions.rows import DataError
from vrag_ray.questions.table import read_table, table_rows, write_table
from vrag_ray.questions.unified import MetaInfo, UnifiedExample, read_unified, write_unified

ROW: dict[str, Any] = {
    "uid": "slide-7",
    "query": "How many boats in 2022?",
    "reference_answer": "15",
    "meta_info": {
        "file_name": "report.pdf",
        "reference_page": [3, 5],
        "source_type": "Chart",
        "query_type": "Multi-Hop",
        "answer_format": "Int",
    },
}
EXAMPLE = Example(
    uid="slide-7",
    question="How many boats in 2022?",
    answers=("15",),
    gold=(GoldPage(file_name="report.pdf", page=3), GoldPage(file_name="report.pdf", page=5)),
    kind="Multi-Hop",
    groups={"evidence": ("Chart",)},
    answer_format=AnswerFormat.INTEGER,
)
FORMS = (".json", ".jsonl", ".parquet")

words = st.text(min_size=1, max_size=20)
answer_words = words.filter(str.strip)
maybe = st.none() | st.text(max_size=20)
pages = st.lists(st.integers(1, 2**40), max_size=4).map(tuple)


@st.composite
def examples(draw: st.DrawFn, *, plain: bool) -> Example:
    """``plain``: one answer and pages of one file, as the original's forms hold it."""
    file_names = draw(st.lists(words, min_size=1, max_size=1 if plain else 3))
    gold = tuple(GoldPage(file_name=name, page=page) for name in file_names for page in draw(pages))
    answers = draw(st.lists(answer_words, min_size=1, max_size=1 if plain else 3))
    return Example(
        uid=draw(words),
        question=draw(words),
        answers=tuple(answers),
        gold=gold,
        kind=draw(st.text()),
        data_source=draw(st.just("") | words),
    )


@st.composite
def unified(draw: st.DrawFn) -> UnifiedExample:
    numbers = draw(pages)
    return UnifiedExample(
        uid=draw(words),
        query=draw(words),
        reference_answer=draw(answer_words),
        meta_info=MetaInfo(
            file_name=draw(words if numbers else maybe),
            reference_page=numbers,
            source_type=draw(maybe),
            query_type=draw(maybe),
            doc_type=draw(maybe),
            answer_format=draw(maybe),
        ),
        data_source=draw(st.none() | words),
    )


def many(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, min_size=1, max_size=4, unique_by=lambda example: example.uid)


@settings(deadline=None)  # the disk decides how long a write takes
@given(many(examples(plain=True)), st.sampled_from(FORMS))
def test_examples_come_back_from_every_form(
    tmp_path_factory: pytest.TempPathFactory, made: list[Example], form: str
) -> None:
    path = tmp_path_factory.mktemp("data") / f"set{form}"
    save_examples(path, made)
    # The original's rows always name their set: of examples that name none it is the file.
    default = "set" if form == ".parquet" else ""
    named = [example.model_copy(update={"data_source": example.data_source or default}) for example in made]
    assert load_examples(str(path)) == tuple(named)


@settings(deadline=None)  # the disk decides how long a write takes
@given(many(examples(plain=False)))
def test_json_lines_hold_any_example(tmp_path_factory: pytest.TempPathFactory, made: list[Example]) -> None:
    path = tmp_path_factory.mktemp("data") / "set.jsonl"
    save_examples(path, made)
    assert load_examples(path) == tuple(made)


@settings(deadline=None)  # the disk decides how long a write takes
@given(many(unified()))
def test_nothing_is_lost_between_the_originals_json_and_parquet(
    tmp_path_factory: pytest.TempPathFactory, made: list[UnifiedExample]
) -> None:
    folder = tmp_path_factory.mktemp("data")
    write_unified(folder / "a.json", made)
    first = read_unified(folder / "a.json")
    assert first == made
    rows = table_rows(first, data_source="slidevqa_train", split="train")
    write_table(folder / "b.parquet", rows)
    read = read_table(folder / "b.parquet")
    assert read == rows
    named = [example.model_copy(update={"data_source": example.data_source or "slidevqa_train"}) for example in made]
    assert [row.unified for row in read] == named
    write_unified(folder / "c.json", named)
    assert load_examples(folder / "c.json") == load_examples(folder / "b.parquet")


def write_json(path: Path, *rows: object) -> Path:
    path.write_text(json.dumps({"examples": list(rows)}))
    return path


def test_the_originals_json_is_read_as_it_is(tmp_path: Path) -> None:
    assert load_examples(write_json(tmp_path / "a.json", ROW)) == (EXAMPLE,)
    document = ROW | {"meta_info": {"file_name": "a.pdf", "reference_page": 2, "doc_type": "Guidebook"}}
    [example] = load_examples(write_json(tmp_path / "b.json", document))
    assert (example.gold, example.kind) == ((GoldPage(file_name="a.pdf", page=2),), "Guidebook")
    bare = {name: value for name, value in ROW.items() if name != "meta_info"}
    [example] = load_examples(write_json(tmp_path / "c.json", bare))
    assert (example.gold, example.kind) == ((), "")


def original_row(**changes: object) -> dict[str, object]:
    """As the original's converter writes it: file and pages only inside ``extra_info``."""
    extra = {
        "split": "train",
        "index": 0,
        "answer": "15",
        "question": "How many boats in 2022?",
        "content_type": "Chart",
        "reason_type": "Multi-Hop",
        "file_name": "report.pdf",
        "reference_page": [3, 5],
    }
    return {
        "id": "slide-7",
        "data_source": "slidevqa_train",
        "prompt": [{"role": "user", "content": "Answer. Question: How many boats in 2022?"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "15"},
        "extra_info": extra | changes,
    }


def test_the_originals_parquet_keeps_its_file_and_pages(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([original_row()]), tmp_path / "a.parquet")
    assert load_examples(tmp_path / "a.parquet") == (
        EXAMPLE.model_copy(update={"data_source": "slidevqa_train", "answer_format": None}),
    )
    [row] = read_table(tmp_path / "a.parquet")
    assert (row.data_source, row.extra_info.split, row.unified.meta_info.source_type) == (
        "slidevqa_train",
        "train",
        "Chart",
    )


def test_parquet_has_file_and_pages_where_the_originals_trainer_looks_for_them(tmp_path: Path) -> None:
    save_examples(tmp_path / "boats.parquet", [EXAMPLE])
    [row] = pq.read_table(tmp_path / "boats.parquet").to_pylist()
    assert (row["file_name"], row["reference_page"]) == ("report.pdf", [3, 5])
    assert (row["extra_info"]["file_name"], row["extra_info"]["reference_page"]) == ("report.pdf", [3, 5])
    assert (row["data_source"], row["reward_model"]["ground_truth"]) == ("boats", "15")
    [message] = row["prompt"]
    assert message["role"] == "user" and message["content"].endswith("Question: How many boats in 2022?")
    assert "<search>" in message["content"]


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in ROW.items() if key != name}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (without("query"), "query: Field required"),
        (
            {"prompt": "How many?", "completion": "15"},
            "uid, query, reference_answer: Field required; prompt, completion: ",
        ),
        (ROW | {"reference_answer": " "}, "the answer of 'slide-7' is blank"),
        (ROW | {"query": ""}, "query: String should have at least 1 character"),
        (ROW | {"reference_answer": 15}, "reference_answer: Input should be a valid string"),
        (ROW | {"note": "x"}, "note: Extra inputs are not permitted"),
        (ROW | {"meta_info": {"file": "a.pdf"}}, "meta_info.file: Extra inputs are not permitted"),
        (ROW | {"meta_info": {"file_name": "a.pdf", "reference_page": [1, 0]}}, "meta_info.reference_page.1: Input"),
        (ROW | {"meta_info": {"reference_page": [1]}}, "meta_info: .*needs the file_name"),
        ("slide-7", "Input should be a valid dictionary"),
        (ROW | {"uid": "first"}, "uid: 'first' is the uid of row 1 already"),
    ],
)
def test_a_bad_row_of_json_is_named_with_file_row_and_field(row: object, problem: str, tmp_path: Path) -> None:
    path = write_json(tmp_path / "set.json", ROW | {"uid": "first"}, row)
    with pytest.raises(DataError, match=rf"set\.json: row 2: {problem}"):
        load_examples(path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"uid": "b", "question": "q", "answers": []}', "answers: Tuple should have at least 1 item"),
        ('{"uid": "b", "question": "q", "answers": ["x"], "gold": [{"file_name": "a", "page": 0}]}', r"gold\.0\.page"),
        ('{"uid": "b", "question": "q", "answers": ["x", ""]}', "the answer of 'b' is blank: leave the question out"),
        ('{"uid": "b", ', "not JSON"),
        ("", "not JSON"),
        ('{"uid": "a", "question": "q", "answers": ["x"]}', "uid: 'a' is the uid of row 1"),
    ],
)
def test_a_bad_line_is_named_with_file_row_and_field(line: str, problem: str, tmp_path: Path) -> None:
    good = '{"uid": "a", "question": "q", "answers": ["x"]}'
    path = tmp_path / "set.jsonl"
    path.write_text(f"{good}\n{line}\n" + good.replace('"a"', '"c"') + "\n")
    with pytest.raises(DataError, match=rf"set\.jsonl: row 2: {problem}"):
        load_examples(path)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (original_row(answer="16"), "reward_model.ground_truth is '15', but extra_info says '16'"),
        (original_row() | {"file_name": "other.pdf"}, "file_name is 'other.pdf', but extra_info says 'report.pdf'"),
        (original_row(question=""), r"extra_info\.question: String should have"),
        (original_row(reference_page=[0, 1]), r"extra_info\.reference_page\.0: Input should be greater"),
        (original_row(file_name=None), "needs the file_name"),
        (original_row(seen=True), r"extra_info\.seen: Extra inputs"),
        ({k: v for k, v in original_row().items() if k != "reward_model"}, "reward_model: Field required"),
    ],
)
def test_a_bad_row_of_parquet_is_named_with_file_row_and_field(
    row: dict[str, object], problem: str, tmp_path: Path
) -> None:
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "set.parquet")
    with pytest.raises(DataError, match=rf"set\.parquet: row 1: .*{problem}"):
        load_examples(tmp_path / "set.parquet")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b"{", "is not JSON"),
        ("a.json", b"[]", "not of the unified form"),
        ("a.json", b'{"examples": {}}', "not of the unified form"),
        ("a.json", b'{"examples": [], "version": 2}', "unknown field 'version'"),
        ("a.json", b'{"examples": []}', "holds no example"),
        ("a.json", b"\xff\xfe", "is not UTF-8 text"),
        ("a.jsonl", b"\n\n", "holds no example"),
        ("a.parquet", b"PAR1 no more", "is not Parquet"),
        ("a.csv", b"", r"unknown form: give a file in \.json, \.parquet, \.jsonl"),
    ],
)
def test_a_file_that_is_none_is_named(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=problem):
        load_examples(tmp_path / name)


def test_an_answer_may_be_a_text_alone_and_ids_and_answers_may_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(
        '{"uid": 7, "question": "How many?", "answers": 15}\n'
        '{"uid": "b", "question": "How long?", "answers": [1.5, "one and a half"]}\n'
        '{"uid": "c", "question": "Who?", "answers": "the crew"}\n'
    )
    read = [(example.uid, example.answers) for example in load_examples(path)]
    assert read == [("7", ("15",)), ("b", ("1.5", "one and a half")), ("c", ("the crew",))]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*none\.json: No such file"):
        load_examples(tmp_path / "none.json")


@pytest.mark.parametrize("form", [".json", ".parquet"])
@pytest.mark.parametrize(
    ("example", "problem"),
    [
        (EXAMPLE.model_copy(update={"answers": ("15", "fifteen")}), "has 2 answers"),
        (EXAMPLE.model_copy(update={"gold": (*EXAMPLE.gold, GoldPage(file_name="b.pdf"))}), "has 2 gold files"),
    ],
)
def test_what_a_form_cannot_hold_is_refused_and_not_cut(
    form: str, example: Example, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"'slide-7' {problem}.*write JSON lines"):
        save_examples(tmp_path / f"set{form}", [example])
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot write .*file/set\.jsonl"):
        save_examples(tmp_path / "file" / "set.jsonl", [EXAMPLE])


def test_examples_that_are_equal_have_one_hash_whatever_their_groups() -> None:
    again = EXAMPLE.model_copy(update={"groups": {"evidence": ("Chart",)}})
    assert len({EXAMPLE, again, EXAMPLE.model_copy(update={"groups": {}})}) == 2
    assert len({EXAMPLE, again}) == 1
