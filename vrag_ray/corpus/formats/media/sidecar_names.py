"""Names of subtitle files beside a film: ``film.srt``, ``film.mp4.srt``, ``film.en-US.forced.vtt``, ``film_de.srt``,
and those of Zoom."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

_MARK = r"[A-Za-z][A-Za-z_-]{0,11}|[A-Za-z]{2,3}[-_](?:[A-Za-z]{4}[-_])?(?:[A-Za-z]{2}|\d{3})"
_MARKS = re.compile(rf"(?:\.(?:{_MARK}))*\.[A-Za-z]{{3,4}}")
"""What follows the name of the film: language and purpose (``.en.forced``), and the suffix."""
_BEHIND = re.compile(r"(?:[_ -]{1,3}[(\[]?|[(\[])([A-Za-z]+)((?:[-_][A-Za-z0-9]{2,8})?)[)\]]?(?=\.)")
"""A language that no dot parts from the name."""
_OF_ONE_VIEW = re.compile(r"(GMT\d{8}-\d{6}_Recording)(?:_[A-Za-z_]{1,40})?_\d{2,4}x\d{2,4}")
"""A film of Zoom: its subtitles are those of all views of a meeting, whose sizes stand in the names of the films."""
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,2}")
_PURPOSES = ("sdh", "cc")
"""What stands beside the language in a name, as long as a language's code: subtitles for the deaf."""
_PURPOSE_OR_HINDI = "hi"
_CODES = """
ar ara be bg bul bn ca cat cs ces cze cy da dan de deu ger el ell en eng es esp spa et eu fa fi fin fr fra fre ga gl he
heb hi hin hr hrv hu hun id ind is it ita ja jpn ko kor lt lv mk ms nb nl nld dut nn no nor pl pol pt por pob ro ron rum
ru rus sk slk sl slv sq sr srp sv swe ta te th tha tr tur uk ukr ur vi vie zh zho chi
"""
_SPELT = {
    "arabic": "ar", "chinese": "zh", "czech": "cs", "danish": "da", "deutsch": "de", "dutch": "nl", "english": "en",
    "espanol": "es", "finnish": "fi", "francais": "fr", "french": "fr", "german": "de", "greek": "el", "hebrew": "he",
    "hindi": "hi", "hungarian": "hu", "italian": "it", "italiano": "it", "japanese": "ja", "korean": "ko",
    "norwegian": "no", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru", "spanish": "es",
    "swedish": "sv", "thai": "th", "turkish": "tr", "ukrainian": "uk", "vietnamese": "vi",
}  # fmt: skip
_KNOWN = frozenset((*_CODES.split(), *_SPELT))
"""Languages that are taken for such where other words could stand: behind a blank or a hyphen."""


def marks_of(name: str, film: str) -> tuple[str, ...] | None:
    """What the ``name`` of a file says between that of the ``film`` and its suffix; None where it is no file of it.

    The film's name is without its suffix there, or whole; of a film of Zoom without the view and its size.
    """
    stem = PurePath(film).stem
    view = _OF_ONE_VIEW.fullmatch(stem)
    for beginning in (film, stem, *((view[1],) if view is not None else ())):
        if not name.casefold().startswith(beginning.casefold()):
            continue
        rest = name[len(beginning) :]
        behind = _BEHIND.match(rest)
        if behind is not None and behind[1].casefold() in _KNOWN:
            rest = f".{behind[1]}{behind[2]}{rest[behind.end() :]}"
        if _MARKS.fullmatch(rest):
            return tuple(rest.split(".")[1:-1])
    return None


def films_of(name: str, films: Iterable[str]) -> list[str]:
    """Those of the ``films`` of one folder whose subtitles the file ``name`` has: of ``talk.en.mp4`` and ``talk.mp4``
    the first has ``talk.en.srt``."""
    marks = {film: of_film for film in films if (of_film := marks_of(name, film)) is not None}
    fewest = min(map(len, marks.values()), default=0)
    return [film for film, of_film in marks.items() if len(of_film) == fewest]


def language_of(name: str, film: str) -> str:
    """``de`` of ``talk.de.forced.srt``, a file of ``talk.mp4``. ``hi`` is a purpose behind another language."""
    marks = [_SPELT.get(mark.casefold(), mark) for mark in marks_of(name, film) or ()]
    languages = [mark for mark in marks if _LANGUAGE.fullmatch(mark) and mark.lower() not in _PURPOSES]
    return next((mark for mark in languages if mark.lower() != _PURPOSE_OR_HINDI), next(iter(languages), ""))
