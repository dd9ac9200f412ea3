"""``embed_spaces``: what a collection holds → drawn → embedded → committed, for one or more vector spaces.

Resume needs no bookkeeping of its own: a passage that has a row in a space, with vectors or with the reason why it has
none, is not in the manifest of the next run. Spaces whose embedders want pictures of the same size share one drawing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError

from vrag_ray.cluster import require_ray
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.embedding.base import Modality, PictureSpec
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.index.storage.errors import StorageError
from vrag_ray.index.storage.spaces import space_table
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest.machine import cause_of, usable_cpus
from vrag_ray.ingest.progress import Counts, reporting
from vrag_ray.ingest.report import FileError, Progress, SpaceReport, StageProgress
from vrag_ray.ingest.spaces.few import MOST_TEXTS, FewFill, FillHere, can_run_here, is_small, runs_here
from vrag_ray.ingest.spaces.graph import Filling, GraphFill, SpaceToFill
from vrag_ray.ingest.spaces.manifest import CollectionState, manifest_of
from vrag_ray.ingest.spaces.material import EmbedderTraits
from vrag_ray.ingest.spaces.stages import column_of
from vrag_ray.placement import Cards, Part, Placement, configured_share, place, ray_cards
from vrag_ray.signals import word_for
from vrag_ray.types import TEXT, VragError
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    import pyarrow as pa

PUBLISH_EVERY_S = 30.0


def embed_spaces(
    settings: Settings,
    names: Sequence[str] | None = None,
    *,
    rebuild: bool = False,
    retry_errors: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> list[SpaceReport]:
    """Fill the spaces ``names`` of ``settings.collection``; None: those configured and those it has.

    A space that is not there is made with ``settings.spaces``. ``on_line`` is called with what runs on which device
    before it does; None: that is logged. A few texts are embedded in this process by ``minilm`` and by factories that
    use no GPU; all else takes a Ray (``require_ray``). Raises VragError for a space that is neither configured nor
    there, for one that holds vectors of another embedder (unless ``rebuild``), for a GPU share that cannot be given,
    and where another process is writing.
    """
    with CollectionWriter(settings.collection) as writer:
        if writer.version == 0:
            raise VragError(f"the collection {settings.collection} is empty: `vrag ingest` adds documents first")
        chosen = list(names) if names is not None else _all_names(writer, settings)
        if not chosen:
            raise VragError("no vector space is configured: name a model under spaces in the configuration")
        for name in chosen:
            _config(writer, settings, name)
        return embed_into(
            writer,
            settings,
            chosen,
            rebuild=rebuild,
            retry_errors=retry_errors,
            strict=True,
            on_progress=on_progress,
            on_line=on_line,
        )


def embed_into(
    writer: CollectionWriter,
    settings: Settings,
    names: Sequence[str] | None = None,
    *,
    rebuild: bool = False,
    retry_errors: bool = False,
    strict: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_line: Callable[[str], None] | None = None,
    note: str = "embed",
) -> list[SpaceReport]:
    """As ``embed_spaces``, by who holds the writer. Without ``strict`` a space that cannot be filled keeps what it has,
    and its report says why. ``note`` says in the collection's versions what made them."""
    began = time.monotonic()
    names = _all_names(writer, settings) if names is None else names
    # Once for all: the processes of one group may still hold their GPU when the next is placed.
    cards = cache(partial(_cards_of_ray, settings))
    spaces: list[SpaceToFill] = []
    reports: list[SpaceReport] = []
    for name in names:
        try:
            config = _config(writer, settings, name)
            known = None if rebuild else _known_traits(writer, name, config)
            space = SpaceToFill(name, config, known or _traits(name, config, settings, cards))
            _open(writer, space, rebuild=rebuild)
        except VragError as error:
            if strict:
                raise
            reports.append(SpaceReport(name, skipped=str(error)))
            continue
        if retry_errors:
            writer.spaces.forget_failed(name)
        spaces.append(space)
    groups: dict[PictureSpec | None, list[SpaceToFill]] = {}
    for space in spaces:
        groups.setdefault(space.traits.pictures, []).append(space)
    for spec, group in groups.items():
        try:
            reports += _fill(writer, settings, spec, group, cards, on_progress, on_line, note)
        except StorageError:
            raise
        except VragError as error:
            if strict:
                raise
            reports += [SpaceReport(space.name, skipped=str(error)) for space in group]
    return [replace(report, seconds=time.monotonic() - began) for report in reports]


def _all_names(writer: CollectionWriter, settings: Settings) -> list[str]:
    names = dict.fromkeys([*settings.filled_spaces, *(record.name for record in writer.spaces.records)])
    return [name for name in names if name != TEXT or settings.texts_are_embedded]


def _config(writer: CollectionWriter, settings: Settings, name: str) -> SpaceConfig:
    """As configured, else as the space was made, else as a space of texts is made by default."""
    record = writer.spaces.get(name)
    if name in settings.spaces or (record is None and name in settings.filled_spaces):
        return settings.filled_spaces[name].with_absolute_model()
    if record is None:
        raise VragError(f"no vector space {name} is configured: name its model under spaces.{name}.model")
    try:
        return SpaceConfig.from_record(record.config)
    except ValidationError as error:
        raise VragError(f"the recorded settings of the space {name} cannot be read: set spaces.{name}") from error


def _known_traits(writer: CollectionWriter, name: str, config: SpaceConfig) -> EmbedderTraits | None:
    """As they were when the space was made by the same settings: the model need not be loaded to know them.

    The embedding actors check that the model has not become another.
    """
    record = writer.spaces.get(name)
    try:
        if record is None or SpaceConfig.from_record(record.config) != config.anywhere:
            return None
        return EmbedderTraits.from_json(record.traits)
    except (KeyError, TypeError, ValueError):
        return None


def _cards_of_ray(settings: Settings) -> Cards:
    require_ray()
    return ray_cards(settings.gpus)


def _placed(
    spaces: Sequence[tuple[str, SpaceConfig]], settings: Settings, cards: Cards
) -> tuple[list[SpaceConfig], Placement]:
    """Settings of spaces that are filled at the same time, with the GPU share and the device that their actors get.

    Raises VragError for a share or device that cannot be had.
    """
    placement = place([_part(name, config, settings, cards) for name, config in spaces], cards)
    concurrency = settings.ingest.concurrency
    configs = []
    for (_, config), placed in zip(spaces, placement.placed, strict=True):
        device = settings.device_of(config.device)
        if device == "cuda" and not placed.share:
            raise VragError(
                f"{placed.part.setting.rpartition('.')[0]}.device is cuda, and {placed.why}: set it to auto"
            )
        on_gpu = {"num_gpus": placed.share, "device": device if placed.share else "cpu"}
        actors = placed.part.processes if placed.share else config.actor_count(usable_cpus(), concurrency)
        configs.append(with_changes(config, {**on_gpu, "actors": actors}))
    return configs, placement


def _part(name: str, config: SpaceConfig, settings: Settings, cards: Cards) -> Part:
    """What the actors that fill a space ask for. Raises VragError where its settings contradict each other."""
    setting = f"spaces.{name}.num_gpus"
    share = config.num_gpus
    if settings.gpus != 0 and not config.without_gpu_code:
        share = configured_share(share, config.device, setting)
    return Part(
        name=f"embedding of {name}",
        setting=setting,
        share=share,
        processes=config.actors or settings.ingest.concurrency or max(1, cards.total),
        cannot=config.without_gpu_code,
        unless_set=f"{config.model} is a factory, and {setting} is not set" if config.is_factory else "",
    )


def _traits(name: str, config: SpaceConfig, settings: Settings, cards: Callable[[], Cards]) -> EmbedderTraits:
    """What the space is to know of its embedder, detected where the space will be filled."""
    if can_run_here(config):
        traits = _traits_here(with_changes(config, {"device": "cpu"}))
    else:
        traits = _traits_by_ray(_placed([(name, config)], settings, cards())[0][0])
    if name != TEXT:
        return traits
    if Modality.TEXT not in traits.modalities or traits.multi_vector:
        raise VragError(
            f"{config.model} gives no single vectors of texts: name it under `spaces` by another name than {TEXT}"
        )
    return replace(traits, modalities=frozenset({Modality.TEXT}), pictures=None)


def _traits_here(config: SpaceConfig) -> EmbedderTraits:
    try:
        return EmbedderTraits.of(space_embedder(config))
    except VragError:
        raise
    except Exception as error:
        # A factory is anybody's code.
        raise VragError(f"the model {config.model} cannot be loaded: {error}") from error


def _traits_by_ray(config: SpaceConfig) -> EmbedderTraits:
    """Detected in a process of its own, which gives the weights' memory back."""
    import ray
    from ray.exceptions import RayError

    task = ray.remote(_traits_or_why_not).options(num_cpus=0, num_gpus=config.num_gpus or None, max_retries=0)
    try:
        traits: EmbedderTraits | VragError = ray.get(task.remote(config))
    except RayError as error:
        raise VragError(f"the model {config.model} cannot be loaded: {cause_of(error)}") from error
    if isinstance(traits, VragError):
        raise traits
    return traits


def _traits_or_why_not(config: SpaceConfig) -> EmbedderTraits | VragError:
    try:
        return EmbedderTraits.of(space_embedder(config))
    except VragError as error:
        return error


def _open(writer: CollectionWriter, space: SpaceToFill, *, rebuild: bool) -> None:
    """Make the space where it is not there. Nothing is published."""
    known = writer.spaces.get(space.name)
    if known is not None and not rebuild:
        if known.embedder_id != space.traits.id:
            raise VragError(
                f"the space {space.name} holds vectors of {known.embedder_id}, and the configured embedder is "
                f"{space.traits.id}: `vrag embed --space {space.name} --rebuild` makes it anew"
            )
        return
    traits = space.traits
    writer.spaces.create(
        space.name,
        embedder_id=traits.id,
        dim=traits.dim,
        multi_vector=traits.multi_vector,
        config=space.config.anywhere.model_dump(mode="json"),
        traits=traits.to_json(),
    )


def _fill(
    writer: CollectionWriter,
    settings: Settings,
    spec: PictureSpec | None,
    group: Sequence[SpaceToFill],
    cards: Callable[[], Cards],
    on_progress: Callable[[Progress], None] | None,
    on_line: Callable[[str], None] | None,
    note: str,
) -> list[SpaceReport]:
    began = time.monotonic()
    modalities = {space.name: space.traits.modalities for space in group}
    manifest = manifest_of(writer, modalities)
    committer = _Committer(writer, group, settings.ingest.commit_pages, note)
    stages = ([] if spec is None else ["draw"]) + [f"embed {space.name}" for space in group]
    bottleneck = ""
    if manifest.num_rows:
        filling = Filling(manifest, CollectionState.of(writer), settings, spec, tuple(group), tuple(stages))
        blocks: FillHere | FewFill | GraphFill
        here = runs_here(filling)
        if writer.has_unpublished and not (here and manifest.num_rows <= MOST_TEXTS):
            # Words are searched while vectors are made, and a run that is killed is gone on with.
            writer.publish(note)
        if here:
            blocks = FillHere(filling)
        else:
            few = is_small(filling)
            configs, placement = _placed([(space.name, space.config) for space in group], settings, cards())
            placement.report(on_line)
            placed = tuple(replace(space, config=config) for space, config in zip(group, configs, strict=True))
            filling = replace(filling, spaces=placed)
            blocks = FewFill(filling) if few else GraphFill(filling)

        def progress(counts: Counts, elapsed_s: float) -> Progress:
            return _progress(counts, stages, list(modalities), committer.done, manifest.num_rows, elapsed_s)

        with reporting(blocks.read, progress, on_progress):
            try:
                for block in blocks:
                    committer.add_block(block)
            except StorageError:
                # Not flushed: it would commit once more what may be committed already.
                with suppress(StorageError):
                    writer.publish("embed (interrupted)")
                raise
            except BaseException as error:
                committer.finish()
                names = ", ".join(space.name for space in group)
                rest = (
                    "What was embedded until then is kept, and "
                    f"`vrag embed --space {group[0].name}` (without --rebuild) goes on from there"
                )
                if _is_of_a_stage(error, blocks):
                    raise VragError(f"filling {names} stopped: {cause_of(error)}. {rest}") from error
                if isinstance(error, KeyboardInterrupt):
                    raise type(error)(f"{word_for(error)} while filling {names}. {rest}") from error
                raise
            committer.finish()
        if not isinstance(blocks, FillHere):
            bottleneck = blocks.read().bottleneck(time.monotonic() - began)
    elif writer.has_unpublished:
        # What a killed run committed, this one makes known.
        writer.publish(note)
    records = {record.name: record for record in writer.spaces.records}
    return [
        SpaceReport(
            name=space.name,
            embedder_id=space.traits.id,
            embedded=committer.embedded[space.name],
            failed=tuple(committer.failed[space.name]),
            passages=records[space.name].passages,
            bytes_per_passage=records[space.name].bytes_per_passage,
            bottleneck=bottleneck,
        )
        for space in group
    ]


def _is_of_a_stage(error: BaseException, blocks: FillHere | FewFill | GraphFill) -> bool:
    if isinstance(blocks, FillHere):
        return isinstance(error, Exception)
    from ray.exceptions import RayError

    return isinstance(error, RayError)


class _Committer:
    """Collects rows and commits them to each space in batches of about ``commit_rows``."""

    def __init__(self, writer: CollectionWriter, group: Sequence[SpaceToFill], commit_rows: int, note: str) -> None:
        self.embedded = {space.name: 0 for space in group}
        self.failed: dict[str, list[FileError]] = {space.name: [] for space in group}
        self.done = 0
        self._writer, self._commit_rows, self._note = writer, commit_rows, note
        self._tables: dict[str, list[pa.Table]] = {space.name: [] for space in group}
        self._waiting = 0
        self._published_at = time.monotonic()

    def add_block(self, block: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if "phash" not in block.column_names:
            block = block.append_column("phash", pa.nulls(block.num_rows, pa.uint64()))
        for name, tables in self._tables.items():
            here = block.filter(pa.array([name in spaces for spaces in block["spaces"].to_pylist()], pa.bool_()))
            embedded = here[column_of(name)].combine_chunks()
            columns = {key: here[key] for key in ("id", "doc_id", "kind", "meta", "phash")}
            columns |= dict(zip(embedded.type.names, embedded.flatten(), strict=True))
            failed = zip(here["name"].to_pylist(), columns["error"].to_pylist(), strict=True)
            self.failed[name] += [FileError(title, f"{title}: {error}") for title, error in failed if error]
            rows = space_table(columns)
            # What the machine was the reason of has no row: the next run draws it again.
            tables.append(rows.filter(pc.invert(here["transient"])) if "transient" in here.column_names else rows)
        self._waiting += block.num_rows
        if self._waiting >= self._commit_rows:
            self.flush()

    def flush(self) -> None:
        import pyarrow as pa

        # Out of hand before it is written: a caller that is interrupted in between must not write it again.
        waiting, self._tables = self._tables, {name: [] for name in self._tables}
        for name, tables in waiting.items():
            rows = pa.concat_tables(tables) if tables else None
            if rows is not None and rows.num_rows:
                self._writer.spaces.add(name, rows)
                self.embedded[name] += int(np.count_nonzero(rows["count"]))
        self.done += self._waiting
        self._waiting = 0
        if time.monotonic() - self._published_at > PUBLISH_EVERY_S:
            self._writer.publish(f"{self._note} (running)")
            self._published_at = time.monotonic()

    def finish(self) -> None:
        self.flush()
        self._writer.publish(self._note)


def _progress(
    counts: Counts, stages: Sequence[str], spaces: Sequence[str], done: int, total: int, elapsed_s: float
) -> Progress:
    last = counts.stages[stages[-1]].pages
    rate = last / elapsed_s if elapsed_s else 0.0
    return Progress(
        files=0,
        total_files=0,
        done_pages=done,
        total_pages=total,
        pages_per_s=rate,
        eta_s=(total - last) / rate if rate else None,
        stages=(
            *counts.stages_of(stages),
            StageProgress("commit", done, done / elapsed_s if elapsed_s else 0.0),
        ),
        spaces=tuple(spaces),
    )
