"""The same yearbook in four languages, and the words of its questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vrag_ray.samples.harbours.facts import Language, Quantity


@dataclass(frozen=True, slots=True)
class Wording:
    """``lookup`` asks for a cell of the table: of ``quantity``, ``name`` and ``year``."""

    title: str
    opened: str
    figures: str
    corner: str
    lifts: str
    lookup: str
    unknown: str
    quantities: Mapping[Quantity, str]


WORDINGS: Mapping[Language, Wording] = {
    Language.ENGLISH: Wording(
        title="{name} Harbour: yearbook 2024",
        opened="The harbour of {name} was opened in {opened}. Its figures of three years are on the next page.",
        figures="{name}: figures of three years",
        corner="Quantity",
        lifts="{name}: crane lifts in 2024, by quarter",
        lookup="How much was the {quantity} of {name} in {year}?",
        unknown="How many windmills were built in {name} in {year}?",
        quantities={
            Quantity.SHORE_POWER: "shore power (MWh)",
            Quantity.WASTE_HEAT: "waste heat (MWh)",
            Quantity.FUEL: "fuel sold (tonnes)",
            Quantity.PASSENGERS: "ferry passengers",
        },
    ),
    Language.GERMAN: Wording(
        title="Hafen {name}: Jahrbuch 2024",
        opened="Der Hafen {name} wurde {opened} eröffnet. Zahlen aus drei Jahren stehen auf der nächsten Seite.",
        figures="{name}: Zahlen aus drei Jahren",
        corner="Größe",
        lifts="{name}: Kranhübe 2024 nach Quartalen",
        lookup="Wie hoch war in {name} der Wert {quantity} im Jahr {year}?",
        unknown="Wie viele Windmühlen wurden {year} in {name} gebaut?",
        quantities={
            Quantity.SHORE_POWER: "Landstrom (MWh)",
            Quantity.WASTE_HEAT: "Abwärme (MWh)",
            Quantity.FUEL: "Treibstoffverkauf (Tonnen)",
            Quantity.PASSENGERS: "Fährgäste",
        },
    ),
    Language.FRENCH: Wording(
        title="Port de {name} : annuaire 2024",
        opened="Le port de {name} a été ouvert en {opened}. Les chiffres de trois années suivent à la page 2.",
        figures="{name} : chiffres de trois années",
        corner="Grandeur",
        lifts="{name} : levages des grues en 2024, par trimestre",
        lookup="Combien valait {quantity} à {name} en {year} ?",
        unknown="Combien de moulins à vent a-t-on construits à {name} en {year} ?",
        quantities={
            Quantity.SHORE_POWER: "courant à quai (MWh)",
            Quantity.WASTE_HEAT: "chaleur récupérée (MWh)",
            Quantity.FUEL: "carburant vendu (tonnes)",
            Quantity.PASSENGERS: "passagers des ferries",
        },
    ),
    Language.CHINESE: Wording(
        title="{name} 港：2024 年年鉴",
        opened="{name} 港于 {opened} 年开港。最近三年的数据见下一页。",
        figures="{name} 港：三年数据",
        corner="项目",
        lifts="{name} 港：2024 年各季度起重机吊装次数",
        lookup="{name} 港 {year} 年的{quantity}是多少？",
        unknown="{year} 年 {name} 港新建了多少座风车？",
        quantities={
            Quantity.SHORE_POWER: "岸电用量（兆瓦时）",
            Quantity.WASTE_HEAT: "余热回收量（兆瓦时）",
            Quantity.FUEL: "燃油销量（吨）",
            Quantity.PASSENGERS: "渡轮客运量（人次）",
        },
    ),
}
