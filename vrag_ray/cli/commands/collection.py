"""``vrag create``, ``documents``, ``versions``, ``verify``, ``delete``: looking after a collection, without Ray."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.options import CollectionOption, ConfigOption, JsonFlag, load
from vrag_ray.types.file_names import listed_names, names_of
from vrag_ray.views.words import size_in_words

if TYPE_CHECKING:
    from vrag_ray.types import Document

MOST_NAMES = 10
"""Of one document: rows of a data set may share a picture a thousand times."""
VersionOption = Annotated[int | None, typer.Option("--version", min=1, help="As it was at this version.")]


def create(collection: CollectionOption = None, config: ConfigOption = None) -> None:
    """Make an empty collection, for a service that is filled by uploads. `vrag ingest` makes one by itself."""
    from vrag_ray.index.storage.collection import Collection

    root = load(config, collection).collection
    made = Collection.open_or_create(root)
    typer.echo(f"{root}: a collection at version {made.version}, {len(made.documents())} documents")


def documents(
    collection: CollectionOption = None,
    version: VersionOption = None,
    config: ConfigOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the documents of a collection."""
    from vrag_ray.index.storage.collection import Collection

    listed = Collection.open(load(config, collection).collection, version).documents()
    if as_json:
        typer.echo(json.dumps([{**asdict(document), "meta": dict(document.meta)} for document in listed]))
        return
    uris = [uri for document in listed for uri in document.uris]
    names = dict(zip(uris, names_of(uris), strict=True))
    for document in listed:
        size = size_in_words(document.size_bytes)
        typer.echo(
            f"{document.doc_id[:12]}  {document.kind:5}  {document.status:7}  {document.units:5}  {size:>12}  "
            f"{listed_names([names[uri] for uri in document.uris], MOST_NAMES)}{_title(document)}"
        )
        if document.error:
            typer.echo(f"              {document.error}")
        for notice in document.notices:
            typer.echo(f"              notice: {notice}")
    typer.echo(f"{len(listed)} documents")


def versions(collection: CollectionOption = None, config: ConfigOption = None, as_json: JsonFlag = False) -> None:
    """List the versions of a collection, oldest first."""
    from vrag_ray.index.storage.collection import Collection

    records = Collection.open(load(config, collection).collection).versions()
    if as_json:
        typer.echo(json.dumps([asdict(record) for record in records]))
        return
    for record in records:
        typer.echo(
            f"{record.number:5}  {record.created_at}  {record.documents:6} documents  {record.passages:8} passages  "
            f"{record.note}"
        )
    typer.echo(f"{len(records)} versions")


def verify(collection: CollectionOption = None, config: ConfigOption = None, as_json: JsonFlag = False) -> None:
    """Read every byte of a collection and name what is damaged. Exits 1 when anything is."""
    from vrag_ray.index.storage.verify import verify as run_verify

    root = load(config, collection).collection
    report = run_verify(root)
    if as_json:
        typer.echo(json.dumps({"sound": report.is_sound, **asdict(report)}))
    else:
        problems = (("damaged", report.damaged), ("missing", report.missing), ("damaged row", report.damaged_rows))
        for problem, names in problems:
            for name in names:
                typer.echo(f"{problem}: {name}")
        verdict = "sound" if report.is_sound else "DAMAGED: restore these files from a copy, or ingest anew"
        left = f"; {len(report.unsealed)} files left by an interrupted ingest" if report.unsealed else ""
        typer.echo(f"{root}: {report.blobs} originals, {report.rows} rows{left}: {verdict}")
    if not report.is_sound:
        raise typer.Exit(1)


def delete(
    docs: Annotated[
        list[str], typer.Argument(metavar="DOC...", help="Ids of documents, or their first 8 or more digits.")
    ],
    collection: CollectionOption = None,
    config: ConfigOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Remove documents from a collection: no later search finds them, older versions keep them."""
    from vrag_ray.index.storage.collection import Collection
    from vrag_ray.index.storage.writer import CollectionWriter

    root = load(config, collection).collection
    collection_now = Collection.open(root)
    removed = {document.doc_id: collection_now.shown(document) for document in map(collection_now.document, docs)}
    with CollectionWriter(root) as writer:
        writer.delete(*removed)
        version = writer.publish("delete")
    if as_json:
        typer.echo(json.dumps([{"doc_id": doc_id, "collection_version": version} for doc_id in removed]))
        return
    for document in removed.values():
        typer.echo(f"{document.title or document.uri} is deleted; the collection is at version {version}")


def _title(document: Document) -> str:
    """The title, where it says more than the name of the file."""
    from vrag_ray.corpus.model import title_from_name

    named = {title_from_name(name) for name in names_of([document.uri])}
    return f"  “{document.title}”" if document.title and document.title not in named else ""
