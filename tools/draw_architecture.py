"""Draw ``docs/images/architecture.svg``: the packages and the four flows between them.

``python tools/draw_architecture.py`` writes the picture anew; a test holds the committed file against ``draw()`` and
every name in it against the folders that exist. Standard library only; the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/images/architecture.svg"
AT_THE_TOP = ("ui",)
"""Packages of the picture that are not below ``vrag_ray/``."""

WIDTH, HEIGHT = 1296, 748
COLUMN, GAP, MARGIN = 192, 70, 28
BOX_HEIGHT = 58
ROWS = (110, 244, 378, 512, 646)
"""The upper edge of each row of boxes."""
INK, GREY, PAPER = "#1f2430", "#667085", "#ffffff"

Point = tuple[float, float]


class Flow(StrEnum):
    """What happens between the packages; the value is the colour of its arrows."""

    INGEST = "#1d5fbf"
    ANSWER = "#157347"
    SERVING = "#7a3fb0"
    TRAINING = "#b54708"


MEANINGS = {
    Flow.INGEST: ("Ingest", "files become a collection"),
    Flow.ANSWER: ("Search and answer", "an episode and what it reads"),
    Flow.SERVING: ("Serving", "HTTP requests in, events out"),
    Flow.TRAINING: ("Training", "the same episodes, for rewards"),
}


@dataclass(frozen=True, slots=True)
class Box:
    """A package. ``name`` is its folder below ``vrag_ray/`` (or at the top, see ``AT_THE_TOP``)."""

    name: str
    about: str
    x: float
    y: float
    width: float = COLUMN
    height: float = BOX_HEIGHT

    @property
    def folder(self) -> Path:
        return (ROOT if self.name in AT_THE_TOP else ROOT / "vrag_ray") / self.name

    @property
    def middle(self) -> Point:
        return (self.x + self.width / 2, self.y + self.height / 2)

    def at(self, across: float, down: float) -> Point:
        """A point of the box by its shares of width and height, such as (0.5, 1) for the middle of its lower edge."""
        return (self.x + self.width * across, self.y + self.height * down)


@dataclass(frozen=True, slots=True)
class Arrow:
    """From the first to the last of ``points``, with its word at ``label`` (the middle of the text's base line)."""

    flow: Flow
    word: str
    points: tuple[Point, ...]
    label: Point


def column(number: int) -> float:
    """The left edge of a column of boxes, counted from 0."""
    return MARGIN + number * (COLUMN + GAP)


def _small(number: int, name: str, about: str) -> Box:
    """One of the three clients, side by side in the space of two columns."""
    return Box(name, about, column(0) + number * 150, ROWS[1], 132)


BOXES = {
    box.name: box
    for box in (
        Box("corpus", "decode in a sandbox", column(1), ROWS[0]),
        Box("embedding", "words, pictures to vectors", column(2), ROWS[0]),
        Box("index/storage", "Lance tables, blobs", column(3), ROWS[0]),
        _small(0, "ui", "web"),
        _small(1, "cli", "terminal"),
        _small(2, "mcp", "tools"),
        Box("index/search", "BM25, vector shards, fusion", column(3), ROWS[1]),
        Box("library", "pages, crops, words", column(4), ROWS[1]),
        Box("client", "HTTP client, schemas", column(0), ROWS[2]),
        Box("serving/http", "routes, keys, SSE", column(1), ROWS[2]),
        Box("serving/deployments", "Ray Serve", column(2), ROWS[2]),
        Box("agent", "episode, memory graph, protocols: the same in every use", column(3), ROWS[2], 2 * COLUMN + GAP),
        Box("policies/llm", "vLLM or an endpoint", column(3), ROWS[3]),
        Box("training/rollout", "many episodes, vLLM", column(4), ROWS[3]),
        Box("training/rewards", "scorers, judge", column(4), ROWS[4]),
        Box("training/algorithms", "advantages, masks", column(3), ROWS[4]),
        Box("training/trainer", "loss, FSDP2, AdamW", column(2), ROWS[4]),
    )
}
INSET = 16
PIPELINE = Box("ingest", "Ray Data", column(1) - INSET, ROWS[0] - 38, 2 * (COLUMN + INSET) + GAP, BOX_HEIGHT + 56)
"""Runs what stands in it, so it is drawn around it."""
FILES = Box("files", "PDF, images, video, text", column(0), ROWS[0])
"""No package: where it begins."""


def _level(flow: Flow, word: str, start: Box, end: Box, *, down: float = 0.5, shift: float = 0.0) -> Arrow:
    """A straight arrow to the next box, on the right or on the left; the word is above it, moved by ``shift``."""
    forward = start.x < end.x
    begin, stop = start.at(1 if forward else 0, down), end.at(0 if forward else 1, down)
    return Arrow(flow, word, (begin, stop), ((begin[0] + stop[0]) / 2 + shift, begin[1] - 7))


def _vertical(flow: Flow, word: str, x: float, begin: float, stop: float, *, left: bool = False) -> Arrow:
    """A straight arrow up or down, with the word beside it."""
    half = 4.0 + 3.5 * len(word)
    return Arrow(flow, word, ((x, begin), (x, stop)), (x - half - 4 if left else x + half + 4, (begin + stop) / 2 + 4))


def arrows() -> tuple[Arrow, ...]:
    """All of them, flow by flow."""
    box = BOXES
    storage, search, library, agent = box["index/storage"], box["index/search"], box["library"], box["agent"]
    deployments, http, client = box["serving/deployments"], box["serving/http"], box["client"]
    policy, rollout, trainer = box["policies/llm"], box["training/rollout"], box["training/trainer"]
    rewards, algorithms = box["training/rewards"], box["training/algorithms"]
    embed, bracket = box["embedding"], ROWS[1] + BOX_HEIGHT + 22
    between = (ROWS[3] + BOX_HEIGHT + ROWS[4]) / 2
    aisle = column(4) - GAP / 2
    in_search, out_search = search.y + 16, search.y + BOX_HEIGHT - 16
    return (
        _level(Flow.INGEST, "bytes", FILES, box["corpus"], shift=-INSET / 2),
        _level(Flow.INGEST, "passages", box["corpus"], embed),
        _level(Flow.INGEST, "rows", embed, storage, shift=INSET / 2),
        _vertical(Flow.ANSWER, "load", storage.middle[0], storage.y + BOX_HEIGHT, search.y),
        Arrow(
            Flow.ANSWER,
            "originals",
            (storage.at(1, 0.5), (library.middle[0], storage.middle[1]), library.at(0.5, 0)),
            (storage.at(1, 0.5)[0] + 84, storage.middle[1] - 7),
        ),
        Arrow(
            Flow.ANSWER,
            "vectors",
            (embed.at(0.5, 1), (embed.middle[0], in_search), (search.x, in_search)),
            (search.x - 64, in_search - 7),
        ),
        _vertical(Flow.ANSWER, "hits", search.middle[0], search.y + BOX_HEIGHT, agent.y),
        _vertical(Flow.ANSWER, "pictures", library.middle[0], library.y + BOX_HEIGHT, agent.y),
        _vertical(Flow.ANSWER, "prompt", policy.middle[0] - 34, agent.y + BOX_HEIGHT, policy.y, left=True),
        _vertical(Flow.ANSWER, "reply", policy.middle[0] + 34, policy.y, agent.y + BOX_HEIGHT),
        Arrow(
            Flow.SERVING,
            "call",
            ((client.middle[0], bracket), client.at(0.5, 0)),
            (client.middle[0] + 24, (bracket + client.y) / 2 + 6),
        ),
        _level(Flow.SERVING, "request", client, http, down=0.34),
        _level(Flow.SERVING, "events", http, client, down=0.82),
        _level(Flow.SERVING, "question", http, deployments, down=0.34),
        _level(Flow.SERVING, "events", deployments, http, down=0.82),
        _level(Flow.SERVING, "run", deployments, agent, down=0.34),
        _level(Flow.SERVING, "events", agent, deployments, down=0.82),
        Arrow(
            Flow.SERVING,
            "query",
            (deployments.at(0.5, 0), (deployments.middle[0], out_search), (search.x, out_search)),
            (search.x - 64, out_search + 16),
        ),
        _vertical(Flow.TRAINING, "run", rollout.middle[0] - 34, rollout.y, agent.y + BOX_HEIGHT, left=True),
        _vertical(Flow.TRAINING, "record", rollout.middle[0] + 34, agent.y + BOX_HEIGHT, rollout.y),
        _vertical(Flow.TRAINING, "trajectories", rollout.middle[0], rollout.y + BOX_HEIGHT, rewards.y, left=True),
        _level(Flow.TRAINING, "rewards", rewards, algorithms),
        _level(Flow.TRAINING, "samples", algorithms, trainer),
        Arrow(
            Flow.TRAINING,
            "weights",
            (
                trainer.at(0.5, 0),
                (trainer.middle[0], between),
                (aisle, between),
                (aisle, rollout.middle[1]),
                rollout.at(0, 0.5),
            ),
            (column(3) + COLUMN / 2, between - 7),
        ),
    )


def draw() -> str:
    """The picture as SVG."""
    return "\n".join([*_head(), *_legend(), *_packages(), *_bracket(), *_flows(), "</svg>", ""])


def _head() -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Arial, Helvetica, sans-serif" role="img">'
    )
    yield "<title>The packages of vrag_ray and the four flows between them</title>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>'
    yield _text((MARGIN, 40), "vrag_ray: packages and flows", 20, INK, anchor="start", bold=True)


def _packages() -> Iterator[str]:
    yield _rectangle(PIPELINE, fill="#eef4fc", stroke=Flow.INGEST, dashes="6 4")
    yield _text((PIPELINE.x + INSET, PIPELINE.y + 24), f"{PIPELINE.name}/", 14, INK, anchor="start", bold=True)
    yield _text((PIPELINE.x + 82, PIPELINE.y + 24), PIPELINE.about, 12, GREY, anchor="start")
    yield _rectangle(FILES, fill=PAPER, stroke=GREY, dashes="3 3")
    yield from _words(FILES, FILES.name)
    for box in BOXES.values():
        shared = box.name == "agent"
        yield _rectangle(box, fill="#fff4d6" if shared else "#f6f7f9", stroke=INK)
        yield from _words(box, f"{box.name}/")


def _words(box: Box, name: str) -> Iterator[str]:
    x, y = box.middle
    yield _text((x, y - 4), name, 14, INK, bold=True)
    yield _text((x, y + 16), box.about, 12, GREY)


def _bracket() -> Iterator[str]:
    """Joins the three clients above the package that all of them use."""
    feet = [BOXES[name].at(0.5, 1) for name in ("ui", "cli", "mcp")]
    level = feet[0][1] + 22
    yield _line([(feet[0][0], level), (feet[-1][0], level)], Flow.SERVING)
    for x, y in feet:
        yield _line([(x, y), (x, level)], Flow.SERVING)


def _flows() -> Iterator[str]:
    for arrow in arrows():
        yield _line(arrow.points, arrow.flow)
        yield _arrowhead(arrow.points[-2], arrow.points[-1], arrow.flow)
        yield _text(arrow.label, arrow.word, 12.5, arrow.flow)


def _legend() -> Iterator[str]:
    x, y = column(0), ROWS[3] + 26
    for number, (flow, (name, meaning)) in enumerate(MEANINGS.items()):
        level = y + number * 44
        yield _line([(x, level), (x + 44, level)], flow)
        yield _arrowhead((x, level), (x + 52, level), flow)
        yield _text((x + 66, level - 2), name, 14, INK, anchor="start", bold=True)
        yield _text((x + 66, level + 15), meaning, 12, GREY, anchor="start")


def _rectangle(box: Box, *, fill: str, stroke: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="8" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="1.5"{dashed}/>'
    )


def _line(points: Sequence[Point], flow: Flow) -> str:
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{flow}" stroke-width="2"/>'


def _arrowhead(before: Point, tip: Point, flow: Flow) -> str:
    """A triangle at ``tip``; the last stretch of an arrow is level or upright."""
    (x, y), length, half = tip, 10.0, 5.0
    dx = (tip[0] > before[0]) - (tip[0] < before[0])
    dy = (tip[1] > before[1]) - (tip[1] < before[1])
    base = (x - dx * length, y - dy * length)
    corners = [tip, (base[0] + dy * half, base[1] + dx * half), (base[0] - dy * half, base[1] - dx * half)]
    return f'<polygon points="{" ".join(f"{a:g},{b:g}" for a, b in corners)}" fill="{flow}"/>'


def _text(place: Point, words: str, size: float, colour: str, *, anchor: str = "middle", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{place[0]:g}" y="{place[1]:g}" font-size="{size:g}" text-anchor="{anchor}" '
        f'fill="{colour}"{weight}>{escape(words)}</text>'
    )


def main() -> None:
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"written: {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
