"""Examples from and to a file, in the form that its suffix names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vrag_ray.questions.examples import Example
from vrag_ray.questions.rows import DataError, checked, json_lines, unique, write_bytes
from vrag_ray.questions.table import read_table, table_rows, write_table
from vrag_ray.questions.unified import UnifiedExample, read_unified, write_unified


def load_examples(path: str | Path) -> tuple[Example, ...]:
    """Examples of a file: unified JSON (``.json``), the original's Parquet (``.parquet``) or JSON lines (``.jsonl``)
    of ``Example`` or of the unified form.

    What only the unified form knows (``source_type``, ``answer_format``) stays in the file: ``read_unified`` and
    ``read_table`` give it. Raises ``DataError`` that names file, row (from 1) and field for anything that does not fit,
    for two examples of one uid, for a blank answer and for a file without examples.
    """
    path = Path(path)
    examples = _READERS[_suffix(path)](path)
    if not examples:
        raise DataError(f"{path} holds no example")
    for number, example in enumerate(examples, start=1):
        if not all(answer.strip() for answer in example.answers):
            # A reply without an answer would be the right one.
            raise DataError(
                f"{path}: row {number}: the answer of {example.uid!r} is blank: leave the question out, or give the "
                "words of a refusal, such as `Not answerable`"
            )
    return tuple(examples)


def save_examples(path: str | Path, examples: Sequence[Example]) -> None:
    """The inverse of ``load_examples``. Raises ``DataError`` for examples that only JSON lines can hold.

    Parquet rows of examples without a ``data_source`` get the file's name as theirs, and all get ``train`` as
    ``split``: ``write_table`` takes others.
    """
    path = Path(path)
    suffix = _suffix(path)
    if suffix == ".jsonl":
        write_bytes(path, "".join(f"{example.model_dump_json()}\n" for example in examples).encode())
        return
    rows = [UnifiedExample.of(example) for example in examples]
    if suffix == ".json":
        write_unified(path, rows)
    else:
        write_table(path, table_rows(rows, data_source=path.stem, split="train"))


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise DataError(f"{path} is of an unknown form: give a file in {', '.join(_READERS)}")
    return suffix


def _read_lines(path: Path) -> list[Example]:
    rows = json_lines(path)
    if rows and isinstance(rows[0], dict) and "query" in rows[0]:
        # The unified form by the line, as `GET /v1/feedback.jsonl` writes it.
        examples = [row.example for row in checked(rows, UnifiedExample, path)]
    else:
        examples = checked(rows, Example, path)
    unique((example.uid for example in examples), path)
    return examples


def _read_unified(path: Path) -> list[Example]:
    return [row.example for row in read_unified(path)]


def _read_table(path: Path) -> list[Example]:
    return [row.unified.example for row in read_table(path)]


_READERS: Mapping[str, Callable[[Path], list[Example]]] = {
    ".json": _read_unified,
    ".parquet": _read_table,
    ".jsonl": _read_lines,
}
