"""Jupyter notebooks as Markdown: the cells in order, code with what it printed, pictures as data. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TypeAlias

from vrag_ray.corpus.formats.web_text import text_of_html

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

_PICTURES = {"image/png": "png", "image/jpeg": "jpeg", "png": "png", "jpeg": "jpeg"}
"""Pictures of an output by their names in it; the short names are those of notebooks before 2015."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""What colours an output in a terminal."""
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
"""What was printed on a line before it was printed anew, as programs show their progress."""
_BLANKS = re.compile(r"\s+")


def notebook_text(text: str) -> str | None:
    """The notebook that is written in ``text`` as JSON, as Markdown; None for anything else.

    Cells of code and their outputs stand in fences, so that nothing in them is taken for Markdown. An output that is
    written in several forms is read as text, else as a web page, else as TeX; its pictures follow.
    """
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(notebook, dict):
        return None
    cells = notebook.get("cells")
    if cells is None:
        # Before 2015 cells stood in worksheets.
        cells = [cell for sheet in _dicts(notebook.get("worksheets")) for cell in _dicts(sheet.get("cells"))]
    elif not isinstance(cells, list):
        return None
    if not cells and "nbformat" not in notebook:
        return None
    return "\n\n".join(part for cell in _dicts(cells) for part in _parts(cell) if part.strip()) + "\n"


def _parts(cell: dict[str, Json]) -> Iterator[str]:
    kind, source = cell.get("cell_type"), _joined(cell.get("source", cell.get("input")))
    if kind == "heading":
        level = cell.get("level")
        yield f"{'#' * (level if isinstance(level, int) and 0 < level < 7 else 1)} {source}"
    elif kind != "code":
        yield _with_pictures(source, cell.get("attachments"))
    else:
        yield _fenced(source)
        for output in _dicts(cell.get("outputs")):
            yield from _output(output)


def _output(output: dict[str, Json]) -> Iterator[str]:
    if output.get("output_type") in ("error", "pyerr"):
        # Its traceback repeats the code.
        yield _fenced(f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}")
        return
    data = output.get("data", output)
    if not isinstance(data, dict):
        return
    pictures = [
        f"![output](data:image/{kind};base64,{_BLANKS.sub('', _joined(data[name]))})"
        for name, kind in _PICTURES.items()
        if data.get(name)
    ]
    if marked := _joined(data.get("text/markdown")):
        yield marked
    elif plain := _joined(data.get("text/plain", data.get("text"))):
        # Of a picture the plain form is the name of its class.
        yield "" if pictures else _fenced(_OVERWRITTEN.sub("", _ESCAPES.sub("", plain)))
    elif page := _joined(data.get("text/html", data.get("html"))):
        yield _fenced(text_of_html(page))
    else:
        yield _joined(data.get("text/latex", data.get("latex")))
    yield from pictures


def _with_pictures(source: str, attachments: Json) -> str:
    """A cell of Markdown with the pictures that it holds in place of their names."""
    if isinstance(attachments, dict):
        for name, forms in attachments.items():
            for kind, data in forms.items() if isinstance(forms, dict) else ():
                held = f"(data:{kind};base64,{_BLANKS.sub('', _joined(data))})"
                source = source.replace(f"(attachment:{name})", held)
    return source


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}" if text.strip() else ""


def _joined(value: Json) -> str:
    """A text, which notebooks write as its lines or whole."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _dicts(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
