"""A mosaic world: pages, questions of known answer and known gold pages, on disk and in memory.

What makes validation honest: a quarter of the pages is held out. They lie in the same collection, look alike, share
words with the others and turn up as distractors, but no training question starts at, leads to or asks about one of
them, and they point only at each other. A policy that has learnt by heart what training taught it, pointers and
cells included, is no better than chance on validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.mosaic.world.chance import drawn_from
from benchmarks.mosaic.world.drawing import page_png
from benchmarks.mosaic.world.generate import MosaicSize, make_examples, make_pages
from benchmarks.mosaic.world.page import Page
from vrag_ray.questions.examples import Example
from vrag_ray.types import VragError

PAGES, TRAIN, VALIDATION = "pages", "train.jsonl", "validation.jsonl"
TRUTH = "world.json"


class _Truth(BaseModel):
    """What ``world.json`` holds: everything that the pictures show."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pages: tuple[Page, ...]


@dataclass(frozen=True)
class Mosaic:
    """``pages`` in order of their names."""

    pages: tuple[Page, ...]
    train: tuple[Example, ...]
    validation: tuple[Example, ...]

    @classmethod
    def generate(cls, size: MosaicSize | None = None, *, seed: int = 0) -> Mosaic:
        """The same world for the same size and seed, on every machine."""
        size = size or MosaicSize()
        chance = drawn_from("mosaic", seed)
        parts = make_pages(size, chance)
        train, validation = (
            make_examples(part, size, split, chance) for part, split in zip(parts, ("train", "validation"), strict=True)
        )
        return cls(tuple(sorted((*parts[0], *parts[1]), key=lambda page: page.name)), train, validation)

    def page(self, name: str) -> Page | None:
        """The page of that name; None where there is none."""
        return self._by_name.get(name)

    def write(self, folder: Path) -> None:
        """``pages/<two-words>.png``, ``train.jsonl`` and ``validation.jsonl`` of ``Example``, ``world.json``.

        Raises ``VragError`` where the folder holds other files already: two worlds in one would be neither.
        """
        if folder.exists() and any(folder.iterdir()):
            raise VragError(f"{folder} is not empty: choose a new folder for the world")
        (folder / PAGES).mkdir(parents=True)
        for page in self.pages:
            (folder / PAGES / page.file_name).write_bytes(page_png(page))
        _write_lines(folder / TRAIN, self.train)
        _write_lines(folder / VALIDATION, self.validation)
        (folder / TRUTH).write_text(_Truth(pages=self.pages).model_dump_json(), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Mosaic:
        """What ``write`` has written. Raises ``VragError`` naming the file that is missing or wrong."""
        truth = folder / TRUTH
        try:
            pages = _Truth.model_validate_json(truth.read_text(encoding="utf-8")).pages
        except (OSError, ValidationError) as error:
            raise VragError(f"{truth} is not the truth of a mosaic world: {error}") from error
        return cls(pages, _read_lines(folder / TRAIN), _read_lines(folder / VALIDATION))

    @cached_property
    def _by_name(self) -> dict[str, Page]:
        return {page.name: page for page in self.pages}


def _write_lines(path: Path, examples: Sequence[Example]) -> None:
    path.write_text("".join(example.model_dump_json() + "\n" for example in examples), encoding="utf-8")


def _read_lines(path: Path) -> tuple[Example, ...]:
    examples: list[Example] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise VragError(f"cannot read the questions in {path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        try:
            examples.append(Example.model_validate_json(line))
        except ValidationError as error:
            raise VragError(f"{path}, line {number}: {error.errors()[0]['msg']}") from error
    return tuple(examples)
