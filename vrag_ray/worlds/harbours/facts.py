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
CONSUMERS = ("Cranes", "Cold store", "Lighting", "Locks", "Workshops")


class Language(StrEnum):
    """Of a yearbook. Those that the standard fonts of PDF can write."""

    ENGLISH = "en"
    GERMAN = "de"
    FRENCH = "fr"


class Quantity(StrEnum):
    """A row of a yearbook's table."""

    SHORE_POWER = "shore power"
    WASTE_HEAT = "waste heat"
    FUEL = "fuel"
    PASSENGERS = "passengers"


@dataclass(frozen=True, slots=True)
class Harbour:
    """``table`` has a number for each of ``YEARS``, ``lifts`` those of the cranes for each of ``QUARTERS`` of 2024,
    ``electricity`` the MWh of each consumer in 2024."""

    name: str
    language: Language
    tug: str
    opened: int
    table: Mapping[Quantity, Sequence[int]]
    lifts: Sequence[int]
    electricity: Mapping[str, int]
    inspected: str
    load_t: int

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
        return [int(one) for one in drawn.integers(low, high, size)]

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
        )
        for number, (name, tug) in enumerate(zip(names, tugs, strict=True))
    ]
