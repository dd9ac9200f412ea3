"""What is true of the harbours: drawn from a seed, so that no model can have read it anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

import numpy as np

YEARS = (2022, 2023, 2024)
QUARTERS = ("Q1", "Q2", "Q3", "Q4")
_FIRST = ("Ard", "Bel", "Cor", "Dun", "Ell", "Far", "Gal", "Hol", "Kil", "Lor", "Mar", "Nor")
_LAST = ("more", "haven", "wick", "ness", "sund", "burg")
TUGS = (
    *("Albatross", "Bittern", "Cormorant", "Dunlin", "Eider", "Fulmar", "Gannet", "Heron", "Ibis", "Jacana", "Kestrel"),
    *("Lapwing", "Merlin", "Osprey", "Petrel", "Quail", "Razorbill", "Sanderling", "Tern", "Wigeon"),
)
SHIPS = ("Aurora", "Beatrix", "Clementine", "Dorothea", "Esmeralda", "Fortuna", "Georgina", "Henrietta", "Isadora")
CALLS = 3
CONSUMERS = ("Cranes", "Cold store", "Lighting", "Locks", "Workshops")


class Language(StrEnum):
    """Of a yearbook."""

    ENGLISH = "en"
    GERMAN = "de"
    FRENCH = "fr"
    CHINESE = "zh"


class Quantity(StrEnum):
    """A row of a yearbook's table."""

    SHORE_POWER = "shore power"
    WASTE_HEAT = "waste heat"
    FUEL = "fuel"
    PASSENGERS = "passengers"


@dataclass(frozen=True, slots=True)
class Call:
    """A ship that the gate camera saw; no two of a harbour have the same time, ship or lock."""

    time: str
    ship: str
    lock: int


@dataclass(frozen=True, slots=True)
class Harbour:
    """``table`` has a number for each of ``YEARS``, ``lifts`` those of the cranes for each of ``QUARTERS`` of 2024,
    ``electricity`` the MWh of each consumer in 2024. ``look`` is the seed of how its pictures are lit and turned;
    ``subtitled`` says whether its clip has a subtitle track."""

    name: str
    language: Language
    tug: str
    opened: int
    table: Mapping[Quantity, Sequence[int]]
    lifts: Sequence[int]
    electricity: Mapping[str, int]
    inspected: str
    load_t: int
    calls: Sequence[Call]
    subtitled: bool
    look: int

    @property
    def slug(self) -> str:
        return self.name.lower()

    def value(self, quantity: Quantity, year: int) -> int:
        return self.table[quantity][YEARS.index(year)]


def harbours(seed: int, count: int) -> list[Harbour]:
    """``count`` harbours of different names, at most as many as there are tugs; the same seed gives the same."""
    if not 2 <= count <= len(TUGS):
        raise ValueError(f"{count} harbours: from 2 to {len(TUGS)} can be made")
    drawn = np.random.default_rng(seed)
    names = drawn.permutation(["".join(parts) for parts in product(_FIRST, _LAST)])[:count]
    tugs = drawn.permutation(TUGS)[:count]
    languages = list(Language)

    def numbers(low: int, high: int, size: int) -> list[int]:
        return [int(number) for number in drawn.integers(low, high, size)]

    return [
        Harbour(
            name=str(name),
            language=languages[number % len(languages)],
            tug=str(tug),
            opened=numbers(1850, 1990, 1)[0],
            table={quantity: numbers(1_000, 9_900, len(YEARS)) for quantity in Quantity},
            lifts=numbers(200, 990, len(QUARTERS)),
            electricity=dict(zip(CONSUMERS, numbers(100, 990, len(CONSUMERS)), strict=True)),
            inspected=f"{numbers(1, 28, 1)[0]} {drawn.choice(['March', 'May', 'June', 'September', 'October'])} 2024",
            load_t=numbers(20, 95, 1)[0],
            calls=_calls(seed, number),
            # Fives, so that neither a language nor a scene of the questions always has subtitles.
            subtitled=number % 5 in (1, 3),
            look=seed * 100 + number,
        )
        for number, (name, tug) in enumerate(zip(names, tugs, strict=True))
    ]


def _calls(seed: int, number: int) -> list[Call]:
    drawn = np.random.default_rng([seed, number])
    ships = drawn.choice(SHIPS, CALLS, replace=False)
    locks = drawn.choice(range(1, 10), CALLS, replace=False)
    # In the order of the day, each in another hour.
    hours = sorted(drawn.choice(range(6, 20), CALLS, replace=False))
    minutes = drawn.integers(0, 60, CALLS)
    return [
        Call(f"{hour:02}:{minute:02}", str(ship), int(lock))
        for hour, minute, ship, lock in zip(hours, minutes, ships, locks, strict=True)
    ]
