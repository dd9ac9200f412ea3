"""``vrag doctor`` names the programs that are there beside the packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.office import stand_in
from vrag_ray.cli.diagnosis import diagnose
from vrag_ray.config import CorpusConfig, OfficeUse, Settings


def test_the_doctor_says_whether_office_files_can_be_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def office(settings: Settings) -> tuple[str | None, list[str]]:
        diagnosis = diagnose(settings)
        [package] = [package for package in diagnosis.packages if package.name == "libreoffice"]
        return package.version, [notice for notice in diagnosis.notices if "LibreOffice" in notice]

    monkeypatch.setenv("PATH", str(tmp_path))
    place, [notice] = office(Settings())
    assert place is None
    assert notice.startswith("no LibreOffice: DOCX, PPTX and XLSX are laid out anew; DOC, PPT")
    program = stand_in(tmp_path, "exit 1")
    assert office(Settings()) == (str(program), [])
    off = Settings(corpus=CorpusConfig(office=OfficeUse.OFF))
    assert office(off) == (str(program), ["LibreOffice is installed and not used: corpus.office is off"])
