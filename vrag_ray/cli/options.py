"""Options that several commands share, and how their texts become values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.config import EvidenceForm, Settings
    from vrag_ray.types import MetaValue
    from vrag_ray.types.filters import SearchFilter

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]
CollectionOption = Annotated[
    str | None,
    typer.Option("--collection", "-c", metavar="DIR", help="Folder of the collection.  [default: vrag-collection]"),
]
CollectionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--collection",
        "-c",
        metavar="DIR",
        help="Folder of the collection, or with --url its name (repeatable: several as one).  [default: "
        "vrag-collection]",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", exists=True, dir_okay=False, help="Settings in YAML; VRAG_* wins."),
]
GpusOption = Annotated[
    int | None,
    typer.Option("--gpus", min=0, help="GPUs to use at most; 0 uses the CPU alone.  [default: those that are free]"),
]
RayFlag = Annotated[
    bool, typer.Option("--ray", help="Serve on Ray Serve even where one process suffices.  [default: where needed]")
]


def server_url(url: str | None) -> str | None:
    """A ``--url`` that was typed, as the address of a server."""
    if url is None:
        return None
    from vrag_ray.client.http import UnreachableError, server_address

    try:
        return server_address(url)
    except UnreachableError as error:
        raise typer.BadParameter(str(error)) from error


UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="VRAG_URL",
        callback=server_url,
        help="Use this server instead of a local collection.",
    ),
]
DocOption = Annotated[list[str] | None, typer.Option("--doc", metavar="ID", help="Only this document (repeatable).")]
KindOption = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help="Only page, image, clip or text (repeatable).")
]
WhereOption = Annotated[
    list[str] | None, typer.Option("--where", metavar="K=V", help="Only documents with this metadata (repeatable).")
]


def load(config: Path | None, collection: str | None) -> Settings:
    """Settings of the file and the environment; a ``--collection`` that was typed wins over both."""
    from vrag_ray.config import load_settings

    settings = load_settings(config)
    if collection is None:
        return settings
    if not collection.strip():
        raise typer.BadParameter("--collection is empty: name a folder")
    return with_changes(settings, {"collection": collection})


def with_gpus(settings: Settings, gpus: int | None, url: str | None = None) -> Settings:
    """``settings`` with the ``--gpus`` that was typed, which a server of ``url`` would not heed."""
    if gpus is None:
        return settings
    if url is not None:
        raise typer.BadParameter("--gpus is for this process, and --url asks a server: leave one of them out")
    return with_changes(settings, {"gpus": gpus})


def echo_line(text: str) -> None:
    """Print a line on standard error, beside what the command itself prints."""
    typer.echo(text, err=True)


def load_several(config: Path | None, typed: Sequence[str] | None, url: str | None) -> Settings:
    """As ``load``, with every collection that was typed, the first as the main one; with ``url`` they are the
    server's."""
    return with_collections(load(config, None), typed if url is None else None)


def with_collections(settings: Settings, typed: Sequence[str] | None) -> Settings:
    """``settings`` of the collections that were typed, by a name of ``settings.collections`` or as folders."""
    if not typed:
        return settings
    from vrag_ray.types.collection_names import free_name

    known = settings.served
    named: dict[str, str] = {}
    for path in dict.fromkeys(typed):
        if not path:
            raise typer.BadParameter("--collection is empty: name a folder")
        named[path if path in known else free_name(path, named)] = known.get(path, path)
    return with_changes(settings, {"collection": next(iter(named.values())), "collections": named})


def chosen_collections(settings: Settings, typed: Sequence[str] | None, url: str | None) -> list[str] | None:
    """What a request names: on a server the names that were typed, here all of ``with_collections`` if several were."""
    if not typed:
        return None
    if url is not None:
        return list(typed)
    return list(settings.served) if len(typed) > 1 else None


def api_key() -> str | None:
    """The key sent to a server, from ``VRAG_API_KEY``."""
    return os.environ.get("VRAG_API_KEY") or None


def parse_meta(pairs: Sequence[str] | None, option: str) -> dict[str, MetaValue]:
    """``["year=2024", "draft=true"]`` as typed values. A value in double quotes stays text."""
    return dict(_parse_pair(pair, option) for pair in pairs or ())


def parse_filter(
    docs: Sequence[str] | None, kinds: Sequence[str] | None, where: Sequence[str] | None
) -> SearchFilter | None:
    from vrag_ray.types import PassageKind
    from vrag_ray.types.filters import SearchFilter

    if not (docs or kinds or where):
        return None
    known = [kind.value for kind in PassageKind]
    for kind in kinds or ():
        if kind not in known:
            raise typer.BadParameter(f"--kind {kind} is not one of {', '.join(known)}")
    return SearchFilter(
        doc_ids=list(docs) if docs else None,
        kinds=[PassageKind(kind) for kind in kinds] if kinds else None,
        meta={**parse_meta(where, "--where")} if where else None,
    )


@contextmanager
def request_fields() -> Iterator[None]:
    """What a request model refuses in this block is the caller's mistake: typer.BadParameter, with the field."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        from vrag_ray.types.errors import validation_message

        raise typer.BadParameter(f"{'.'.join(map(str, first['loc']))}: {validation_message(first)}") from error


def parse_evidence(form: str | None) -> EvidenceForm | None:
    from vrag_ray.config import EvidenceForm

    if form is None:
        return None
    if form not in tuple(EvidenceForm):
        raise typer.BadParameter(f"--evidence {form} is not one of {', '.join(EvidenceForm)}")
    return EvidenceForm(form)


def picture_url(path: Path) -> str:
    """The file as a data URL. Raises VragError where it cannot be sent."""
    from vrag_ray.client.schemas import MAX_PICTURE_BYTES, data_url
    from vrag_ray.types import VragError

    try:
        data = path.read_bytes()
    except OSError as error:
        raise VragError(f"cannot read the picture {path}: {error.strerror}") from error
    if len(data) > MAX_PICTURE_BYTES:
        raise VragError(f"the picture {path} has more than {MAX_PICTURE_BYTES >> 20} MiB: send a smaller one")
    return data_url(data)


def _parse_pair(pair: str, option: str) -> tuple[str, MetaValue]:
    name, equals, text = pair.partition("=")
    if not (name.strip() and equals):
        raise typer.BadParameter(f"{option} {pair} is not of the form name=value")
    return name.strip(), _parse_value(text.strip())


def _parse_value(text: str) -> MetaValue:
    from vrag_ray.types.documents import number_or_text

    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return number_or_text(text)
