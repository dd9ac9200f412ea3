"""Words that stand for a word of the question: synonyms, names of units, and the units of a quantity.

A question for a weight is answered by "6.8 kg" and one for kilometres by "11 km". Two kinds of marks beside the words
of a text say so: ``unit:km`` and ``quantity:length``. Marks have a colon, which no word has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Unit:
    """``symbols`` stand behind a figure, ``words`` anywhere; both are separated by blanks."""

    quantity: str
    symbols: str
    words: str = ""


_UNITS = (
    _Unit("length", "km", "kilometre kilometres kilometer kilometers"),
    _Unit("length", "m", "metre metres meter meters"),
    _Unit("length", "cm", "centimetre centimetres centimeter centimeters"),
    _Unit("length", "mm", "millimetre millimetres millimeter millimeters"),
    _Unit("length", "mi", "mile miles"),
    _Unit("length", "ft", "feet"),
    _Unit("length", "yd", "yard yards"),
    _Unit("length", "", "inch inches"),
    _Unit("mass", "kg", "kilogram kilograms kilogramme kilogrammes"),
    _Unit("mass", "g", "gram grams gramme grammes"),
    _Unit("mass", "mg", "milligram milligrams"),
    _Unit("mass", "t", "ton tons tonne tonnes"),
    _Unit("mass", "lb lbs"),
    _Unit("mass", "oz", "ounce ounces"),
    _Unit("money", "€ EUR", "eur euro euros"),
    _Unit("money", "$ USD US$", "usd dollar dollars"),
    _Unit("money", "£ GBP", "gbp"),
    _Unit("money", "¥ JPY", "jpy yen"),
    _Unit("money", "CHF", "chf franc francs"),
    _Unit("money", "NOK SEK DKK kr", "nok sek dkk krone kroner krona kronor"),
    _Unit("money", "ct", "cent cents pence"),
    _Unit("duration", "s sec", "seconds"),
    _Unit("duration", "min", "minute minutes"),
    _Unit("duration", "h hr hrs", "hour hours"),
    _Unit("duration", "", "day days"),
    _Unit("duration", "", "week weeks"),
    _Unit("duration", "", "month months"),
    _Unit("duration", "", "year years"),
    _Unit("temperature", "°C ℃", "celsius"),
    _Unit("temperature", "°F ℉", "fahrenheit"),
    _Unit("power", "W", "watt watts"),
    _Unit("power", "kW", "kilowatt kilowatts"),
    _Unit("power", "MW", "megawatt megawatts"),
    _Unit("power", "GW", "gigawatt gigawatts"),
    _Unit("power", "hp", "horsepower"),
    _Unit("energy", "kWh"),
    _Unit("energy", "MWh"),
    _Unit("energy", "GWh"),
    _Unit("energy", "TWh"),
    _Unit("energy", "J kJ MJ", "joule joules"),
    _Unit("energy", "kcal", "calorie calories kilocalorie kilocalories"),
    _Unit("speed", "km/h kph"),
    _Unit("speed", "mph"),
    _Unit("speed", "m/s"),
    _Unit("speed", "kn", "knots"),
    _Unit("area", "m² m2 sqm"),
    _Unit("area", "km² km2"),
    _Unit("area", "ha", "hectare hectares"),
    _Unit("area", "", "acre acres"),
    _Unit("area", "ft² sqft"),
    _Unit("volume", "l L", "litre litres liter liters"),
    _Unit("volume", "ml mL", "millilitre millilitres milliliter milliliters"),
    _Unit("volume", "cl", "centilitre centilitres"),
    _Unit("volume", "m³ m3"),
    _Unit("volume", "gal", "gallon gallons"),
    _Unit("data", "kB KB"),
    _Unit("data", "MB", "megabyte megabytes"),
    _Unit("data", "GB", "gigabyte gigabytes"),
    _Unit("data", "TB", "terabyte terabytes"),
    _Unit("voltage", "V", "volt volts"),
    _Unit("voltage", "kV", "kilovolt kilovolts"),
    _Unit("pressure", "bar mbar"),
    _Unit("pressure", "Pa kPa hPa MPa"),
    _Unit("pressure", "psi"),
    _Unit("sound", "dB dB(A)", "decibel decibels"),
    _Unit("frequency", "Hz", "hertz"),
    _Unit("frequency", "kHz"),
    _Unit("frequency", "MHz"),
    _Unit("frequency", "GHz"),
    _Unit("share", "%", "percent"),
)
QUANTITIES = {
    "length": "length long height high tall depth deep width wide distance far altitude elevation thickness diameter "
    "länge lang höhe hoch tiefe tief breite breit entfernung durchmesser",
    "mass": "weight weigh mass heavy capacity gewicht wiegt schwer tragkraft",
    "money": "price cost fee charge fare rent salary wage preis kosten kostet kostete gebühr miete gehalt lohn",
    "duration": "duration long length dauer dauert dauerte",
    "temperature": "temperature hot warm cold temperatur",
    "power": "power capacity",
    "energy": "energy electricity",
    "speed": "speed fast velocity",
    "area": "area size large big",
    "volume": "volume capacity",
    "data": "size memory storage capacity",
    "voltage": "voltage",
    "pressure": "pressure",
    "sound": "noise sound loud",
    "frequency": "frequency",
    "share": "share percentage proportion percent",
}
"""The words of questions that each quantity answers."""
SYNONYMS = (
    "employee staff workforce personnel headcount",
    "child children kid",
    "inhabitant resident population",
    "pupil student",
    "teacher lecturer",
    "person people",
    "doctor physician",
    "car automobile vehicle",
    "bike bicycle",
    "telephone phone",
    "revenue turnover sales",
    "profit earnings",
    "price cost fee charge fare tariff",
    "salary wage pay",
    "company firm business enterprise",
    "job occupation",
    "aim goal objective target purpose",
    "result finding outcome",
    "benefit advantage",
    "drawback disadvantage",
    "duty obligation responsibility",
    "rule regulation",
    "holiday vacation leave",
    "apartment flat",
    "illness disease",
    "medicine drug medication",
    "error fault failure",
    "problem issue trouble",
    "remedy solution",
    "step stage",
    "begin start commence",
    "end finish",
    "buy purchase",
    "hurt injure wound",
    "kill death die",
    "found establish",
    "increase growth rise grow gain",
    "decrease decline reduction fall drop",
    "chairman chairperson chair",
    "vote ballot",
    "speed velocity",
    "mistake error",
    "accident crash",
    "author writer",
    "dessert sweet",
    "drink beverage",
    "trip journey",
    "location place site",
    "exam examination",
    "lorry truck",
    "owner own proprietor",
    "manufacturer maker make",
    "shop store",
    "broken defective",
    "born birth",
    "required necessary needed",
    "permitted allowed",
    "forbidden prohibited",
    "preis kosten kostet kostete gebühr entgelt",
    "leiter leiterin leitet leitete leitung chef chefin",
    "lehrer lehrerin unterrichtet dozent dozentin",
    "telefon telefonnummer rufnummer tel",
    "prüfung prüfen geprüft",
    "adresse anschrift",
    "mitarbeiter beschäftigte angestellte personal",
    "umsatz umsätze erlöse umsatzerlöse",
    "gewinn überschuss jahresüberschuss",
    "bezahlen bezahlt zahlen zahlbar fällig",
    "beginnt beginn anfang",
    "endet ende",
    "dauert dauerte dauer",
    "eröffnet eröffnung",
    "gegründet gründung",
    "gebaut erbaut baujahr",
)
"""Groups of words of which each stands for the others; a word may be in several."""


def mark_of_quantity(name: str) -> str:
    return f"quantity:{name}"


def without_marks(stems: frozenset[str]) -> frozenset[str]:
    """The words alone: a value is no label, and a unit no place of the question's word."""
    return frozenset(stem for stem in stems if ":" not in stem)


def is_quantity(stem: str) -> bool:
    """Whether ``stem`` is the mark of a quantity."""
    return stem.startswith("quantity:")


def _marks(unit: _Unit) -> frozenset[str]:
    return frozenset({f"unit:{(unit.symbols or unit.words).split()[0]}", mark_of_quantity(unit.quantity)})


_OF_SYMBOL = {symbol: _marks(unit) for unit in _UNITS for symbol in unit.symbols.split()}
_OF_WORD = {word: _marks(unit) for unit in _UNITS for word in unit.words.split()}
_SIGNS = "€$£¥"
_SYMBOLS = "|".join(re.escape(symbol) for symbol in sorted(_OF_SYMBOL, key=len, reverse=True))
_BEHIND_FIGURE = re.compile(rf"\d[\s\u00a0\u202f-]?({_SYMBOLS})(?![\w²³/])")
_IN_HEAD = re.compile(rf"(?:^|[(\[]|\bin )({_SYMBOLS})(?=[)\]]|$)")
"""``Weight (kg)``, ``EUR``"""
_IN_LABEL = re.compile(rf"(?<![\w²³])({_SYMBOLS})[)\]]?: \W?\d")
"""``Area km2: 6.4``"""
_LONGEST_HEAD = 60
_AMOUNT = re.compile(rf"[{_SIGNS}]\s?\d[\d.,]*\s?\w*")


def marks_of_units(text: str) -> Iterator[str]:
    """The marks of the units behind the figures of ``text``, or in it as the head of a column. ``$5m`` is an amount of
    money, and no length."""
    signs = [sign for sign in _SIGNS if sign in text]
    for sign in signs:
        yield from _OF_SYMBOL[sign]
    text = _AMOUNT.sub(" ", text) if signs else text
    for symbol in _BEHIND_FIGURE.findall(text):
        yield from _OF_SYMBOL[symbol]
    for symbol in _IN_LABEL.findall(text) if ": " in text else ():
        yield from _OF_SYMBOL[symbol]
    for symbol in _IN_HEAD.findall(text) if len(text) <= _LONGEST_HEAD else ():
        yield from _OF_SYMBOL[symbol]


def marks_of_word(token: str) -> frozenset[str]:
    """The marks of the name of a unit, as "kilometres"."""
    return _OF_WORD.get(token, frozenset())


def unit_of(token: str) -> frozenset[str]:
    """The mark of the unit that ``token`` names or is the symbol of."""
    return frozenset(mark for mark in marks_of_word(token) | _OF_SYMBOL.get(token, frozenset()) if mark[0] == "u")
