"""Writes the demo corpus into a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from vrag_ray.drawing.edition import edition_of
from vrag_ray.types import VragError

REPORT = "northmere-energy-yearbook-2024.pdf"
SLIDES = "northmere-plan-2030-slides.pdf"
SCAN = "crane-2-maintenance-scan.pdf"
HEAT_PHOTO = "photo-waste-heat-chart.jpg"
FERRY_PHOTO = "photo-ferry-charging-chart.jpg"
VIDEO = "turbine-t4-blade-inspection.mp4"
NOTES = "night-desk-log.md"
_EDITION_FILE = ".edition"


def make_corpus(folder: Path) -> list[Path]:
    """Write the seven files (under 1 MB together) and return their paths.

    The same release of the libraries writes the same bytes. A folder that this very code has filled before is left
    as it is.

    Raises:
        VragError: the folder cannot be written.
    """
    paths = [folder / name for name in _makers()]
    mark = folder / _EDITION_FILE
    edition = edition_of([Path(__file__).parent])
    try:
        if mark.is_file() and mark.read_text(encoding="ascii") == edition and all(path.is_file() for path in paths):
            return paths
        folder.mkdir(parents=True, exist_ok=True)
        mark.unlink(missing_ok=True)
        for name, make in _makers().items():
            (folder / name).write_bytes(make())
        mark.write_text(edition, encoding="ascii")
    except OSError as error:
        raise VragError(f"cannot write the demo corpus to {folder}: {error.strerror or error}") from error
    return paths


def _makers() -> Mapping[str, Callable[[], bytes]]:
    from vrag_ray.samples.demo.notes import NOTES as NOTES_TEXT
    from vrag_ray.samples.demo.photos import ferry_photo, heat_photo, scanned_sheet
    from vrag_ray.samples.demo.report import write_report
    from vrag_ray.samples.demo.scenes import write_video
    from vrag_ray.samples.demo.slides import write_slides

    return {
        REPORT: write_report,
        SLIDES: write_slides,
        SCAN: scanned_sheet,
        HEAT_PHOTO: heat_photo,
        FERRY_PHOTO: ferry_photo,
        VIDEO: write_video,
        NOTES: NOTES_TEXT.encode,
    }
