"""Every figure of the demo corpus, once. Northmere Harbour does not exist, and no figure here describes a real place.

Pages, photos, video and expected answers all read from here, so that they cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Mapping

PLACE = "Northmere Harbour"
YEARS = (2021, 2022, 2023, 2024)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

PRODUCTION_MWH = {
    "Wind turbines": (14_210, 15_880, 15_240, 17_630),
    "Solar roofs": (1_120, 1_465, 1_790, 2_085),
    "Tidal gate": (640, 702, 688, 731),
    "Cold store heat engine": (0, 96, 214, 258),
}
"""Electricity generated on the harbour's own ground, by source and year."""

SHORE_POWER_MWH = {
    "Ferry quay": (2_318, 2_744, 3_102, 3_467),
    "Cruise berth": (0, 512, 1_380, 1_946),
    "Container quay": (1_105, 1_290, 1_422, 1_583),
    "Fishing pier": (486, 503, 537, 561),
    "Tug basin": (174, 198, 221, 240),
}
"""Electricity given to ships at berth, by berth and year."""

WIND_2024_MWH = (1_984, 1_761, 1_702, 1_388, 1_190, 902, 846, 958, 1_327, 1_705, 1_892, 1_975)
DEMAND_2024_MWH = (1_620, 1_505, 1_548, 1_432, 1_395, 1_410, 1_468, 1_482, 1_420, 1_516, 1_577, 1_660)
CO2_AVOIDED_T = {"2019": 1_870, "2020": 2_240, "2021": 3_015, "2022": 3_690, "2023": 4_120, "2024": 4_985}

HEAT_RECOVERED_MWH = {
    "Fish market cold store": 412,
    "Ice factory": 287,
    "Ferry terminal chillers": 164,
    "Data room": 93,
    "Crane inverters": 38,
}
"""Shown only in the photo of a chart in the control room."""

FERRY_CHARGE_MIN = {"Mon": 11.4, "Tue": 11.1, "Wed": 12.6, "Thu": 10.9, "Fri": 14.8, "Sat": 16.3, "Sun": 13.2}
"""Mean minutes of charging a crossing; shown only in the photo of a wall chart."""

INVESTMENT_2030_MEUR = {"Second battery": 6.4, "Quay cables": 4.1, "Turbine T7": 9.8, "Heat network": 3.2}

BATTERY_MWH = 8.5
BATTERY_POWER_MW = 4.2
BATTERY_EFFICIENCY_PERCENT = 88.7

CRANE_SCAN_ROWS = (
    ("Hoist rope, crane 2", "worn, 3 broken wires", "replaced"),
    ("Slewing ring grease", "dry on the sea side", "re-greased, 4.5 kg"),
    ("Boom luffing brake", "gap 0.9 mm", "set to 0.6 mm"),
    ("Cab heater", "no fault found", "none"),
    ("Anemometer", "reads 1.8 m/s too low", "exchanged"),
    ("Limit switch 7", "corroded contact", "cleaned"),
)
"""Part, finding, action: the scanned maintenance sheet."""

VIDEO_SECONDS = 70
VIDEO_CUES = (
    (0.0, 9.5, "Northmere Harbour: blade inspection of wind turbine T4."),
    (10.0, 19.5, "The turbine is stopped and the rotor is locked with one blade pointing down."),
    (20.0, 29.5, "A drone climbs along blade B and takes 180 photographs."),
    (30.0, 39.5, "Damage found: a crack of 23 centimetres at the leading edge of blade B."),
    (40.0, 49.5, "The wind rises to 14 metres per second and the drone has to land."),
    (50.0, 59.5, "The rope team grinds the crack and fills it with resin."),
    (60.0, 69.5, "Turbine T4 is released at 16:20 and turns again at nine revolutions per minute."),
)
"""Start and end in seconds, and the words of each caption."""


def total(table: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The sum of each column."""
    return tuple(sum(column) for column in zip(*table.values(), strict=True))


def thousands(value: float) -> str:
    return f"{value:,.0f}"
