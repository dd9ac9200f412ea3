"""``vrag search``: the best passages for one or more queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.options import (
    CollectionsOption,
    ConfigOption,
    DocOption,
    GpusOption,
    JsonFlag,
    KindOption,
    UrlOption,
    WhereOption,
    chosen_collections,
    load_several,
    parse_filter,
    picture_url,
    request_fields,
    with_gpus,
)

if TYPE_CHECKING:
    from vrag_ray.cli.console import Echo
    from vrag_ray.client.contract import System
    from vrag_ray.client.schemas import SearchResponse


def search(
    queries: Annotated[
        list[str] | None, typer.Argument(metavar="[QUERY]...", help="One or more queries, each in quotes.")
    ] = None,
    collection: CollectionsOption = None,
    url: UrlOption = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, max=100, help="Results for each query.")] = 3,
    mode: Annotated[
        str, typer.Option(help="hybrid, or one leg: lexical, text, or a vector space of the collection.")
    ] = "hybrid",
    picture: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, metavar="FILE", help="Search by this picture."),
    ] = None,
    doc: DocOption = None,
    kind: KindOption = None,
    where: WhereOption = None,
    config: ConfigOption = None,
    gpus: GpusOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Search pages, pictures, clips and texts."""
    queries = queries or []
    if not all(query.strip() for query in queries):
        raise typer.BadParameter("a query is empty: say what to search for")
    if not queries and picture is None:
        raise typer.BadParameter("say what to search for: a QUERY, or --picture FILE, or both")
    if picture is not None and len(queries) > 1:
        raise typer.BadParameter("--picture goes with one QUERY or none: ask the others on their own")
    if not mode:
        raise typer.BadParameter("--mode is empty: say hybrid, or a leg: lexical, text, or a space of the collection")
    narrowed = parse_filter(doc, kind, where)
    settings = with_gpus(load_several(config, collection, url), gpus, url)
    chosen = chosen_collections(settings, collection, url)

    from vrag_ray.cli.show import search_lines
    from vrag_ray.cli.system import with_system
    from vrag_ray.client.schemas import SearchRequest

    with request_fields():
        if picture is None:
            request = SearchRequest(queries=queries, top_k=top_k, mode=mode, collection=chosen, filter=narrowed)
        else:
            request = SearchRequest(
                query=queries[0] if queries else None,
                picture=picture_url(picture),
                top_k=top_k,
                mode=mode,
                collection=chosen,
                filter=narrowed,
            )
            queries = [" and ".join([*queries, picture.name])]

    async def use(system: System, _: str | None, __: Echo) -> SearchResponse:
        return await system.search(request)

    response = with_system(url, settings, collection_typed=bool(collection), use=use)
    if as_json:
        typer.echo(response.model_dump_json())
        return
    for line in search_lines(response, queries):
        typer.echo(line)
