"""The stages of filling spaces after ``ReadPassages``. Each handles its own bad input: Ray Data's unit of failure is a
block.

``Draw``: rows of ``ReadPassages`` → the same with ``pictures`` (PNG files), ``times`` (seconds, of frames), ``phash``,
``error``, and ``transient`` where the machine is its reason. ``EmbedSpace``, one a space: → the same with that space's
columns, see ``column_of``.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.corpus.model import DecodeError, DecodeOptions
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.embedding.base import Content, Embedder, Embedding, EmbedError, Modality, PictureSpec
from vrag_ray.embedding.pictures import fitted_to, frame_spec
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.imaging.fitting import REFERENCE_DPI
from vrag_ray.imaging.phash import difference_hash
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.ingest.progress import Board, Work
from vrag_ray.ingest.spaces.material import Material, place_from_json
from vrag_ray.types import DocumentKind, VragError

if TYPE_CHECKING:
    import pyarrow as pa

NATIVE_DPI = 150.0
"""At this the sandbox gives pictures and frames their own pixels."""
OVERSIZE = 2
"""Drawn with up to this many times the requested pixels, then resized once: finer than drawing at the size."""


UNDRAWN: dict[str, object] = {"pictures": [], "times": [], "error": "", "transient": False}
"""The outcome of ``Draw`` for a passage that is embedded by its words."""


def column_of(space: str) -> str:
    """The column of a space: structs of ``count``, ``grid_rows``, ``grid_columns``, ``error`` and ``vectors``, as
    ``index.storage.spaces.space_table`` takes them."""
    return f"{space}:embedded"


class Draw:
    """Passages → their pictures, drawn in a killable child at the size that the embedders want."""

    def __init__(self, root: str, settings: Settings, spec: PictureSpec, board: Board) -> None:
        self._files = CollectionFiles(root)
        self._sandbox = Sandbox(settings.corpus.limits)
        self._options = replace(
            DecodeOptions.from_config(settings.corpus), video_fps=spec.fps, max_frames=max(1, spec.max_frames)
        )
        self._spec = spec
        self._board, self._worker = board, uuid4().hex

    def __call__(self, batch: pa.Table) -> pa.Table:
        import pyarrow as pa

        began = time.perf_counter()
        pictures: list[list[bytes]] = []
        times: list[list[float]] = []
        phashes: list[int | None] = []
        errors: list[str] = []
        transients: list[bool] = []
        for row in batch.to_pylist():
            drawn: list[bytes] = []
            moments: list[float] = []
            phash, error, transient = None, "", False
            try:
                if row["material"] != Material.TEXT:
                    drawn, moments = self._drawn(row)
                    phash = difference_hash(drawn[0])
            except DecodeError as problem:
                error, transient = str(problem), problem.transient
            except OSError as problem:
                error, transient = f"{row['name']}: cannot be read ({problem.strerror or problem})", True
            pictures.append(drawn)
            times.append(moments)
            phashes.append(phash)
            errors.append(error)
            transients.append(transient)
        self._board.add(Work("draw", self._worker, len(batch), time.perf_counter() - began))
        columns: dict[str, pa.Array] = {
            "pictures": pa.array(pictures, pa.list_(pa.large_binary())),
            "times": pa.array(times, pa.list_(pa.float64())),
            "phash": pa.array(phashes, pa.uint64()),
            "error": pa.array(errors, pa.string()),
            "transient": pa.array(transients, pa.bool_()),
        }
        for name, column in columns.items():
            batch = batch.append_column(name, column)
        return batch

    def close(self) -> None:
        """End the child."""
        self._sandbox.close()

    def _drawn(self, row: dict[str, str]) -> tuple[list[bytes], list[float]]:
        """Raises DecodeError."""
        path = self._files.local_path(f"blobs/{row['blob']}")
        kind, place = DocumentKind(row["document_kind"]), place_from_json(row["place"])
        if row["material"] == Material.PICTURE:
            dpi = REFERENCE_DPI if kind is DocumentKind.PDF else NATIVE_DPI
            png = self._sandbox.render(path, kind, place, dpi=dpi, box=None, max_pixels=_drawn_pixels(self._spec))
            return [fitted_to(png, self._spec)], []
        spec = frame_spec(self._spec)
        frames = self._sandbox.frames(path, place, self._options, max_pixels=_drawn_pixels(spec))
        if not frames:
            raise DecodeError(f"{row['name']}: {place} has no frame that can be read")
        return [fitted_to(frame.png, spec) for frame in frames], [frame.t for frame in frames]


def _drawn_pixels(spec: PictureSpec) -> int:
    return (spec.side**2 if spec.side is not None else spec.max_pixels) * OVERSIZE


class EmbedSpace:
    """Contents → the vectors of one space. What cannot be embedded has an error of its own and moves no other."""

    def __init__(
        self,
        name: str,
        config: SpaceConfig,
        embedder_id: str,
        board: Board,
        *,
        last: bool,
        drawn: bool,
        threads: int,
    ) -> None:
        """``last`` drops what no later stage needs; ``drawn`` says that ``Draw`` came before; ``threads`` compute on a
        CPU.

        Raises VragError where the model is not the one that ``embedder_id`` names.
        """
        self._name, self._last, self._drawn = name, last, drawn
        self._embedder = space_embedder(config)
        torch = sys.modules.get("torch")
        if torch is not None:
            # Ray allows an actor of a fraction of a CPU one thread.
            torch.set_num_threads(threads)
        if self._embedder.id != embedder_id:
            raise VragError(
                f"the model {config.model} of the space {name} has changed, it is {self._embedder.id} now and was "
                f"{embedder_id}: `vrag embed --space {name} --rebuild` makes the vectors anew"
            )
        self._board, self._worker = board, uuid4().hex
        self._counting, self._counted_until = threading.Lock(), 0.0
        board.worker_ready()

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Thread-safe: the embedder prepares a batch of one call while it computes that of another."""

        began = time.perf_counter()
        rows = batch.to_pylist() if self._drawn else [row | UNDRAWN for row in batch.to_pylist()]
        chosen = [n for n, row in enumerate(rows) if self._name in row["spaces"] and not row["error"]]
        by_row = dict(zip(chosen, embedded(self._embedder, [rows[n] for n in chosen]), strict=True))
        results = [by_row.get(n, EmbedError(row["error"])) for n, row in enumerate(rows)]
        batch = batch.append_column(column_of(self._name), _column(results))
        with self._counting:
            # Calls overlap: each second counts once.
            ended = time.perf_counter()
            busy_s, self._counted_until = ended - max(began, self._counted_until), ended
        self._board.add(Work(f"embed {self._name}", self._worker, len(chosen), busy_s))
        heavy = ["pictures", "times", "text"] if self._drawn else ["text"]
        return batch.drop_columns(heavy) if self._last else batch


def _column(results: Sequence[Embedding | EmbedError]) -> pa.StructArray:
    import pyarrow as pa

    sound = [result if isinstance(result, Embedding) else None for result in results]
    grids = [(None, None) if result is None or result.grid is None else result.grid for result in sound]
    fields = {
        "count": pa.array([0 if result is None else len(result.vectors) for result in sound], pa.int32()),
        "grid_rows": pa.array([rows for rows, _ in grids], pa.int32()),
        "grid_columns": pa.array([columns for _, columns in grids], pa.int32()),
        "error": pa.array([str(result) if isinstance(result, EmbedError) else "" for result in results], pa.string()),
        "vectors": pa.array(
            [b"" if result is None else result.vectors.astype(np.float16).tobytes() for result in sound],
            pa.large_binary(),
        ),
    }
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def embedded(embedder: Embedder, rows: Sequence[dict[str, object]]) -> list[Embedding | EmbedError]:
    """One result a row, in order. Raises VragError where the embedder does not give one each."""
    contents: list[Content] = []
    bounds = [0]
    for row in rows:
        contents += _contents(row, embedder)
        bounds.append(len(contents))
    results = embedder.embed_passages(contents) if contents else []
    if len(results) != len(contents):
        raise VragError(f"the embedder {embedder.id} gave {len(results)} results for {len(contents)} contents")
    return [_joined(results[start:stop], embedder) for start, stop in pairwise(bounds)]


def _contents(row: dict[str, object], embedder: Embedder) -> list[Content]:
    pictures, times, text = row["pictures"], row["times"], row["text"]
    assert isinstance(pictures, list) and isinstance(times, list) and isinstance(text, str)
    if row["material"] == Material.TEXT:
        return [Content(text)]
    if row["material"] == Material.FRAMES and Modality.CLIP in embedder.modalities:
        return [Content(frames=tuple(pictures), frame_times=tuple(times))]
    return [Content(picture=picture) for picture in pictures]


def _joined(frames: Sequence[Embedding | EmbedError], embedder: Embedder) -> Embedding | EmbedError:
    """The frames of a clip as one: all their vectors (late interaction), or the direction of their mean."""
    good: list[Embedding] = []
    for row in frames:
        if isinstance(row, EmbedError):
            return row
        good.append(row)
    if not good:
        return EmbedError("there is nothing to embed")
    if len(good) == 1:
        return good[0]
    together = np.concatenate([row.vectors for row in good])
    if embedder.multi_vector:
        return Embedding(together)
    mean = together.mean(axis=0, keepdims=True)
    return Embedding((mean / max(float(np.linalg.norm(mean)), 1e-9)).astype(np.float32))
