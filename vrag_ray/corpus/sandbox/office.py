"""Office files as LibreOffice lays them out, in a process of its own, where the program is installed.

The decoding child may write no file and has no memory for it, so LibreOffice is another child of the same parent. What
holds against a hostile file: macros never run and links are not followed, by a profile that is written here; address
space, CPU seconds and written bytes are limited by the kernel, wall time by the parent's kill of the whole process
group; and there is no network where the system lets a process leave it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.model import DecodeError, KilledError, KillReason
from vrag_ray.corpus.sandbox.process import child_environment
from vrag_ray.corpus.sniff import Format

PROGRAMS = ("soffice", "libreoffice")
MOST_RESULT_MB = 512
MEMORY_FACTOR = 2
"""LibreOffice maps more address space than the decoding child, most of it never touched."""
LONGEST_QUOTE = 300

_PDF = 'pdf:{module}_pdf_Export:{{"ExportBookmarks":{{"type":"boolean","value":"true"}}{more}}}'
_TEXT_PAGES = _PDF.format(module="writer", more="")
_SLIDE_PAGES = _PDF.format(module="impress", more="")
_SLIDES = "pptx:Impress MS PowerPoint 2007 XML"
_SHEETS = "xlsx:Calc MS Excel 2007 XML"


@dataclass(frozen=True, slots=True)
class _Way:
    """How LibreOffice takes a format (by which suffix) and what it is to make of it."""

    suffix: str
    target: str
    slides: str = ""
    """The target of a second conversion, whose slides have the notes that the first does not show."""


_WAYS = {
    Format.DOCX: _Way(".docx", _TEXT_PAGES),
    Format.DOC: _Way(".doc", _TEXT_PAGES),
    Format.ODT: _Way(".odt", _TEXT_PAGES),
    Format.RTF: _Way(".rtf", _TEXT_PAGES),
    Format.PPTX: _Way(".pptx", _SLIDE_PAGES),
    Format.PPT: _Way(".ppt", _SLIDE_PAGES, _SLIDES),
    Format.ODP: _Way(".odp", _SLIDE_PAGES, _SLIDES),
    # Not to pages, which would cut broad tables, hide what is too long for its column, and number as "###": a workbook
    # is read from its cells.
    Format.XLS: _Way(".xls", _SHEETS),
    Format.ODS: _Way(".ods", _SHEETS),
}
CONVERTED = frozenset(_WAYS)
"""Formats that LibreOffice is given. XLSX is read from its cells without it."""

_SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("Office.Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Office.Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Office.Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Office.Common/Security/Scripting", "CheckDocumentEvents", "true"),
    ("Office.Writer/Content/Update", "Link", "0"),
    ("Office.Calc/Content/Update", "Link", "1"),
    # Where the system does not let it leave the network: to a proxy that does not exist.
    ("Inet/Settings", "ooInetProxyType", "2"),
    ("Inet/Settings", "ooInetHTTPProxyName", "127.0.0.1"),
    ("Inet/Settings", "ooInetHTTPProxyPort", "9"),
    ("Inet/Settings", "ooInetHTTPSProxyName", "127.0.0.1"),
    ("Inet/Settings", "ooInetHTTPSProxyPort", "9"),
)


@dataclass(frozen=True, slots=True)
class Converted:
    """What LibreOffice made of a file: a PDF or an XLSX; ``slides`` is a PPTX with the notes, if another has none."""

    pages: Path
    slides: Path | None


def installed_office() -> Path | None:
    """LibreOffice's program on the search path, or None."""
    return next((Path(path) for name in PROGRAMS if (path := shutil.which(name)) is not None), None)


class OfficeConverter:
    """Starts LibreOffice once for each file, with a profile that it keeps until a conversion fails.

    A start with the profile of an earlier one takes about 0.7 s of CPU, without it 1.1 s. Not thread-safe.
    """

    def __init__(self, program: Path, limits: DecodeLimits) -> None:
        self._program, self._limits = program, limits
        self._home: tempfile.TemporaryDirectory[str] | None = None

    @contextmanager
    def converted(self, path: Path, format_: Format) -> Iterator[Converted]:
        """The file at ``path``, which is a ``format_``, laid out; the files are there as long as the block runs.

        Raises:
            DecodeError: LibreOffice makes nothing of it. The message lacks the file's name.
            KilledError: it broke a limit.
        """
        way = _WAYS[format_]
        with tempfile.TemporaryDirectory(prefix="vrag-office-") as folder:
            original = Path(folder, f"original{way.suffix}")
            # Under a name that says what it is, and alone: what lies beside a file could be taken with it.
            shutil.copyfile(path, original)
            pages = self._made(original, way.target)
            slides = None
            if way.slides:
                with suppress(DecodeError):
                    slides = self._made(original, way.slides)
            yield Converted(pages, slides)

    def close(self) -> None:
        """Remove the profile. The next call would make a new one."""
        if self._home is not None:
            self._home.cleanup()
            self._home = None

    def _made(self, original: Path, target: str) -> Path:
        try:
            self._run(original, target)
            made = original.with_suffix(f".{target.partition(':')[0]}")
            if not made.is_file() or not made.stat().st_size:
                raise DecodeError(
                    "cannot be converted by LibreOffice: it is damaged or locked by a password; open it in the program "
                    "that it was made with, and export it as PDF"
                )
        except DecodeError:
            # Whatever went wrong may have left its mark on the profile.
            self.close()
            raise
        return made

    def _run(self, original: Path, target: str) -> None:
        limits = self._limits
        folder = original.parent
        command = [
            *(sys.executable, "-P", "-m", "vrag_ray.corpus.sandbox.confined"),
            *(str(limits.memory_mb * MEMORY_FACTOR << 20), str(limits.office_seconds), str(MOST_RESULT_MB << 20)),
            *(str(self._program), f"-env:UserInstallation={self._profile().as_uri()}"),
            *("--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck"),
            *("--convert-to", target, "--outdir", str(folder), str(original)),
        ]
        with tempfile.TemporaryFile() as words:
            process = subprocess.Popen(  # noqa: S603  our own command
                command,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                cwd=folder,
                env={**child_environment(), "HOME": str(folder), "TMPDIR": str(folder), "SAL_USE_VCLPLUGIN": "svp"},
                start_new_session=True,
            )
            try:
                process.wait(limits.office_wall_limit_s)
            except subprocess.TimeoutExpired:
                raise KilledError(
                    f"was not converted by LibreOffice within {limits.office_wall_limit_s:g} s (limit "
                    "corpus.limits.office_seconds)",
                    KillReason.WALL,
                ) from None
            finally:
                # The program is a script that starts others: all of them end here, also where it hangs.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            words.seek(0)
            output = " ".join(words.read(1 << 16).decode("utf-8", "replace").split())
        self._check(process.returncode, output)

    def _check(self, code: int, output: str) -> None:
        """Raise for a conversion that the kernel ended. The scripts in between report a signal as 128 above it."""
        ended = -code if code < 0 else code - 128
        if ended == signal.SIGXCPU:
            raise KilledError(
                f"took LibreOffice more than {self._limits.office_seconds} s of CPU (limit "
                "corpus.limits.office_seconds)",
                KillReason.CPU,
            )
        if ended == signal.SIGKILL:
            raise KilledError(
                "LibreOffice was ended from outside, as a system short of memory does", KillReason.CRASH, transient=True
            )
        if ended in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):
            raise KilledError(f"crashed LibreOffice ({output[:LONGEST_QUOTE]})", KillReason.CRASH)

    def _profile(self) -> Path:
        if self._home is None:
            self._home = tempfile.TemporaryDirectory(prefix="vrag-office-profile-")
            user = Path(self._home.name, "user")
            user.mkdir()
            (user / "registrymodifications.xcu").write_text(_registry(), encoding="utf-8")
        return Path(self._home.name)


def _registry() -> str:
    """The settings of a profile, in the form that LibreOffice keeps them."""
    items = "".join(
        f'<item oor:path="/org.openoffice.{path}"><prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop>'
        "</item>"
        for path, name, value in _SETTINGS
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<oor:items xmlns:oor="http://openoffice.org/2001/registry">'
        f"{items}</oor:items>\n"
    )
