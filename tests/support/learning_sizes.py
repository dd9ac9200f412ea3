"""How little is trained on, and with."""

from __future__ import annotations

from benchmarks.mosaic.model import ModelShape
from benchmarks.mosaic.world.generate import MosaicSize
from benchmarks.mosaic.world.questions import Kind

SIZE = MosaicSize(pages=12, train=16, validation=4, kinds=(Kind.SINGLE_HOP, Kind.MULTI_HOP))
SHAPE = ModelShape(layers=2, heads=2, mlp=256, vision_depth=1, vision_heads=1, vision_mlp=32)
STEPS, WORKERS, QUESTIONS, GROUP = 3, 2, 4, 4
RUNS_A_WORKER = QUESTIONS * GROUP // WORKERS
