"""What runs where: tables of what there is, what is configured, and what comes of it."""

from __future__ import annotations

import pytest

from vrag_ray.placement import Cards, Part, Placement, configured_share, device_of_process, place
from vrag_ray.types import VragError

ONE_GPU, TWO_GPUS, NO_GPUS = Cards((1.0,), 1), Cards((1.0, 1.0), 2), Cards()
BUILT_FOR_CPU = Cards((1.0,), 1, unusable="torch 2.13.0+cpu is built for the CPU: pip install '.[gpu]' in the checkout")


def part(name: str = "visual", share: float | None = None, processes: int = 1, most: float = 1.0) -> Part:
    return Part(name, f"spaces.{name}.num_gpus", share, processes, most)


MINILM = Part("texts", "ingest.num_gpus", cannot="minilm has no GPU code")
FACTORY = Part("own", "spaces.own.num_gpus", unless_set="a:b is a factory")


def shares(placement: Placement) -> list[float]:
    return [placed.share for placed in placement.placed]


@pytest.mark.parametrize(
    ("parts", "cards", "expected"),
    [
        # A free GPU is taken by default, by what can use it.
        ([part()], ONE_GPU, [1.0]),
        ([part()], NO_GPUS, [0.0]),
        ([part(), MINILM, FACTORY], ONE_GPU, [1.0, 0.0, 0.0]),
        ([part(most=0.5)], ONE_GPU, [0.5]),
        # Parts that run at the same time share alike, however many processes they are.
        ([part("a"), part("b")], ONE_GPU, [0.5, 0.5]),
        ([part("a"), part("b")], TWO_GPUS, [1.0, 1.0]),
        ([part(processes=3)], ONE_GPU, [0.3333]),
        ([part(processes=3)], TWO_GPUS, [0.5]),
        # Of several cards that are free in part, each process fits one.
        ([part()], Cards((0.25, 0.5), 2), [0.5]),
        ([part(processes=2)], Cards((0.25, 0.5), 2), [0.25]),
        ([part(processes=2)], Cards((0.4, 0.4), 2), [0.4]),
        # What is configured is given as it is, and leaves the others what is left.
        ([part("a", 0.25), part("b")], ONE_GPU, [0.25, 0.75]),
        ([part("a", 1.0), part("b")], ONE_GPU, [1.0, 0.0]),
        ([part("a", 2.0), part("b")], TWO_GPUS, [2.0, 0.0]),
        ([part("a", 0.6, 2), part("b")], TWO_GPUS, [0.6, 0.4]),
        ([part("a", 0.0), part("b")], ONE_GPU, [0.0, 1.0]),
        # A GPU that others hold is waited for where it is configured, and not taken by default.
        ([part("a", 1.0)], Cards((), 1), [1.0]),
        ([part("a")], Cards((), 1), [0.0]),
        ([part("a")], Cards((0.01,), 1), [0.0]),
        # A cluster that may grow gets what is configured.
        ([part("a", 1.0), part("b")], Cards(growing=True), [1.0, 0.0]),
        # What the user allows; 0 opts out of all that is configured.
        ([part(processes=2)], Cards((1.0, 1.0), 2, most=1), [0.5]),
        ([part("a", 1.0), part("b"), MINILM], Cards((1.0,), 1, most=0), [0.0, 0.0, 0.0]),
        # torch cannot use it.
        ([part()], BUILT_FOR_CPU, [0.0]),
    ],
)
def test_the_table(parts: list[Part], cards: Cards, expected: list[float]) -> None:
    assert shares(place(parts, cards)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("parts", "cards", "fault"),
    [
        ([part("a", 1.0)], NO_GPUS, r"spaces\.a\.num_gpus is 1, and there is no GPU: .*or to 0 for the CPU"),
        ([part("a", 2.0)], ONE_GPU, r"spaces\.a\.num_gpus is 2, and there is 1 GPU"),
        ([part("a", 1.0, 2)], ONE_GPU, r"is 1 for each of 2 processes, and there is 1 GPU"),
        ([part("a", 0.6), part("b", 0.6)], ONE_GPU, r"spaces\.b\.num_gpus is 0\.6, .* 1 GPU for all parts together"),
        ([part("a", 2.0)], Cards((1.0, 1.0), 2, most=1), r"there is 1 GPU"),
        ([part("a", 0.5)], BUILT_FOR_CPU, r"spaces\.a\.num_gpus is 0\.5, and torch 2\.13\.0\+cpu is built for the CPU"),
        (
            [Part("texts", "ingest.num_gpus", 1.0, cannot="minilm has no GPU code")],
            ONE_GPU,
            r"ingest\.num_gpus is 1, and minilm has no GPU code: set ingest\.num_gpus to 0",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_setting(parts: list[Part], cards: Cards, fault: str) -> None:
    with pytest.raises(VragError, match=fault):
        place(parts, cards)


def test_one_line_says_what_runs_where_and_why() -> None:
    placement = place([part("a"), part("b", 0.25, 2), MINILM, part("c", 0.0)], ONE_GPU)
    assert placement.line == (
        "a on a GPU (0.5 of it); b on a GPU (0.25 of it for each of 2 processes); "
        "texts on the CPU (minilm has no GPU code); c on the CPU (spaces.c.num_gpus is 0)"
    )
    assert place([part("a"), part("b")], NO_GPUS).line == "a and b on the CPU (there is no GPU)"
    assert place([part("a", 2.0)], TWO_GPUS).line == "a on 2 GPUs"


@pytest.mark.parametrize(
    ("parts", "cards", "notice"),
    [
        ([FACTORY], ONE_GPU, "1 GPU is idle: own: a:b is a factory"),
        ([MINILM], TWO_GPUS, "2 GPUs are idle: texts: minilm has no GPU code"),
        ([part("a"), MINILM], TWO_GPUS, "1 GPU is idle: texts: minilm has no GPU code"),
        ([part("a")], BUILT_FOR_CPU, "1 GPU is idle: torch 2.13.0+cpu is built for the CPU"),
        ([part("a")], Cards((), 1), "a on the CPU, because no GPU is free: give every part its share"),
    ],
)
def test_an_idle_gpu_and_a_part_that_found_none_are_notices(parts: list[Part], cards: Cards, notice: str) -> None:
    [reported] = place(parts, cards).notices
    assert notice in reported


@pytest.mark.parametrize(
    ("parts", "cards"),
    [
        ([part("a")], ONE_GPU),
        ([part("a")], NO_GPUS),
        ([part("a", 0.0)], ONE_GPU),  # the user's own choice
        ([part("a")], Cards((1.0,), 1, most=0)),
        ([part("a"), MINILM], ONE_GPU),  # nothing is idle
    ],
)
def test_there_is_no_notice_where_nothing_is_amiss(parts: list[Part], cards: Cards) -> None:
    assert place(parts, cards).notices == ()


def test_a_report_leaves_out_the_line_where_nothing_could_use_a_gpu() -> None:
    lines: list[str] = []
    place([MINILM], NO_GPUS).report(lines.append)
    assert lines == []
    place([FACTORY], ONE_GPU).report(lines.append)
    assert lines == ["own on the CPU (a:b is a factory)", "notice: 1 GPU is idle: own: a:b is a factory"]


@pytest.mark.parametrize(
    ("device", "visible", "granted", "expected"),
    [
        ("auto", True, None, "cuda"),
        ("auto", False, None, "cpu"),
        ("auto", True, True, "cuda"),
        ("auto", True, False, "cpu"),
        ("auto", False, False, "cpu"),
        ("cpu", True, True, "cpu"),
        ("cuda", True, None, "cuda"),
        ("cuda", True, True, "cuda"),
    ],
)
def test_a_process_computes_on_the_gpu_that_it_has(
    device: str, visible: bool, granted: bool | None, expected: str
) -> None:
    assert device_of_process(device, visible=visible, granted=granted) == expected


@pytest.mark.parametrize(
    ("device", "visible", "granted", "fault"),
    [
        ("tpu", True, None, "use auto, cpu or cuda"),
        ("cuda", False, None, "torch finds no GPU"),
        ("cuda", True, False, "Ray gave this process no GPU: set num_gpus"),
        ("auto", False, True, r"Ray gave this process a GPU, and torch finds none: pip install '\.\[gpu\]'"),
    ],
)
def test_a_gpu_that_a_process_does_not_have_is_refused(
    device: str, visible: bool, granted: bool | None, fault: str
) -> None:
    with pytest.raises(VragError, match=fault):
        device_of_process(device, visible=visible, granted=granted)


def test_a_share_and_a_device_that_contradict_each_other_are_refused() -> None:
    assert configured_share(None, "auto", "x") is None
    assert configured_share(None, "cpu", "x") == 0.0
    assert configured_share(0.5, "cuda", "x") == 0.5
    for share, device in ((0.5, "cpu"), (0.0, "cuda")):
        with pytest.raises(VragError, match=r"x is .* and its device is"):
            configured_share(share, device, "x")
